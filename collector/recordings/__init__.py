"""Recorded traffic and runs, read from files and written to them."""
