"""Evaluators: one file each, found without registration."""
