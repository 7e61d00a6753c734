"""trpc_agent_go."""
