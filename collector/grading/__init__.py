"""Grading finished traces: a function of a trace and the criteria, with what it counted beside it."""

from collector.grading.grader import WATCHED, AwaitedTrace, Grader
from collector.grading.tally import Tally

__all__ = ["WATCHED", "AwaitedTrace", "Grader", "Tally"]
