"""pydantic_ai."""
