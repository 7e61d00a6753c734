"""Evaluator `trajectory-order-f1`: how well calls and expected order agree, further calls included."""

from collections.abc import Sequence

from processors.comparison.expected_calls import OrderedTrajectoryConfig, TrajectoryCriteria
from processors.comparison.maximum_matching import matching_size
from processors.comparison.ordered_alignment import aligned_calls
from processors.comparison.trajectory import Alignment, Trajectory
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts


class TrajectoryOrderF1(Evaluator):
    """The F1 of calls and expected calls in order: by their longest common subsequence.

    With l the length of that subsequence, precision = l / calls, recall = l / expected calls, and
    score = 2 * precision * recall / (precision + recall) = 2 * l / (calls + expected calls). Calls of one
    parallel group may stand in any order among themselves unless `parallel: as_recorded`. Failed calls count
    as calls unless `include_failed: false`.

    An empty expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise.

    Example: [search, book, pay] over the calls search, search, book, pay
    scores 6/7.
    """

    id = "trajectory-order-f1"
    Config = OrderedTrajectoryConfig
    Criteria = TrajectoryCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: search}, {name: book}, {name: pay}]",
        evaluation="""
            criteria: {tool_calls: [search, book, pay]}
            pass_threshold: 0.8
        """,
    )

    def __init__(self, config: OrderedTrajectoryConfig, criteria: TrajectoryCriteria) -> None:
        self._trajectory = Trajectory(config, criteria)
        self._any_order = config.parallel == "any_order"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where unknown arguments decide, and beyond caps."""
        return self._trajectory.grade(run, self._measure)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Any number of further calls may match nothing; at best each matches what is still open."""
        width = self._trajectory.width
        found = self._trajectory.open_rows(run)
        if found is None:
            return 0.0, 1.0
        if not width:
            return 0.0, float(not found.calls)
        # No order aligns more calls than a matching does.
        still_open = width - matching_size(found.possible, width)
        return 0.0, 2 * width / (len(found.calls) + still_open + width)

    def _measure(self, calls: Sequence[ToolCall], rows: Sequence[int], width: int) -> Alignment | None:
        assigned = aligned_calls(calls, rows, width, any_order=self._any_order)
        if assigned is None:
            return None
        matched = width - assigned.count(-1)
        return Alignment(2 * matched / (len(calls) + width), assigned)
