"""Custom evaluators: other people's code, run in processes of its own."""
