"""langfuse."""
