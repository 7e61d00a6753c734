"""langsmith."""
