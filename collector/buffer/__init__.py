"""Traces that are not finished yet, and when they are."""
