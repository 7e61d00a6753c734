"""trulens."""
