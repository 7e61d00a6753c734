"""Grading finished traces: a function of a trace and the criteria, with what it counted as a value."""

from collector.grading.grader import WATCHED, EarlyFailure, Grader, evidence_reader, reports_end
from collector.grading.grading_pool import GradingPool
from collector.grading.grading_worker import WorkerSettings
from collector.grading.hand_over import Form
from collector.grading.lanes import GradingThread, ThreadLane, full_collections, is_large
from collector.grading.stage import GradingStage

__all__ = [
    "WATCHED", "EarlyFailure", "Form", "Grader", "GradingPool", "GradingStage", "GradingThread", "ThreadLane",
    "WorkerSettings", "evidence_reader", "full_collections", "is_large", "reports_end",
]  # fmt: skip
