"""openinference."""
