"""google_adk."""
