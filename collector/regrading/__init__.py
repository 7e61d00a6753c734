"""Stored runs graded by other criteria, and what that changes."""

from collector.regrading.differences import Change, changes
from collector.regrading.draft_settings import DraftSettings
from collector.regrading.stored_runs import HIDDEN, Regrader

__all__ = ["HIDDEN", "Change", "DraftSettings", "Regrader", "changes"]
