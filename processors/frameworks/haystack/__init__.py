"""haystack."""
