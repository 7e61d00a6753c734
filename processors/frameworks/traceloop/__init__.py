"""traceloop."""
