"""Evaluator `run-error`: whether a run ended without an error."""

from processors.documents import EvaluatorModel
from processors.model import AgentRun, Evaluator, RunFacts, Score


class RunErrorConfig(EvaluatorModel):
    """Settings of `run-error`: there are none."""


class RunError(Evaluator):
    """Whether the run ended without an error: 1 or 0.

    score = 0 when the agent's own span shows that it failed, by its status, an `error.type` or an exception,
    else 1. Calls that failed do not count, unless the agent ended with their error; a run that stops to wait
    for a person or for the result of a call has not failed.
    """

    id = "run-error"
    needs_calls = False

    def __init__(self, config: RunErrorConfig, criteria: None = None) -> None:
        pass

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score:
        """Grade `run`; always a score."""
        if run.error is None:
            return Score(1.0, {"error_type": None}, ("the run ended without an error",))
        line = ": ".join(filter(None, (run.error.type or "error", run.error.message)))
        return Score(0.0, {"error_type": run.error.type}, (line,))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further spans do not undo an error on the agent's own span."""
        return 0.0, float(run.error is None)
