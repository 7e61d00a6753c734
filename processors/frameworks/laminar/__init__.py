"""laminar."""
