"""Evaluator `trajectory-exact`: whether the calls are exactly the expected ones, in order."""

from collections.abc import Sequence

from processors.comparison.expected_calls import OrderedTrajectoryConfig, TrajectoryCriteria
from processors.comparison.maximum_matching import matching_size
from processors.comparison.ordered_alignment import aligned_calls
from processors.comparison.parallel_order import parallel_segments
from processors.comparison.trajectory import Alignment, Trajectory
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts


class TrajectoryExact(Evaluator):
    """Whether the calls and the expected calls match one by one: 1 or 0.

    score = 1 when there are as many calls as expected ones and each stands for the one at its place, else 0.
    Calls of one parallel group may stand in any order among themselves unless `parallel: as_recorded`.
    Failed calls count as calls unless `include_failed: false`.

    An empty expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise.

    Example: [search, book] over the calls search, search, book
    scores 0, and 1 over search, book.
    """

    id = "trajectory-exact"
    Config = OrderedTrajectoryConfig
    Criteria = TrajectoryCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: search}, {name: book}]",
        evaluation="criteria: {tool_calls: [search, book]}",
    )

    def __init__(self, config: OrderedTrajectoryConfig, criteria: TrajectoryCriteria) -> None:
        self._trajectory = Trajectory(config, criteria)
        self._any_order = config.parallel == "any_order"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where unknown arguments decide, and beyond caps."""
        return self._trajectory.grade(run, self._measure)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A further call can always be one too many; 1 is lost once some call has no expected one left."""
        width = self._trajectory.width
        found = self._trajectory.open_rows(run)
        if found is None:
            return 0.0, 1.0
        count = len(found.calls)
        return 0.0, float(count <= width and matching_size(found.possible, width) == count)

    def _measure(self, calls: Sequence[ToolCall], rows: Sequence[int], width: int) -> Alignment:
        if len(calls) == width and self._is_exact(calls, rows):
            return Alignment(1.0, range(width))
        # What the longest common subsequence leaves over tells best where the two part.
        aligned = aligned_calls(calls, rows, width, any_order=self._any_order)
        return Alignment(0.0, [-1] * width if aligned is None else aligned)

    def _is_exact(self, calls: Sequence[ToolCall], rows: Sequence[int]) -> bool:
        """Whether every call, or every group of parallel calls, fits the expected calls at its own places."""
        if not self._any_order:
            return all(row >> key & 1 for key, row in enumerate(rows))
        for segment in parallel_segments(calls):
            if len(segment) == 1:
                if not rows[segment.start] >> segment.start & 1:
                    return False
                continue
            size = len(segment)
            own = [rows[position] >> segment.start & (1 << size) - 1 for position in segment]
            if matching_size(own, size) < size:
                return False
        return True
