"""Where export requests come in: one listener a file."""
