"""self_check."""
