"""Evaluator `trajectory-in-order`: whether the expected calls were made in the expected order."""

from collections.abc import Sequence

from processors.comparison.expected_calls import OrderedTrajectoryConfig, TrajectoryCriteria
from processors.comparison.ordered_alignment import aligned_calls, lasting_alignment
from processors.comparison.trajectory import Alignment, Trajectory
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts


class TrajectoryInOrder(Evaluator):
    """Whether the expected calls are a subsequence of the calls: 1 or 0; calls in between cost nothing.

    score = 1 when every expected call has a call of its own and these stand in the expected order, else 0.
    Calls of one parallel group may stand in any order among themselves unless `parallel: as_recorded`.
    Failed calls count as calls unless `include_failed: false`.

    An empty expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise.

    Example: [search, pay] over the calls search, book, pay
    scores 1, and 0 over pay, search.
    """

    id = "trajectory-in-order"
    Config = OrderedTrajectoryConfig
    Criteria = TrajectoryCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: book}, {name: pay}]",
        evaluation="criteria: {tool_calls: [search, pay]}",
    )

    def __init__(self, config: OrderedTrajectoryConfig, criteria: TrajectoryCriteria) -> None:
        self._trajectory = Trajectory(config, criteria)
        self._any_order = config.parallel == "any_order"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where unknown arguments decide, and beyond caps."""
        return self._trajectory.grade(run, self._measure)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls cannot take the expected order away, and can complete it."""
        width = self._trajectory.width
        found = self._trajectory.open_rows(run)
        if found is None:
            return 0.0, 1.0
        if not width:
            return 0.0, float(not found.calls)
        return float(lasting_alignment(found.calls, found.certain, width) == width), 1.0

    def _measure(self, calls: Sequence[ToolCall], rows: Sequence[int], width: int) -> Alignment | None:
        assigned = aligned_calls(calls, rows, width, any_order=self._any_order)
        if assigned is None:
            return None
        return Alignment(float(-1 not in assigned), assigned)
