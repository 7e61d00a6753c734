"""upsonic."""
