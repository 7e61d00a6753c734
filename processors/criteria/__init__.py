"""Criteria: files, selectors, templates, and which evaluations apply to an agent."""

from processors.criteria.agent_criteria import AgentCriteria, CriteriaSet, Evaluation
from processors.criteria.criteria_edit import Change, edit_evaluations, evaluation_name
from processors.criteria.criteria_file import (
    SCHEMA_KEY,
    SELF_CHECK_AGENT,
    CriteriaCase,
    CriteriaDocument,
    evaluator_id,
    is_schema,
    read_criteria,
)
from processors.criteria.criteria_file_model import CriteriaFile, ExpectedResultEntry
from processors.criteria.criteria_writer import EVERY_AGENT, write_criteria, write_criteria_file
from processors.criteria.doubtful_criteria import criteria_warnings
from processors.criteria.evaluator_discovery import evaluator_types
from processors.criteria.selector import is_sampled
from processors.criteria.trace_criteria import Applied, applied_criteria

__all__ = [
    "EVERY_AGENT", "SCHEMA_KEY", "SELF_CHECK_AGENT", "AgentCriteria", "Applied", "Change",
    "CriteriaCase", "CriteriaDocument", "CriteriaFile", "CriteriaSet", "Evaluation", "ExpectedResultEntry",
    "applied_criteria", "criteria_warnings", "edit_evaluations", "evaluation_name", "evaluator_id",
    "evaluator_types", "is_sampled", "is_schema", "read_criteria", "write_criteria", "write_criteria_file",
]  # fmt: skip
