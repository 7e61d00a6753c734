"""Evaluator `trajectory-recall`: which share of the expected calls was made."""

from collections.abc import Sequence

from processors.comparison.expected_calls import TrajectoryConfig, TrajectoryCriteria
from processors.comparison.maximum_matching import matching_size, maximum_matching
from processors.comparison.trajectory import Alignment, Trajectory
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts


class TrajectoryRecall(Evaluator):
    """The share of the expected calls that were made; further calls cost nothing.

    score = matched / expected calls, where
    matched is the size of a maximum matching: every call stands for one expected call at most, so repeated
    calls have to be expected as often. Order plays no part. Failed calls count as calls unless
    `include_failed: false`.

    An empty expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise.

    Example: [search, search, book] over the calls search, book, pay
    scores 2/3.
    """

    id = "trajectory-recall"
    Config = TrajectoryConfig
    Criteria = TrajectoryCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: book}, {name: pay}]",
        evaluation="criteria: {tool_calls: [search, search, book]}",
    )

    def __init__(self, config: TrajectoryConfig, criteria: TrajectoryCriteria) -> None:
        self._trajectory = Trajectory(config, criteria)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where unknown arguments decide, and beyond caps."""
        return self._trajectory.grade(run, _measure)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls take no expected call away from one that has it, and can match all that is open."""
        width = self._trajectory.width
        found = self._trajectory.open_rows(run)
        if found is None:
            return 0.0, 1.0
        if not width:
            return 0.0, float(not found.calls)
        return matching_size(found.certain, width) / width, 1.0


def _measure(calls: Sequence[ToolCall], rows: Sequence[int], width: int) -> Alignment:
    assigned = maximum_matching(rows, width)
    matched = width - assigned.count(-1)
    return Alignment(matched / width, assigned)
