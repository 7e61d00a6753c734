"""agent_sdk_go."""
