"""voltagent."""
