"""Evaluator `tool-constraints`: rules over the sequence of calls, as process mining writes them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from processors.comparison import (
    CHOICES,
    COUNT,
    COUNTS,
    ENDS,
    RELATIONS,
    VALUES,
    CallConstraint,
    CallConstraints,
    Finding,
    OneTarget,
    TargetEntry,
    ToolSelectionConfig,
    event_name,
    parse_comparison,
    parse_event_value,
    parse_json_path,
    share_of,
    target_of,
)
from processors.documents import Duration, EvaluatorModel
from processors.model import (
    AgentRun,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    canonical_tool_name,
)

_SHOWN_CALLS = 20


class ToolConstraintsConfig(ToolSelectionConfig):
    """Settings of `tool-constraints`."""

    strict: bool = False
    """Whether calls that ran side by side stand neither before nor after each other; else they stand in
    whichever order a constraint requires."""


class CountedEntry(TargetEntry):
    """A kind of events and how many."""

    times: Annotated[int, Field(ge=1)] = 1
    """The number n of the template."""


Counted: TypeAlias = str | CountedEntry
TwoKinds: TypeAlias = tuple[OneTarget, OneTarget]

_TEMPLATES = (*COUNTS, *ENDS, *CHOICES, *RELATIONS, *VALUES, COUNT)


_TAKEN_BY = {"of": VALUES, "per": (*VALUES, COUNT), "min": ("sum", COUNT), "max": ("sum", COUNT)}


def _one_template(schema: dict[str, Any]) -> None:
    keys = [
        key for template in _TEMPLATES for key in {template, to_camel(template)} & {*schema["properties"]}
    ]
    schema["oneOf"] = [{"required": [key]} for key in keys]


def _template(example: JsonValue) -> Any:
    return Field(default=None, examples=[example])


class ToolConstraint(EvaluatorModel):
    """One template with its tools: exactly one of the keys from `existence` to `count`."""

    model_config = ConfigDict(json_schema_extra=_one_template)

    existence: Counted | None = _template({"tool": "search", "times": 2})
    """At least n calls."""
    absence: Counted | None = _template("delete_*")
    """Fewer than n calls: none, where `times` is left out."""
    exactly: Counted | None = _template({"tool": "book", "times": 1})
    """Exactly n calls."""
    init: OneTarget | None = _template("authenticate")
    """The first call is one of these."""
    last: OneTarget | None = _template("log_out")
    """The last call is one of these."""
    choice: TwoKinds | None = _template(["search", "look_up"])
    """At least one of the two is called."""
    exclusive_choice: TwoKinds | None = _template(["book", "cancel"])
    """One of the two is called, and not both."""
    responded_existence: TwoKinds | None = _template(["book", "check_seat"])
    """Where the first is called, the second is too, before or after it."""
    response: TwoKinds | None = _template(["refund", "send_email"])
    """Each call of the first is followed by one of the second."""
    precedence: TwoKinds | None = _template(["verify_identity", "refund"])
    """Each call of the second has one of the first before it."""
    succession: TwoKinds | None = _template(["lock", "unlock"])
    """`response` and `precedence`."""
    alternate_response: TwoKinds | None = _template(["lock", "unlock"])
    """Each call of the first is followed by one of the second before the first is called again."""
    alternate_precedence: TwoKinds | None = _template(["lock", "unlock"])
    """Each call of the second has one of the first before it, after the second was last called."""
    alternate_succession: TwoKinds | None = _template(["lock", "unlock"])
    """`alternate_response` and `alternate_precedence`."""
    chain_response: TwoKinds | None = _template(["refund", "send_email"])
    """The call right after each of the first is one of the second."""
    chain_precedence: TwoKinds | None = _template(["confirm", "delete_account"])
    """The call right before each of the second is one of the first."""
    chain_succession: TwoKinds | None = _template(["confirm", "delete_account"])
    """`chain_response` and `chain_precedence`."""
    co_existence: TwoKinds | None = _template(["charge", "send_receipt"])
    """Both are called, or neither."""
    not_co_existence: TwoKinds | None = _template(["approve", "reject"])
    """Not both are called."""
    not_response: TwoKinds | None = _template(["cancel", "ship"])
    """No call of the first is followed by one of the second."""
    not_chain_response: TwoKinds | None = _template(["search", "search"])
    """The call right after one of the first is none of the second."""
    not_parallel: TwoKinds | None = _template(["update_*", "update_*"])
    """No call of the first runs in parallel to another one, of the second."""
    constant: str | None = _template("args.user_id")
    """This value is the same in all calls that have it."""
    unique: str | None = _template("args.order_id")
    """This value is another one in each call that has it."""
    sum: str | None = _template("args.amount")
    """This value of all calls adds up to no less than `min` and no more than `max`."""
    count: OneTarget | None = _template("send_email")
    """There are no fewer events than `min` and no more than `max`; with `per` of each value that occurs."""
    of: OneTarget | None = Field(default=None, examples=["refund_*"])
    """Of which calls `constant`, `unique` and `sum` are; left out, of all."""
    per: str | None = Field(default=None, examples=["args.recipient"])
    """The value by which `constant`, `unique`, `sum` and `count` look at calls apart: those with one value
    together, those without any not at all."""
    min: float | None = Field(default=None, examples=[1])
    """The least that `sum` or `count` may be."""
    max: float | None = Field(default=None, examples=[500])
    """The most that `sum` or `count` may be."""
    same: str | list[str] | dict[str, str] | None = Field(
        default=None, examples=["order_id", ["order_id", "customer.id"], {"order_id": "order.id"}]
    )
    """Paths of arguments by which two calls belong together: one, several, or an object of the path in the
    first to that in the second. Calls belong together where all values are equal."""
    where: str | list[str] | None = Field(
        default=None,
        examples=[
            "refund.args.amount <= get_order.result.total",
            ["answer contains book.result.code", "book.args.day in search.result.days"],
        ],
    )
    """Comparisons between the two events, all of which have to hold for them to belong together: a value of
    each with `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `contains` between them. A value is `args` or `result`
    with a path, `agent`, `duration` or `turn` of a call, `text` of a message, or `answer`; before it stands
    the name of the tool, `message`, or `first` or `second`."""
    within: Duration | None = Field(default=None, examples=["5m"])
    """How far apart the two calls are at most, from the end of the earlier one to the start of the later."""
    nearest: bool = False
    """Of `response`, `precedence` and `succession`: only the next, or the last, event of the other kind
    counts, whatever it returned or says, and it has to be as required."""
    weight: float = Field(default=1, gt=0, le=1000)
    """How much it counts in the score, beside the others."""
    runs: Literal["all", "with_calls"] = "all"
    """Which runs it applies to: all, or those in which some tool was called."""

    @model_validator(mode="after")
    def _is_one_template(self) -> "ToolConstraint":
        given = [name for name in _TEMPLATES if getattr(self, name) is not None]
        if len(given) != 1:
            result = f"; found {' and '.join(given)}" if given else ""
            raise ValueError(f"expected exactly one template, such as response or absence{result}")
        template = given[0]
        if self.same is not None and template not in RELATIONS:
            raise ValueError(f"same: {template} relates no call to another one")
        if self.where is not None and template not in RELATIONS:
            raise ValueError(f"where: {template} relates no event to another one")
        for key, templates in _TAKEN_BY.items():
            if getattr(self, key) is not None and template not in templates:
                raise ValueError(f"{key}: {template} does not take it; expected {' or '.join(templates)}")
        if template in ("sum", COUNT):
            if self.min is None and self.max is None:
                raise ValueError(f"{template}: expected min or max with it")
            if self.min is not None and self.max is not None and self.min > self.max:
                raise ValueError(f"expected min to be at most max, found {self.min:g} and {self.max:g}")
        if template in RELATIONS and not template.startswith("not_"):
            first, second = getattr(self, template)
            if _tool_alone(first) is not None and _tool_alone(first) == _tool_alone(second):
                raise ValueError(f'{template}: "{first}" twice: expected two tools, or calls that differ')
        return self

    def compiled(self) -> CallConstraint:
        """The constraint as it is checked on runs; raises ValueError for a path or matcher that is none."""
        template = next(name for name in _TEMPLATES if getattr(self, name) is not None)
        where = [self.where] if isinstance(self.where, str) else self.where or ()
        written: Any = getattr(self, template)
        kinds = written if isinstance(written, tuple) else (written,)
        if template in VALUES:
            kinds = (self.of or "*",)
        same = [self.same] if isinstance(self.same, str) else self.same or ()
        paths = same if isinstance(same, dict) else {path: path for path in same}
        targets = tuple(map(target_of, kinds))
        return CallConstraint(
            template=template,
            kinds=targets,
            times=written.times if isinstance(written, CountedEntry) else 1,
            same=tuple((parse_json_path(first), parse_json_path(second)) for first, second in paths.items()),
            with_calls=self.runs == "with_calls",
            where=tuple(parse_comparison(text, targets) for text in where),
            within=self.within,
            nearest=self.nearest,
            value=parse_event_value(written) if template in VALUES else None,
            per=None if self.per is None else parse_event_value(self.per),
            least=self.min,
            most=self.max,
            weight=self.weight,
        )


class ToolConstraintsCriteria(EvaluatorModel):
    """The constraints."""

    constraints: list[ToolConstraint] = Field(
        min_length=1,
        examples=[
            [
                {"response": ["refund", "send_email"], "same": "order_id"},
                {
                    "precedence": [
                        "verify_identity",
                        {"tool": "refund", "args": {"amount": {"$range": [100, None]}}},
                    ]
                },
                {"absence": "delete_account"},
                {"existence": "search", "runs": "with_calls"},
            ]
        ],
    )
    """Templates of DECLARE with the events that they are about, one in each entry: the name of a tool, or an
    object (docs/constraints.md)."""


class ToolConstraints(Evaluator):
    """The share of constraints on the sequence of calls that hold, of those that apply.

    The constraints are the templates of DECLARE, with their published names and meaning. score = constraints
    that hold / constraints that apply, each by its `weight`, and 1 when none applies. One that relates two
    calls applies where the run has a call that requires something (for `response` the first, for `precedence`
    the second, for `succession` either); `init` and `last` apply to runs with calls; the others apply to
    every run, and with `runs: with_calls` to those with calls.

    With `same` each call needs, or must not have, another one with equal values: after refund(order_id=7)
    an e-mail about order 7. A call that lacks the value belongs to no other. `alternate` templates look at
    the calls with that value only, `chain` templates at the neighbour in the run. No call answers itself.
    `where` compares any values of the two, `within` their times; with `nearest` it has to be the last one
    before, or the next one after. `not_parallel`, and `constant`, `unique`, `sum` and `count`, which look at
    all calls of a kind together, are no templates of DECLARE.
    Calls that ran side by side are as `strict` sets it, and never forbidden followers of each other.

    Failed calls, and those that were only requested, are calls; `status: succeeded` leaves out those that did
    not take effect. A relation and a count may be about messages or the answer in place of calls, in single
    runs (docs/constraints.md). Where what is not known decides, the run is not evaluated; if constraints are
    broken for certain and the others could not make up for it, it fails with the highest score that is left.
    An incomplete run
    passes or fails where no further call could change it, wherever it stood: a forbidden call that was made,
    a forbidden pair, or calls that are all there.
    """

    id = "tool-constraints"
    over_calls = True
    can_fail_early = True

    def __init__(self, config: ToolConstraintsConfig, criteria: ToolConstraintsCriteria) -> None:
        compiled = [constraint.compiled() for constraint in criteria.constraints]
        self.over_calls = not any(constraint.roles or constraint.looks_at_turns for constraint in compiled)
        # Of several agents it is not known what ran in parallel.
        self.over_traces = all(constraint.template != "not_parallel" for constraint in compiled)
        self.can_fail_early = all(constraint.only_counts_calls for constraint in compiled)
        self._constraints = CallConstraints(
            compiled,
            config.categories(),
            strict=config.strict,
        )

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where what is not known decides, and beyond caps."""
        findings = self._constraints.evaluate(run)
        if not isinstance(findings, NotEvaluated):
            return self._score(findings, run)
        missing, findings = findings, self._constraints.check(run)
        if isinstance(findings, NotEvaluated):
            return missing
        most = [replace(one, applies=True, holds=True) if _is_open(one) else one for one in findings]
        return missing.unless(self._score(most, run))

    @staticmethod
    def _score(findings: Sequence[Finding], run: AgentRun) -> Score:
        applying = [finding for finding in findings if finding.applies]
        broken = [finding for finding in applying if finding.holds is False]
        details: JsonObject = {
            "applicable": len(applying),
            "held": len(applying) - len(broken),
            "violated": [
                {
                    "constraint": finding.constraint.label,
                    "calls": [at + 1 for at in islice(finding.unmet, _SHOWN_CALLS) if at < len(run.calls)],
                    "reason": finding.text,
                }
                for finding in broken
            ],
        }
        if broken:
            lines = [_line(finding, run) for finding in broken]
        elif applying:
            lines = [f"{len(applying)} of {len(applying)} constraints hold"]
        else:
            lines = ["no constraint applies"]
        return Score(share_of(findings), details, tuple(lines))

    def doubts(self, runs: Sequence[AgentRun]) -> Iterator[str]:
        """Paths that no call in `runs` has."""
        return self._constraints.doubts(runs)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """What further calls could make of each constraint; see the class."""
        return self._constraints.attainable(run)


def _is_open(finding: Finding) -> bool:
    """Whether what is not known decides if the constraint is broken."""
    return finding.applies is not False and (
        finding.holds is None or (finding.applies is None and finding.holds is False)
    )


def _line(finding: Finding, run: AgentRun) -> str:
    """Which constraint is broken, by which call, and how."""
    text = f"{finding.constraint.label}: "
    template, unmet = finding.constraint.template, finding.unmet
    if template in RELATIONS:
        more = f" (and {len(unmet) - 1} more)" if len(unmet) > 1 else ""
        return f"{text}{event_name(run, unmet[0])}: {finding.text}{more}"
    first = len(run.calls) if finding.constraint.roles else 0
    shown = ", ".join(str(at + 1 - first) for at in unmet[:_SHOWN_CALLS])
    noun = "message" if first else "call"
    calls = f" ({noun if len(unmet) == 1 else f'{noun}s'} {shown})" if unmet else ""
    return f"{text}{finding.text}{calls}"


def _tool_alone(kind: OneTarget) -> str | None:
    if not isinstance(kind, str):
        return None
    return kind if "*" in kind or "?" in kind else canonical_tool_name(kind)
