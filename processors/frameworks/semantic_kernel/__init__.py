"""semantic_kernel."""
