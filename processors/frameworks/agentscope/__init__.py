"""See `reader`."""
