"""honeyhive."""
