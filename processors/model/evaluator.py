"""The contract of an evaluator: one file in `processors/evaluators/`, found without registration."""

from typing import ClassVar, Protocol

from pydantic import BaseModel

from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Score


class Evaluator(Protocol):
    """Grades agent runs against one set of criteria.

    An evaluator is a class with the class attributes below and is constructed once per evaluation in a
    criteria file, with its validated configuration and criteria. It is then called for many runs and
    must not keep state between them. It is deterministic and total: for every run it returns a `Score`
    with a value in [0, 1] or a `NotEvaluated`; it does no I/O, reads no clock and raises nothing for what a
    trace can hold but an `EvaluationError`, where its criteria do not fit what the run holds. Work is
    bounded: beyond its caps it answers `NotEvaluated(OVER_LIMIT)`.
    """

    id: ClassVar[str]
    """Short id with hyphens; the file is the id with underscores."""
    version: ClassVar[str]
    """Changes whenever the same run could get another score; dashboards tell old from new by it."""
    Config: ClassVar[type[BaseModel]]
    """The `config:` object of a criteria file (unknown keys refused, camelCase aliases accepted)."""
    Criteria: ClassVar[type[BaseModel] | None]
    """The `criteria:` object, or None for evaluators that take none."""

    def evaluate(self, run: AgentRun) -> Score | NotEvaluated:
        """Grade one run as it stands, as if no further span could come.

        Raises:
            EvaluationError: the run cannot be graded by the criteria; its outcome is `error`.
        """
        ...

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """The lowest and highest score that `run` could still reach if any further spans of it came.

        Asked only for runs that are not complete: `pass` needs the lowest at or above the threshold,
        `fail` the highest below it, else the run is `not_evaluated`. `(0.0, 1.0)` is always right.
        """
        ...
