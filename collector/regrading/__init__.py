"""Stored runs graded by other criteria, and what that changes."""

from collector.regrading.stored_runs import HIDDEN, Regrader, stored_change
from collector.regrading.verdict_export import verdict_records, verdict_requests

__all__ = ["HIDDEN", "Regrader", "stored_change", "verdict_records", "verdict_requests"]
