"""An agent run with its verdicts."""

from collections.abc import Sequence

from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import EvaluationResult, Outcome, Stage
from processors.model.value_types import value_type


@value_type
class GradedRun:
    """An agent run and the results of every evaluation that applied to it.

    `graded_unix_nano` is when a service graded it and `instance` which one; 0 and empty elsewhere, so that
    grading a recording again gives the same again. `line` is its line of a runs file, if already written.
    """

    run: AgentRun
    results: Sequence[EvaluationResult]
    graded_unix_nano: int = 0
    instance: str = ""
    line: bytes = b""

    @property
    def verdict(self) -> Outcome:
        """How the run ended as a whole, as in exit codes.

        `FAIL` or `ERROR` if a result that counts ended so, else `PASS` if there is a verdict that is not in
        shadow, be it a failure that decides nothing, else `NOT_EVALUATED`.
        """
        decisive = {result.outcome for result in self.results if result.counts}
        for outcome in (Outcome.FAIL, Outcome.ERROR):
            if outcome in decisive:
                return outcome
        has_verdict = any(result.is_verdict and result.stage is Stage.LIVE for result in self.results)
        return Outcome.PASS if has_verdict else Outcome.NOT_EVALUATED

    @property
    def not_evaluated(self) -> tuple[int, int]:
        """How many of its evaluations gave no verdict, and of how many; without those in shadow."""
        outcomes = [result.outcome for result in self.results if result.stage is Stage.LIVE]
        return outcomes.count(Outcome.NOT_EVALUATED), len(outcomes)
