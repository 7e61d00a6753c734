"""From the spans of a trace to the agent runs in it."""
