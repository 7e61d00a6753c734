"""Criteria learned from good runs: what all of them keep, chosen so that it raises few false alarms."""

from processors.learning.criteria_text import LearnedText, learned_file, learned_text
from processors.learning.criteria_update import updated_file
from processors.learning.learning import (
    STEPS,
    Learned,
    TooFewRunsError,
    learn,
)
from processors.learning.rule import CONFIDENCE, upper_bound

__all__ = [
    "CONFIDENCE", "STEPS", "Learned", "LearnedText", "TooFewRunsError", "learn", "learned_file",
    "learned_text", "updated_file", "upper_bound",
]  # fmt: skip
