"""The service grades a trace of its own, end to end."""
