"""Recording and alert rules from objectives and criteria."""
