"""The contract of an evaluator: a class in `processors/evaluators/`, discovered without registration."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_args

from pydantic import BaseModel

from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Scope, Score

_ValueT = TypeVar("_ValueT")


class RunFacts:
    """What evaluators of one run computed and share while it is graded; no verdicts."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, work: Callable[[], _ValueT]) -> _ValueT:
        """What `work` returns; it is called once for a key. Equal keys mean the same work on the run."""
        if key not in self._known:
            self._known[key] = work()
        value: _ValueT = self._known[key]
        return value


class Evaluator(Protocol):
    """Grades agent runs against one set of criteria.

    An evaluator is a class with the class attributes below and is constructed once per evaluation in a
    criteria file, with its validated configuration and criteria, whose models the parameters of `__init__`
    name; criteria are None only for an evaluator that takes none, or was given none that it can do without.
    It is then called for many runs and must not keep state between them. It is deterministic and total: for
    every run it returns a `Score` with a value in [0, 1] or a `NotEvaluated`; it does no I/O, reads no clock
    and raises nothing for what a trace can hold but an `EvaluationError`, where its criteria do not fit what
    the run holds. Work is bounded: beyond its caps it answers `NotEvaluated(OVER_LIMIT)`.

    The switches below are those of the class; one whose criteria are about more sets them for itself.
    """

    id: ClassVar[str]
    """Short id with hyphens, one of its own; names of classes and files are free."""
    version: ClassVar[str] = "1"
    """Changes whenever the same run could get another score; dashboards separate old from new by it."""
    quotes_content: ClassVar[bool] = True
    """Whether its texts may show arguments, results, errors, input or output; tools' names are no content."""
    over_calls: bool = False
    """Whether it looks at nothing of a run but its calls, so that it can grade those of a conversation or a
    trace."""
    over_models: bool = False
    """Whether it looks at model calls, models, usage and cost alone, and can grade those likewise."""
    over_traces: bool = True
    """Whether all that it looks at is known over several agents too."""
    needs_calls: bool = True
    """Whether calls that are not known could change its verdict."""
    can_fail_early: bool = False
    """Whether it fails by `attainable` for the calls that a run executed, for their tools and arguments, or
    for its tokens, and for nothing that depends on their order or on how they ended: its failure stands while
    the run goes on."""
    Config: ClassVar[type[BaseModel]] = BaseModel
    """The `config:` object of a criteria file (unknown keys refused, camelCase aliases accepted)."""
    Criteria: ClassVar[type[BaseModel] | None] = None
    """The `criteria:` object, or None for evaluators that take none."""

    def __init_subclass__(cls) -> None:
        """Take `Config` and `Criteria` from the parameters of `__init__`, where these name models."""
        super().__init_subclass__()
        parameters = getattr(vars(cls).get("__init__"), "__annotations__", {})
        for name in parameters.keys() & {"config", "criteria"}:
            kind = next(iter(get_args(parameters[name])), parameters[name])
            if kind is not BaseModel and name.title() not in vars(cls):
                setattr(cls, name.title(), kind)

    def __new__(cls, config: BaseModel, criteria: BaseModel | None = None) -> Self:
        """Raise a ValueError if required criteria are missing."""
        if criteria is None and cls.Criteria is not None:
            try:
                cls.Criteria.model_validate({})
            except ValueError:
                raise ValueError(f"{cls.id} needs criteria: {', '.join(cls.Criteria.model_fields)}") from None
        return super().__new__(cls)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade one run as it stands, as if no further span could arrive.

        `facts` is what the evaluators of this run share.

        Raises:
            EvaluationError: the run cannot be graded by the criteria; its outcome is `error`.
        """
        ...

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """The lowest and highest score that `run` could still reach if further spans of it arrived.

        Called only for runs that are not complete: `pass` needs the lowest at or above the threshold, `fail`
        the highest below it, else the run is `not_evaluated`. The default, `(0.0, 1.0)`, is always right:
        what decides may still arrive.
        """
        return 0.0, 1.0

    def doubts(self, runs: Sequence[AgentRun]) -> Iterable[str]:
        """What in the criteria no run of `runs` has, though it could; mostly a misspelled path."""
        return ()


def can_grade(evaluator: type[Evaluator] | Evaluator, scope: Scope) -> bool:
    """Whether evaluators of this class, or this one, look at nothing that is known of single runs alone."""
    if scope is Scope.TRACE and not evaluator.over_traces:
        return False
    return scope is Scope.RUN or evaluator.over_calls or evaluator.over_models
