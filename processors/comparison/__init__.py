"""When a call or a value is an expected one, and what evaluators look at and report."""
