"""mastra."""
