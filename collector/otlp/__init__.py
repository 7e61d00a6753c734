"""OTLP itself: splitting and joining requests, JSON, compression, status codes."""
