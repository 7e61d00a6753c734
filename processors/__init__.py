"""Pure processing of agent traces: spans in, graded agent runs out. No clock, no I/O, no randomness."""
