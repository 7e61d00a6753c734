"""Telemetry conventions: one file each, found without registration."""
