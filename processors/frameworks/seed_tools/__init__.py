"""seed_tools."""
