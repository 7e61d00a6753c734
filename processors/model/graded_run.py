"""An agent run with its verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import EvaluationResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """An agent run and the results of every evaluation that applied to it.

    `graded_unix_nano` is when a service graded it and `instance` which one; 0 and empty elsewhere, so that
    grading a recording again says the same again.
    """

    run: AgentRun
    results: Sequence[EvaluationResult]
    graded_unix_nano: int = 0
    instance: str = ""
