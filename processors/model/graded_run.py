"""An agent run with its verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import EvaluationResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """An agent run and the results of every evaluation that applied to it."""

    run: AgentRun
    results: Sequence[EvaluationResult]
