"""Stored runs graded by other criteria, and what that changes."""

from collector.regrading.stored_runs import HIDDEN, Regrader, stored_change

__all__ = ["HIDDEN", "Regrader", "stored_change"]
