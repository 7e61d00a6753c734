"""Criteria from other tools' files, one module for each kind of files."""
