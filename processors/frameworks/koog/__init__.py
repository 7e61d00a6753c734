"""koog."""
