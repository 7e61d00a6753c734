"""nemo_agent_toolkit."""
