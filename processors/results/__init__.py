"""Forms in which a result is written."""
