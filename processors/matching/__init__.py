"""When an actual call or value is an expected one, and which calls stand for which expectations."""
