"""docker_agent."""
