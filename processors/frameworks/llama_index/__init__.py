"""LlamaIndex, as several conventions tell of it."""
