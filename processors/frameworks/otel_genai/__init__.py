"""otel_genai."""
