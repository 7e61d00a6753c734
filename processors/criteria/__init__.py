"""Criteria: files, selectors, templates, and which evaluations apply to an agent."""
