"""Evaluator `trajectory-any-order`: whether all expected calls were made, in whatever order."""

from collections.abc import Sequence

from processors.comparison.expected_calls import TrajectoryConfig, TrajectoryCriteria
from processors.comparison.maximum_matching import matching_size, maximum_matching
from processors.comparison.trajectory import Alignment, Trajectory
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts


class TrajectoryAnyOrder(Evaluator):
    """Whether every expected call has a call of its own: 1 or 0; further calls and order play no part.

    score = 1 when a maximum matching of calls and expected calls serves all expected ones, else 0. Failed
    calls count as calls unless `include_failed: false`.

    An empty expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise.

    Example: [search, {name: search, args: {q: 1}}] over the calls search(q=1), search(q=2)
    scores 1: the first expectation takes the second call.
    """

    id = "trajectory-any-order"
    Config = TrajectoryConfig
    Criteria = TrajectoryCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search, arguments: {q: 1}}, {name: search, arguments: {q: 2}}]",
        evaluation="criteria: {tool_calls: [search, {name: search, args: {q: 1}}]}",
    )

    def __init__(self, config: TrajectoryConfig, criteria: TrajectoryCriteria) -> None:
        self._trajectory = Trajectory(config, criteria)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where unknown arguments decide, and beyond caps."""
        return self._trajectory.grade(run, _measure)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls take no expected call away from one that has it."""
        width = self._trajectory.width
        found = self._trajectory.open_rows(run)
        if found is None:
            return 0.0, 1.0
        if not width:
            return 0.0, float(not found.calls)
        return float(matching_size(found.certain, width) == width), 1.0


def _measure(calls: Sequence[ToolCall], rows: Sequence[int], width: int) -> Alignment:
    assigned = maximum_matching(rows, width)
    return Alignment(float(-1 not in assigned), assigned)
