"""Evaluations that are tried out on many runs."""

from collections.abc import Sequence

from processors.comparison import looks_failed
from processors.criteria import Evaluation, read_criteria
from processors.evaluate import evaluate_run
from processors.importers import EVERY_AGENT, write_criteria
from processors.model import AgentRun, JsonObject, Outcome


class ReadyCriteria:
    """Evaluations that are ready to run, and what they say of runs.

    Rules on order and numbers look at the tools and at what became of the calls alone: of runs that have
    these in common only the first is held against them.
    """

    def __init__(self, entries: Sequence[JsonObject]) -> None:
        evaluations: Sequence[Evaluation] = ()
        if entries:
            (agent,) = read_criteria(write_criteria(EVERY_AGENT, entries), "", {})
            evaluations = agent.evaluations
        self.of_calls = [item for item in evaluations if item.evaluator.id in _OF_CALLS]
        self.others = [item for item in evaluations if item.evaluator.id not in _OF_CALLS]
        self._known: dict[object, list[str]] = {}

    def failing(self, run: AgentRun) -> list[str]:
        """The evaluations that `run` does not pass; what could not be evaluated is no failure."""
        return [*self._by_calls(run), *_failing(run, self.others)]

    def fails(self, run: AgentRun) -> bool:
        """Whether there is one."""
        return bool(self._by_calls(run)) or any(_failing(run, [evaluation]) for evaluation in self.others)

    def _by_calls(self, run: AgentRun) -> list[str]:
        if not self.of_calls:
            return []
        key = tuple(
            (call.name, call.category, call.parallel_group, call.executed, looks_failed(call))
            for call in run.calls
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _failing(run, self.of_calls)
        return found


_OF_CALLS = frozenset({"tool-permission", "tool-call-budget", "tool-constraints", "tool-error-recovery"})


def _failing(run: AgentRun, evaluations: Sequence[Evaluation]) -> list[str]:
    return [
        result.name
        for result in evaluate_run(run, evaluations)
        if result.outcome in (Outcome.FAIL, Outcome.ERROR)
    ]
