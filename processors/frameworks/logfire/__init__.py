"""logfire."""
