"""agentops."""
