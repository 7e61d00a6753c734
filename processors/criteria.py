"""Criteria: which evaluations apply to an agent, by name."""

from dataclasses import dataclass

from processors.evaluation_result import Severity
from processors.evaluator import Evaluator


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One evaluation of a criteria file, ready to run.

    `name` is unique among the evaluations of an agent. `criteria_hash` changes whenever anything that
    could change a verdict does. `source` is `file:line` for messages.
    """

    name: str
    evaluator: Evaluator
    pass_threshold: float = 1.0
    severity: Severity = Severity.TICKET
    criteria_hash: str = ""
    enabled: bool = True
    source: str = ""
