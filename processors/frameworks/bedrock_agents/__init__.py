"""bedrock_agents."""
