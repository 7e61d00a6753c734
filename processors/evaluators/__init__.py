"""Evaluators: a file for each family, found without registration."""
