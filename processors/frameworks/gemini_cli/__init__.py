"""gemini_cli."""
