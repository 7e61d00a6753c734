"""Conventions that differ from others in nothing but the names of their attributes and spans."""
