"""Grading finished traces: a function of a trace and the criteria, with what it counted beside it."""

from collector.grading.evidence import evidence_reader
from collector.grading.grader import WATCHED, AwaitedTrace, Grader
from collector.grading.grading_pool import GradingPool, Quarantined
from collector.grading.grading_thread import GradingThread, full_collections, is_large
from collector.grading.grading_worker import WorkerSettings
from collector.grading.hand_over import Form, Question, Questions, compact
from collector.grading.tally import Tally

__all__ = [
    "WATCHED", "AwaitedTrace", "Form", "Grader", "GradingPool", "GradingThread", "Quarantined", "Question",
    "Questions", "Tally", "WorkerSettings", "compact", "evidence_reader", "full_collections", "is_large",
]  # fmt: skip
