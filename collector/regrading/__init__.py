"""Stored runs graded by other criteria, and what that changes."""

from collector.regrading.stored_runs import HIDDEN, Regraded, Regrader
from collector.regrading.verdict_export import verdict_requests

__all__ = ["HIDDEN", "Regraded", "Regrader", "verdict_requests"]
