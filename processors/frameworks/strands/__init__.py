"""strands."""
