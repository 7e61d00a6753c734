"""Stored runs graded by other criteria, and what that changes."""

from collector.regrading.differences import Change, changes
from collector.regrading.stored_runs import HIDDEN, Regrader

__all__ = ["HIDDEN", "Change", "Regrader", "changes"]
