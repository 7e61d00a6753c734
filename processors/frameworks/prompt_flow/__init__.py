"""prompt_flow."""
