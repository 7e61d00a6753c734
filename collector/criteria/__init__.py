"""Criteria files on disk: found, loaded as one set, followed, tested; and how agents are graded by them."""

from collector.criteria.criteria_files import (
    DRAFT,
    UNCOVERED_AGENTS,
    CriteriaFollower,
    CriteriaStore,
    CriteriaTexts,
    load_criteria,
)
from collector.criteria.criteria_tests import run_criteria_tests
from collector.criteria.draft_settings import DraftSettings
from collector.criteria.evaluation_config import EvaluationConfig
from collector.criteria.files import default_file, find_files

__all__ = [
    "DRAFT", "UNCOVERED_AGENTS", "CriteriaFollower", "CriteriaStore", "CriteriaTexts", "DraftSettings",
    "EvaluationConfig", "default_file", "find_files", "load_criteria", "run_criteria_tests",
]  # fmt: skip
