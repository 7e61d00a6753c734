"""Constraints on the sequence of events: the templates of DECLARE, checked on one run.

Names and meaning are those of process mining (Pesic, Schonenberg and van der Aalst, "DECLARE: Full Support
for Loosely-Structured Processes", 2007; chain precedence with the past as Di Ciccio and Montali, "Declarative
Process Specifications", 2022). Where a call is of both kinds that a template relates, the other one has to
be another call. Calls that ran side by side stand at one place of the sequence.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from processors.comparison.alignment import parallel_segments
from processors.comparison.captured_value import readable_arguments, unknown_arguments
from processors.comparison.event_target import Target, message_places, messages_are_known, returned_nothing
from processors.comparison.event_values import (
    NONE,
    UNKNOWN,
    Comparison,
    EventValue,
    NoValue,
    Read,
    ValueIndex,
    number_of,
    shown_value,
)
from processors.comparison.json_paths import JsonPath, leaves, place_text
from processors.comparison.json_schema_check import SchemaTooComplexError
from processors.comparison.tool_selection import ToolPatterns
from processors.comparison.value_equality import all_fit, equality_key
from processors.documents import did_you_mean, format_duration
from processors.model import (
    EVALUATED_CATEGORIES,
    MAX_ASSIGNMENT_ATTEMPTS,
    MAX_MATCHED_CHARACTERS,
    MAX_ORDERED_CALLS,
    AgentRun,
    CallCategory,
    JsonObject,
    JsonValue,
    NotEvaluated,
    ToolCall,
    ValueState,
    contains_mask,
    has_masked_key,
    late,
    may_be_masked,
)

_Reach: TypeAlias = Literal["any", "later", "next", "alternate", "beside"]
_MAX_EVENTS: Final = 10_000
"""Calls, once for each kind they are of, that one evaluation looks at. Each costs about two microseconds."""
_MAX_PAIRS: Final = 20_000
"""Pairs of events that one evaluation compares by their values. Each costs about two microseconds."""
_MAX_PLACES: Final = 200
"""Places in recorded values among which one is proposed for a path that none has."""
_INDEXED: Final = 8
"""Events from which on values are looked up."""


class _Relation(NamedTuple):
    """Each call of one kind needs one of the other within reach.

    `sides` are the kinds whose calls need one: those of the first (0) after them, of the second (1) before
    them. `negative`: they must not have one. Only a call of the sides in `applies_by`, mostly the same, makes
    the constraint apply.
    """

    reach: _Reach
    sides: tuple[int, ...]
    applies_by: tuple[int, ...]
    negative: bool = False


_FIRST, _SECOND, _BOTH = (0,), (1,), (0, 1)

RELATIONS: Mapping[str, _Relation] = MappingProxyType({
    "responded_existence": _Relation("any", _FIRST, _FIRST),
    "response": _Relation("later", _FIRST, _FIRST),
    "precedence": _Relation("later", _SECOND, _SECOND),
    "succession": _Relation("later", _BOTH, _BOTH),
    "alternate_response": _Relation("alternate", _FIRST, _FIRST),
    "alternate_precedence": _Relation("alternate", _SECOND, _SECOND),
    "alternate_succession": _Relation("alternate", _BOTH, _BOTH),
    "chain_response": _Relation("next", _FIRST, _FIRST),
    "chain_precedence": _Relation("next", _SECOND, _SECOND),
    "chain_succession": _Relation("next", _BOTH, _BOTH),
    "co_existence": _Relation("any", _BOTH, _BOTH),
    "not_co_existence": _Relation("any", _FIRST, _BOTH, negative=True),
    "not_response": _Relation("later", _FIRST, _FIRST, negative=True),
    "not_chain_response": _Relation("next", _FIRST, _FIRST, negative=True),
    "not_parallel": _Relation("beside", _FIRST, _FIRST, negative=True),
})  # fmt: skip
"""The templates that relate each call of one kind to calls of the other."""

CHOICES: Final = ("choice", "exclusive_choice")
"""The templates that require one of two kinds."""
COUNTS: Final = ("existence", "absence", "exactly")
"""The templates that bound a number of calls."""
ENDS: Final = ("init", "last")
"""The templates of how a run begins or ends."""

VALUES: Final = ("constant", "unique", "sum")
"""The templates about a value that all events of a kind have."""
COUNT: Final = "count"
"""The template that bounds a number of events, maybe for each value by itself."""


@dataclass(frozen=True, slots=True)
class CallConstraint:
    """One template with its kinds of events.

    `times` counts for `existence`, `absence` and `exactly`. `same` are paths into the arguments of the two
    calls of a relation, by which they belong together. `with_calls`: it applies only to runs with calls.
    Two events of a relation count only where all of `where` hold for them, and they are at most `within`
    seconds apart. `nearest`: only the last one before an event, or the next one after it, counts, whatever it
    returned and was decided about it.

    `value` is what `constant`, `unique` and `sum` are about, `least` and `most` bound a sum or a `count`;
    with `per` each of its values is looked at by itself.

    Raises ValueError where the template takes no messages, or events do not have what the rest requires.
    """

    template: str
    kinds: tuple[Target, ...]
    times: int = 1
    same: tuple[tuple[JsonPath, JsonPath], ...] = ()
    with_calls: bool = False
    where: tuple[Comparison, ...] = ()
    within: float | None = None
    nearest: bool = False
    value: EventValue | None = None
    per: EventValue | None = None
    least: float | None = None
    most: float | None = None
    weight: float = 1.0
    """How much it counts in the share of constraints that hold."""
    identities: tuple[Target, ...] = field(init=False, default=())
    """With `nearest`: the kinds, whatever their events returned or say."""
    roles: frozenset[str] = field(init=False, default=frozenset())
    """Whose messages stand in the sequence with the calls, and `answer` for the output; mostly none."""
    compares: bool = field(init=False, default=False)
    """Whether single events are compared with each other."""

    def __post_init__(self) -> None:
        roles: set[str] = {str(kind.kind) for kind in self.kinds if kind.kind != "call"}
        if "message" in roles:
            roles = (roles - {"message"}) | {"user", "assistant"}
        if roles and self.template in (*ENDS, *CHOICES):
            raise ValueError(f"{self.template}: expected calls; messages and the answer cannot stand here")
        if roles and (self.template in VALUES or self.per is not None):
            raise ValueError(f"{self.template}: expected calls; messages and the answer have no such values")
        if roles and self.same:
            raise ValueError("same: it compares arguments, which messages and the answer do not have")
        relation = RELATIONS.get(self.template)
        if relation is None:
            for name, given in (("where", self.where), ("within", self.within), ("nearest", self.nearest)):
                if given:
                    raise ValueError(f"{name}: {self.template} relates no event to another one")
        elif self.nearest and (relation.negative or relation.reach != "later"):
            raise ValueError("nearest: expected response, precedence or succession")
        if roles and self.within is not None:
            raise ValueError("within: it compares times, which messages and the answer do not have")
        if roles and relation is not None and relation.reach == "beside":
            raise ValueError(f"{self.template}: expected calls; nothing runs in parallel to a message")
        if relation is not None and relation.reach != "any" and self.kinds[0].kind == "answer":
            raise ValueError("answer: nothing follows it: expected it as the second of the two")
        object.__setattr__(self, "roles", frozenset(roles))
        by_pair = bool(self.where) or self.within is not None or self.nearest
        object.__setattr__(self, "compares", by_pair or (relation is not None and relation.reach == "beside"))
        if self.nearest:
            object.__setattr__(self, "identities", tuple(kind.identity for kind in self.kinds))

    @property
    def looks_at_turns(self) -> bool:
        """Whether it is about the model turns that requested calls, which only single runs have."""
        compared = [value for comparison in self.where for value in comparison.values]
        return any(value is not None and value.part == "turn" for value in (*compared, self.value, self.per))

    @property
    def label(self) -> str:
        """The constraint as explanations name it."""
        shown = [kind.label for kind in self.kinds]
        if self.value is not None:
            shown = [self.value.written + ("" if shown == ["*"] else f" of {shown[0]}")]
        if self.per is not None:
            shown[0] += f" per {self.per.written}"
        if self.template in COUNTS and self.times != 1:
            shown.insert(0, str(self.times))
        return f"{self.template}({', '.join(shown)})"

    @property
    def only_counts_calls(self) -> bool:
        """Whether too many calls break it for good, by their tools and arguments, in whatever order."""
        if any(kind.kind != "call" or kind.has_facts or kind.result_cost for kind in self.kinds):
            return False
        if self.template == "not_co_existence":
            return not (self.same or self.where) and self.within is None
        return self.template in ("absence", "exactly") or (
            self.template == COUNT and self.per is None and self.most is not None
        )


@dataclass(slots=True)
class Finding:
    """The result of one constraint.

    `applies` and `holds` are None where arguments that are not known decide; `holds` means nothing where the
    constraint does not apply. `unmet` are the events that break it, by their places in `AgentRun.calls`;
    those of `messages` and then the answer are counted on from there. `text` states how the first of them,
    or the run, does. The rest is what further events could make of it.
    """

    constraint: CallConstraint
    applies: bool | None = True
    holds: bool | None = True
    unmet: list[int] = field(default_factory=list)
    text: str = ""
    can_hold: bool = True
    can_fail: bool = True
    can_lapse: bool = False


class _Event(NamedTuple):
    """An event of a kind: its place in the run and in the sequence, what `same` picks, whether it is sure.

    `at` is a place in `AgentRun.calls`; those of `messages`, then the answer, are counted on from there.

    `alone`: nothing is known to have run in parallel. `held_back`: it is pending or was denied.
    """

    at: int
    step: int
    alone: bool
    key: Any
    sure: bool = True
    held_back: bool = False


class CallConstraints:
    """Constraints, ready to be checked on runs.

    They look at the calls of `categories`, and at those of any category that the constraints name. `strict`:
    calls that ran side by side stand neither before nor after each other; else in whichever order a
    constraint requires.
    """

    def __init__(
        self,
        constraints: Sequence[CallConstraint],
        categories: frozenset[CallCategory],
        *,
        strict: bool = False,
    ) -> None:
        self._constraints = constraints
        self._categories = categories
        self._named = ToolPatterns(
            kind.tool
            for constraint in constraints
            for kind in constraint.kinds
            if kind.kind == "call" and not (constraint.template in VALUES and kind.tool == "*")
        )
        self._beside = not strict

    def check(self, run: AgentRun, *, may_change: bool = False) -> list[Finding] | NotEvaluated:
        """A finding for each constraint; over the limits none. `may_change`: how calls ended may change."""
        named, categories = self._named, self._categories
        seen = [at for at, call in enumerate(run.calls) if call.category in categories or call.name in named]
        sequence = _Sequence(run, seen, may_change, self._beside)
        if sequence.length > MAX_ORDERED_CALLS:
            return NotEvaluated.over_limit(f"{sequence.length} tool calls, at most {MAX_ORDERED_CALLS}")
        try:
            return [_finding(constraint, sequence) for constraint in self._constraints]
        except (SchemaTooComplexError, _OverLimitError):
            return NotEvaluated.over_limit("more calls or arguments than are compared in one evaluation")

    def evaluate(self, run: AgentRun) -> list[Finding] | NotEvaluated:
        """`check`, or why arguments that are not known decide the share of those that hold."""
        findings = self.check(run)
        if isinstance(findings, NotEvaluated):
            return findings
        fails = any(finding.applies and finding.holds is False for finding in findings)
        for finding in findings:
            if finding.holds is None or (fails and finding.applies is None):
                return self._unknown(run, finding.constraint)
        return findings

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """`attainable_share` of the constraints; over the limits anything."""
        findings = self.check(run, may_change=True)
        return (0.0, 1.0) if isinstance(findings, NotEvaluated) else attainable_share(findings)

    def doubts(self, runs: Sequence[AgentRun]) -> Iterator[str]:
        """The values that constraints look at and that no call in `runs` has, though some are known whole.

        Arguments that the schema of the tool has are in no doubt.
        """
        for constraint in self._constraints:
            for side, kind in enumerate(constraint.kinds):
                calls = [(run, call) for run in runs for call in run.calls if call.name in kind.tools]
                for value in dict.fromkeys(_values_in(constraint, side)):
                    roots = [(run, call, value.root_of(call)) for run, call in calls]
                    known = [(run, call, root) for run, call, root in roots if isinstance(root, dict | list)]
                    if known and not any(value.path.values(root) for _, _, root in known):
                        if value.part == "args" and any(
                            _is_in_schema(run, call, value) for run, call, _ in known
                        ):
                            continue
                        places = {place_text(place) for _, _, root in known for place, _ in leaves(root)}
                        hint = did_you_mean(value.path.text, sorted(places)[:_MAX_PLACES])
                        yield (
                            f"{constraint.label}: no call of {kind.tool} in the tests has "
                            f"{value.part}.{value.path.text}{hint}"
                        )

    def _unknown(self, run: AgentRun, constraint: CallConstraint) -> NotEvaluated:
        """Which fact is missing that decides `constraint`."""
        masked: ToolCall | None = None
        needs_turns = constraint.looks_at_turns
        for at, call in enumerate(run.calls):
            for kind in constraint.kinds:
                if call.name not in kind.tools:
                    continue
                if needs_turns and turn_of(run, at) is UNKNOWN:
                    return NotEvaluated.not_captured(f"turn of {call.name}: no captured answer requests it")
                if constraint.same and readable_arguments(call) is None:
                    return unknown_arguments(call)
                missing = kind.missing_fact(call, run.agent.name) or _missing_value(constraint, kind, call)
                if missing is not None:
                    return missing
                if masked is None and may_be_masked(call.arguments_text):
                    masked = call
        is_chain = constraint.template in RELATIONS and RELATIONS[constraint.template].reach == "next"
        roles = [kind.role or "answer" for kind in constraint.kinds if kind.kind != "call"]
        for role in [*roles, *(sorted(constraint.roles) if is_chain else ())]:
            if role == "answer" and run.output_state is not ValueState.PRESENT:
                return NotEvaluated.not_captured(f"answer: {run.output_state}")
            if role != "answer" and not messages_are_known(run, role):
                return NotEvaluated.not_captured(
                    f"messages: telemetry does not show all of the {role}'s and their places among the calls"
                )
        if masked is not None:
            return unknown_arguments(masked)
        if constraint.where:
            written = " and ".join(f'"{comparison.written}"' for comparison in constraint.where)
            return NotEvaluated.not_captured(
                f"{written}: values that do not compare, such as a text and a list"
            )
        return NotEvaluated.not_captured(f"{constraint.label}: redacted in part")


def _values_in(constraint: CallConstraint, side: int) -> Iterator[EventValue]:
    """The arguments and results that calls of one kind of `constraint` are looked at for."""
    for comparison in constraint.where:
        yield comparison.value_of(side)
    yield from filter(None, (constraint.value, constraint.per))
    for paths in constraint.same:
        yield EventValue(f"args.{paths[side].text}", "args", paths[side])
    for part, name in constraint.kinds[side].members:
        yield EventValue(f"{part}.{name}", part, JsonPath(name, (name,)))


def _is_in_schema(run: AgentRun, call: ToolCall, value: EventValue) -> bool:
    """Whether the schema of the tool has the argument that `value` begins with."""
    schema = (run.available_tools or {}).get(call.name)
    properties = schema.get("properties") if isinstance(schema, dict) and value.part == "args" else None
    return isinstance(properties, dict) and any(step in properties for step in value.path.steps[:1])


def _missing_value(constraint: CallConstraint, kind: Target, call: ToolCall) -> NotEvaluated | None:
    """What is not known of `call`, of a kind of `constraint`, that is compared; None: nothing."""
    side = constraint.kinds.index(kind)
    values = [comparison.value_of(side) for comparison in constraint.where]
    for value in [*values, *filter(None, (constraint.value, constraint.per))]:
        if value.part != "turn" and value.of_call(call, "") is UNKNOWN:
            return value.unknown_of(call)
    if constraint.template == "sum" and constraint.value is not None:
        value = constraint.value
        read = value.of_call(call, "")
        if isinstance(read, NoValue) or number_of(read) is None:
            return NotEvaluated.not_captured(f"{value.written} of {call.name}: expected a number to add up")
    if constraint.within is not None and not call.end_unix_nano:
        return NotEvaluated.not_captured(f"times of {call.name}: absent")
    return None


def turn_of(run: AgentRun, at: int) -> Read:
    """The number of the model turn that requested the call at a place; NONE: no model did."""
    turn = run.call_turns[at] if at < len(run.call_turns) else None
    return UNKNOWN if turn is None else turn or NONE


def event_name(run: AgentRun, at: int) -> str:
    """The event at a place as findings count them: `call 2, refund`, `message 1, user` or `the answer`.

    A call of another agent names it: `call 2, refund of clerk`.
    """
    if at < len(run.calls):
        call = run.calls[at]
        return f"call {at + 1}, {call.name}" + (f" of {call.agent}" if call.agent else "")
    at -= len(run.calls)
    return f"message {at + 1}, {run.messages[at].role}" if at < len(run.messages) else "the answer"


def occurs(target: Target, run: AgentRun) -> bool | NotEvaluated:
    """Whether an event of this kind is in `run` as it stands, or why that is not known.

    Of a run that is not complete more may come.
    """
    findings = CallConstraints([CallConstraint("existence", (target,))], EVALUATED_CATEGORIES).evaluate(run)
    return findings if isinstance(findings, NotEvaluated) else findings[0].holds is True


def share_of(findings: Sequence[Finding]) -> float:
    """The share by weight of the constraints that apply that hold; 1 where none applies."""
    held = broken = 0.0
    for finding in findings:
        if finding.applies:
            if finding.holds is True:
                held += finding.constraint.weight
            else:
                broken += finding.constraint.weight
    return _share(held, broken)


def attainable_share(findings: Sequence[Finding]) -> tuple[float, float]:
    """The lowest and the highest share of constraints that hold that any further calls could lead to.

    Exact for each constraint alone: whether it is settled, whatever calls come, wherever they stand.
    """
    failing = _weight(finding for finding in findings if finding.can_fail)
    settled = _weight(finding for finding in findings if not (finding.can_fail or finding.can_lapse))
    holding = _weight(finding for finding in findings if finding.can_hold)
    lost = _weight(finding for finding in findings if not (finding.can_hold or finding.can_lapse))
    return _share(settled, failing), _share(holding, lost)


def _weight(findings: Iterable[Finding]) -> float:
    return sum([finding.constraint.weight for finding in findings])


class _Sequence:
    """Events with their places in the run, and their steps: calls that ran side by side share one."""

    def __init__(self, run: AgentRun, places: Sequence[int], may_change: bool, beside: bool) -> None:
        self._run = run
        self._calls = [run.calls[at] for at in places]
        self._places = places
        self._may_change = may_change
        self.length = len(places)
        self.beside = beside
        self._attempts = MAX_ASSIGNMENT_ATTEMPTS
        self._budget = MAX_MATCHED_CHARACTERS
        self._events_left = _MAX_EVENTS
        self._events: dict[tuple[int, tuple[JsonPath, ...]], list[_Event]] = {}
        self._mixed: dict[frozenset[str], _Steps] = {}
        self._pairs_left = _MAX_PAIRS
        self._values: dict[tuple[int, int], Read] = {}

    def value(self, value: EventValue, at: int) -> Read:
        """What the event at a place has there."""
        key = id(value), at
        if key not in self._values:
            run = self._run
            if value.part == "turn":
                read = UNKNOWN if self._may_change else turn_of(run, at)
            elif at < len(run.calls):
                call = run.calls[at]
                text = call.arguments_text if value.part == "args" else call.result_text
                self._spend(len(text or "") + 1 if value.part in ("args", "result") else 1)
                read = value.of_call(call, run.agent.name, may_change=self._may_change)
            else:
                at -= len(run.calls)
                read = value.of_text(run.messages[at].content if at < len(run.messages) else run.output)
            self._values[key] = read
        return self._values[key]

    def request(self, at: int) -> tuple[Read, str] | None:
        """By what the model's request of a call is known: its turn and its id; None: by nothing."""
        call = self._run.calls[at]
        return (turn_of(self._run, at), call.call_id) if call.call_id else None

    def are_near(self, first: int, second: int, seconds: float) -> bool | None:
        """Whether no more than `seconds` are between two calls; None where their times are not known."""
        one, other = self._run.calls[first], self._run.calls[second]
        starts, ends = (one.start_unix_nano, other.start_unix_nano), (one.end_unix_nano, other.end_unix_nano)
        if self._may_change or not all((*starts, *ends)):
            return None
        return max(starts) - min(ends) <= seconds * 1e9

    def count_pairs(self, number: int) -> None:
        """Note that pairs of events are compared."""
        self._pairs_left -= number
        if self._pairs_left < 0:
            raise _OverLimitError

    def name(self, at: int) -> str:
        """The event at a place, as explanations name it."""
        return event_name(self._run, at)

    @late
    def _steps(self) -> list[tuple[int, bool]]:
        """For each call its step, and whether it is alone there."""
        segments = parallel_segments(self._calls)
        return [(step, len(segment) == 1) for step, segment in enumerate(segments) for _ in segment]

    def _steps_with(self, roles: frozenset[str]) -> "_Steps":
        """The steps where messages of `roles` stand among the calls."""
        if not roles:
            return _Steps(self._steps, {})
        if roles not in self._mixed:
            run = self._run
            waiting = [
                (after, at)
                for at, (message, after) in enumerate(zip(run.messages, message_places(run), strict=True))
                if message.role in roles
            ][::-1]
            of_calls: list[tuple[int, bool]] = []
            of_messages: dict[int, int] = {}
            step = 0
            for segment in parallel_segments(self._calls):
                while waiting and waiting[-1][0] <= self._places[segment.start]:
                    of_messages[waiting.pop()[1]] = step
                    step += 1
                of_calls += [(step, len(segment) == 1)] * len(segment)
                step += 1
            for _, at in reversed(waiting):
                of_messages[at] = step
                step += 1
            of_messages[len(run.messages)] = step  # the answer
            self._mixed[roles] = _Steps(of_calls, of_messages)
        return self._mixed[roles]

    def lacks(self, kind: Target) -> bool:
        """Whether there may be events of this kind that telemetry does not show, or not where they stand."""
        if kind.kind == "call":
            return False
        if self._may_change:
            return True
        if kind.role is None:
            return self._run.output_state is not ValueState.PRESENT
        return not messages_are_known(self._run, kind.role)

    def lacks_messages(self, roles: frozenset[str]) -> bool:
        """Whether there may be messages of `roles` that telemetry does not show, or not where they stand."""
        return any(not messages_are_known(self._run, role) for role in roles - {"answer"})

    @late
    def _names(self) -> frozenset[str]:
        """The tools that were called."""
        return frozenset(call.name for call in self._calls)

    def at_end(self, end: Literal["init", "last"]) -> list[tuple[int, str]]:
        """Place and tool of the calls of the first, or of the last, step."""
        own, _ = self._steps[0 if end == "init" else -1]
        calls = zip(self._places, self._calls, self._steps, strict=True)
        return [(at, call.name) for at, call, (step, _) in calls if step == own]

    def events(
        self, kind: Target, paths: tuple[JsonPath, ...] = (), roles: frozenset[str] = frozenset()
    ) -> list[_Event]:
        """The events of a kind, in order; those that may be of it, with values that are not known, too.

        Their steps are those among the calls and the messages of `roles`.
        """
        events = self._events.get((id(kind), paths))
        if events is not None:
            return events
        events = self._events[id(kind), paths] = []
        if kind.kind != "call":
            return self._add_texts(kind, events, roles)
        names = {name for name in self._names if name in kind.tools}
        if not names:
            return events
        agent, may_change = self._run.agent.name, self._may_change
        steps = self._steps_with(roles).of_calls if roles else self._steps
        for at, call, (step, alone) in zip(self._places, self._calls, steps, strict=True):
            if call.name not in names:
                continue
            fit = kind.facts_fit(call, agent, may_change=may_change) if kind.has_facts else True
            if fit is False:
                continue
            self._events_left -= 1
            if self._events_left < 0:
                raise _OverLimitError
            sure, key = fit is True, ()
            if kind.cost or paths:
                arguments = readable_arguments(call)
                self._spend((len(call.arguments_text or "") + 1) * (kind.cost + len(paths)))
                fit = None
                if arguments is not None:
                    fit = kind.arguments_fit(arguments)
                    if fit is False:
                        continue
                sure = sure and (fit is True or not kind.cost)
                key = _key(arguments, paths)
            if kind.result_cost:
                if not returned_nothing(call):
                    self._spend((len(call.result_text or "") + 1) * kind.result_cost)
                fit = kind.result_fits(call, may_change=may_change)
                if fit is False:
                    continue
                sure = sure and fit is True
            events.append(_Event(at, step, alone, key, sure, call.is_held_back))
        if roles:  # between a text and calls side by side that are all meant stands nothing else
            sizes, own = (
                Counter(step for step, _ in steps),
                Counter(each.step for each in events if each.sure),
            )
            events[:] = [each._replace(alone=own[each.step] == sizes[each.step]) for each in events]
        return events

    def _add_texts(self, kind: Target, events: list[_Event], roles: frozenset[str]) -> list[_Event]:
        """Add the messages of a kind, or the answer."""
        run = self._run
        steps = self._steps_with(roles or frozenset(("user", "assistant"))).of_messages
        texts: list[tuple[int, JsonValue, bool]] = []
        if kind.kind == "message":
            texts = [
                (at, message.content, not run.calls or message.after is not None)
                for at, message in enumerate(run.messages)
                if kind.is_of_role(message)
            ]
        elif run.output_state is ValueState.PRESENT:
            texts = [(len(run.messages), run.output, True)]
        for at, content, has_place in texts:
            self._events_left -= 1
            if self._events_left < 0:
                raise _OverLimitError
            self._spend(len(content) + 1 if isinstance(content, str) else 1)
            fit = kind.text_fits(content)
            if fit is not False:
                sure = fit is True and has_place and not self._may_change
                events.append(_Event(len(run.calls) + at, steps[at], True, (), sure))
        return events

    def _spend(self, characters: int) -> None:
        self._attempts -= 1
        self._budget -= characters
        if self._attempts < 0 or self._budget < 0:
            raise _OverLimitError


class _Steps(NamedTuple):
    """Of each call the step and whether it is alone there; of messages and the answer the step by place."""

    of_calls: list[tuple[int, bool]]
    of_messages: dict[int, int]


class _OverLimitError(Exception):
    """More than one evaluation looks at."""


class _Partners:
    """The events of a kind by the values that they belong together by."""

    __slots__ = ("_alone_at", "_at", "_count", "_direction", "_own", "_steps")

    def __init__(self, events: Sequence[_Event], direction: int) -> None:
        self._direction = direction
        self._steps: dict[Any, list[int]] = {}
        self._count: dict[Any, int] = {}
        self._at: dict[tuple[Any, int], int] = {}
        self._alone_at: set[tuple[Any, int]] = set()
        self._own: set[tuple[Any, int]] = set()
        for event in events if direction > 0 else reversed(events):
            key, step = event.key, event.step * direction
            if key is NONE:
                continue
            self._steps.setdefault(key, []).append(step)
            self._count[key] = self._count.get(key, 0) + 1
            self._at[key, step] = self._at.get((key, step), 0) + 1
            self._own.add((key, event.at))
            if event.alone:
                self._alone_at.add((key, step))

    def meets(
        self, relation: _Relation, event: _Event, beside: bool, blockers: "_Partners | None" = None
    ) -> bool:
        """Whether one of these, other than the event itself, is within reach of `event`."""
        key = event.key
        own = (key, event.at) in self._own
        if relation.reach == "any":
            return self._count.get(key, 0) > own
        step = event.step * self._direction
        if beside and not relation.negative and self._at.get((key, step), 0) > own:
            return True
        if relation.reach == "next":
            if beside and relation.negative:  # of several side by side another one may have stood between
                return event.alone and (key, step + 1) in self._alone_at
            return (key, step + 1) in self._at
        steps = self._steps.get(key)
        if not steps:
            return False
        if relation.reach == "later" or blockers is None:
            return steps[-1] > step
        nearest = bisect_right(steps, step)
        if nearest == len(steps):
            return False
        between = blockers._steps.get(key, [])
        first = bisect_right(between, step)
        return first == len(between) or between[first] >= steps[nearest]


def _end(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    if not sequence.length:
        return Finding(constraint, applies=False, can_lapse=True)
    finding = Finding(constraint)
    init = constraint.template == "init"
    standing = sequence.at_end("init" if init else "last")
    events = {event.at: event.sure for event in sequence.events(constraint.kinds[0])}
    if any(events.get(at) for at, _ in standing):
        return finding
    finding.holds = None if any(at in events for at, _ in standing) else False
    if finding.holds is False:
        at, name = standing[0 if init else -1]
        finding.unmet = [at]
        finding.text = f"the {'first' if init else 'last'} call is {name}"
    return finding


def _count(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    times = constraint.times
    events = sequence.events(constraint.kinds[0])
    most, fewest = len(events), sum(event.sure for event in events)
    finding = Finding(constraint)
    if constraint.template == "existence":
        sign = ">="
        finding.holds = True if fewest >= times else None if most >= times else False
        finding.can_fail = fewest < times
    else:
        limit = times if constraint.template == "absence" else times + 1
        sign = "<" if constraint.template == "absence" else "="
        finding.can_hold = fewest < limit
        is_low = constraint.template == "exactly" and most < times
        if fewest >= limit or is_low:
            finding.holds = False
        elif fewest < most and (most >= limit or (constraint.template == "exactly" and fewest < times)):
            finding.holds = None
    if constraint.roles and sequence.lacks(constraint.kinds[0]):
        settled = finding.holds is True if constraint.template == "existence" else not finding.can_hold
        finding.holds = finding.holds if settled else None
    if finding.holds is False:
        finding.unmet = [event.at for event in events if event.sure]
        finding.text = f"Actual: {fewest}, Expected: {sign} {times}"
    return finding


def _choice(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    first, second = (sequence.events(kind) for kind in constraint.kinds)
    finding = Finding(constraint)
    has_sure = any(event.sure for event in (*first, *second))
    finding.can_fail = not has_sure
    finding.holds = True if has_sure else None if first or second else False
    if finding.holds is False:
        finding.text = "neither was called"
    if constraint.template == "exclusive_choice":
        finding.can_fail = True
        sure_pair = _pair([event for event in first if event.sure], [event for event in second if event.sure])
        if sure_pair:
            finding.holds, finding.can_hold = False, False
            finding.unmet, finding.text = sorted(sure_pair), "both were called"
        elif _pair(first, second):
            finding.holds = None
    return finding


def _pair(first: Sequence[_Event], second: Sequence[_Event]) -> tuple[int, int] | None:
    """Two different calls, one of each."""
    pairs = ((one.at, other.at) for one in first[:2] for other in second[:2] if one.at != other.at)
    return next(pairs, None)


@dataclass(slots=True)
class _Group:
    """The events of a kind with one value of `per`: what they are about, and whether they surely are."""

    name: str
    events: list[tuple[_Event, Read, bool]] = field(default_factory=list)
    stray: int = 0
    """Events that may belong to it: what `per` looks at is not known of them."""

    @property
    def doubts(self) -> int:
        """How many events may be, or may not, in it, or have a value that is not known."""
        return self.stray + sum(not is_sure or value is UNKNOWN for _, value, is_sure in self.events)


def _of_all(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    """`constant`, `unique`, `sum` and `count`."""
    finding = Finding(constraint)
    check = _GROUP_CHECKS[constraint.template]
    verdicts: list[bool | None] = []
    for group in _groups(constraint, sequence):
        verdict = check(constraint, group)
        verdicts.append(verdict.holds)
        if verdict.holds is False:
            finding.text = finding.text or verdict.text + group.name
            finding.unmet += verdict.places
            finding.can_hold = finding.can_hold and not verdict.is_final
    finding.holds = all_fit(verdicts)
    if constraint.template == COUNT and sequence.lacks(constraint.kinds[0]):
        finding.holds = None if finding.can_hold else False
    finding.unmet = sorted(set(finding.unmet)) if finding.holds is False else []
    if constraint.template == COUNT and constraint.most is None and constraint.per is None:
        finding.can_fail = finding.holds is not True
    return finding


def _groups(constraint: CallConstraint, sequence: _Sequence) -> list[_Group]:
    """The groups of `per`, of which there is one without it; what has no value of it belongs to none."""
    kind, per, about = constraint.kinds[0], constraint.per, constraint.value
    groups: dict[Any, _Group] = {} if per is not None else {(): _Group("")}
    stray = 0
    by_turn, requests = constraint.looks_at_turns, set[tuple[Read, str]]()
    for event in sequence.events(kind, (), constraint.roles):
        if by_turn and (request := sequence.request(event.at)) is not None:
            if request in requests:
                continue  # it was tried again, and not requested again
            requests.add(request)
        value: Read = None if about is None else sequence.value(about, event.at)
        if value is NONE and constraint.template != "sum":
            continue
        key: Any = ()
        if per is not None:
            read = sequence.value(per, event.at)
            if read is UNKNOWN:
                stray += 1
            if isinstance(read, NoValue):
                continue
            key = equality_key(read)
            if key not in groups:
                groups[key] = _Group(f" for {per.written} {shown_value(read)}")
        groups[key].events.append((event, value, event.sure))
    if stray and (not groups or (constraint.least or 0) > 1):
        groups[()] = _Group("")  # they may be of a value of their own
    for group in groups.values():
        group.stray = stray
    return [*groups.values()]


class _Verdict(NamedTuple):
    """Whether a template holds for a group; else how it is broken, by which events, and whether for good."""

    holds: bool | None
    text: str = ""
    places: Sequence[int] = ()
    is_final: bool = False


def _constant_in(constraint: CallConstraint, group: _Group) -> _Verdict:
    surely: dict[Any, tuple[_Event, Read]] = {}
    for event, value, is_sure in group.events:
        if is_sure and not isinstance(value, NoValue):
            surely.setdefault(equality_key(value), (event, value))
    if len(surely) > 1:
        shown = [f"{shown_value(value)} in call {event.at + 1}" for event, value in surely.values()][:2]
        places = [event.at for event, _ in surely.values()][1:]
        return _Verdict(False, f"{', '.join(shown)}, Expected: one value", places, is_final=True)
    known = [value for _, value, _ in group.events if not isinstance(value, NoValue)]
    unknown = group.stray + len(group.events) - len(known)
    is_one = len({equality_key(value) for value in known}) <= 1
    return _Verdict(True if is_one and (not unknown or (unknown == 1 and not known)) else None)


def _unique_in(constraint: CallConstraint, group: _Group) -> _Verdict:
    surely: dict[Any, _Event] = {}
    may_repeat = False
    possible: set[Any] = set()
    for event, value, is_sure in group.events:
        if isinstance(value, NoValue):
            continue
        key = equality_key(value)
        if is_sure and key in surely:
            text = f"{shown_value(value)} in calls {surely[key].at + 1} and {event.at + 1}, Expected: once"
            return _Verdict(False, text, [event.at], is_final=True)
        if is_sure:
            surely[key] = event
        may_repeat = may_repeat or key in possible
        possible.add(key)
    unknown = group.stray + sum(value is UNKNOWN for _, value, _ in group.events)
    return _Verdict(None if may_repeat or (unknown and len(group.events) + group.stray > 1) else True)


def _sum_in(constraint: CallConstraint, group: _Group) -> _Verdict:
    numbers = [None if isinstance(value, NoValue) else number_of(value) for _, value, _ in group.events]
    if group.doubts or None in numbers:
        return _Verdict(None)
    # As decimals, so that 0.1 and 0.2 are 0.3.
    total = sum((Decimal(repr(number)) for number in numbers), Decimal())
    verdict = _bounded(constraint, float(total), float(total), [event.at for event, _, _ in group.events])
    return verdict._replace(is_final=False)  # a further one may be negative


def _count_in(constraint: CallConstraint, group: _Group) -> _Verdict:
    fewest = sum(is_sure for _, _, is_sure in group.events)
    places = [event.at for event, _, is_sure in group.events if is_sure]
    verdict = _bounded(constraint, fewest, len(group.events) + group.stray, places)
    if not fewest and constraint.per is not None and verdict.holds is False:
        return _Verdict(None)  # the value may not occur at all
    return verdict


def _bounded(constraint: CallConstraint, lowest: float, highest: float, places: list[int]) -> _Verdict:
    """Whether a number from `lowest` to `highest` is within the bounds."""
    least, most = constraint.least, constraint.most
    if most is not None and lowest > most:
        text = f"Actual: {lowest:.15g}, Expected: <= {most:.15g}"
        return _Verdict(False, text, places, is_final=True)
    if least is not None and highest < least:
        return _Verdict(False, f"Actual: {highest:.15g}, Expected: >= {least:.15g}", places)
    is_within = (most is None or highest <= most) and (least is None or lowest >= least)
    return _Verdict(True if is_within else None)


_GROUP_CHECKS: Mapping[str, Callable[[CallConstraint, _Group], _Verdict]] = {
    "constant": _constant_in,
    "unique": _unique_in,
    "sum": _sum_in,
    COUNT: _count_in,
}


def _relation(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    relation = RELATIONS[constraint.template]
    kinds = [
        sequence.events(kind, tuple(paths[side] for paths in constraint.same), constraint.roles)
        for side, kind in enumerate(constraint.kinds)
    ]
    finding = Finding(constraint)
    known = [any(event.sure for event in events) for events in kinds]
    finding.can_lapse = not any(known[side] for side in relation.applies_by)
    if finding.can_lapse:
        finding.applies = None if any(kinds[side] for side in relation.applies_by) else False
    is_possible = False
    compares = constraint.compares
    for side in relation.sides:
        activations, targets = kinds[side], kinds[1 - side]
        if compares:
            pairs = _Pairs(constraint, side, activations, targets, sequence)
            broken, may_break = pairs.broken(activations)
        else:
            broken, may_break = _broken(relation, side, activations, targets, sequence.beside)
        if side and relation.reach != "any" and any(event.held_back for event in targets):
            # What waits or was refused guards nothing that was done, only what waits as well.
            executed = [event for event in activations if not event.held_back]
            done = [event for event in targets if not event.held_back]
            if compares:
                unguarded, may_lack = _Pairs(constraint, side, executed, done, sequence).broken(executed)
            else:
                unguarded, may_lack = _broken(relation, side, executed, done, sequence.beside)
            broken = sorted({*broken, *unguarded}, key=lambda event: event.at)
            may_break = may_break or may_lack
        if broken and not finding.unmet:
            finding.text = _relation_text(constraint, side, broken[0])
            if compares:
                finding.text += pairs.example(broken[0])
        finding.unmet += [event.at for event in broken]
        is_possible = is_possible or may_break
        if relation.negative:
            finding.can_hold = finding.can_hold and not (broken and relation.reach not in ("next", "beside"))
        elif any(event.sure and event.key is NONE for event in activations):
            finding.can_hold = False  # nothing can belong to a call without a value
    finding.unmet = sorted(set(finding.unmet))
    finding.holds = False if finding.unmet else None if is_possible else True
    if constraint.roles:
        lacks = [sequence.lacks(kind) for kind in constraint.kinds]
        if relation.reach == "next" and sequence.lacks_messages(constraint.roles):
            lacks[1 - relation.sides[0]] = True
        _allow_for_unknown(finding, relation, lacks)
    if relation.reach == "any" and not (relation.negative or constraint.same or compares):
        finding.can_fail = is_possible or not all(known[1 - side] for side in relation.sides)
    return finding


def _allow_for_unknown(finding: Finding, relation: _Relation, lacks: Sequence[bool]) -> None:
    """Leave open what events decide that telemetry does not show: those of the kinds that it `lacks`."""
    if any(lacks[side] for side in relation.applies_by) and not finding.applies:
        finding.applies, finding.can_lapse = None, True
    if finding.applies is False or not any(lacks):
        return
    if finding.holds is False:
        stands = not finding.can_hold
    else:
        is_met_for_good = relation.reach in ("any", "later") and not (
            relation.negative or finding.constraint.nearest
        )
        stands = is_met_for_good and not any(lacks[side] for side in relation.sides)
    if not stands:
        finding.holds = None


def _broken(
    relation: _Relation, side: int, activations: Sequence[_Event], targets: Sequence[_Event], beside: bool
) -> tuple[list[_Event], bool]:
    """The activations, calls of one side, that surely break the relation, and whether any may."""
    direction = -1 if side else 1
    known = [event for event in activations if event.key is not UNKNOWN]
    sure = [event for event in known if event.sure]
    unread = [event._replace(key=()) for event in targets if event.key is UNKNOWN]
    read = [event for event in targets if event.key is not UNKNOWN]
    possible = certain = _Partners(read, direction)
    if unread or not all(event.sure for event in targets):
        certain = _Partners([event for event in read if event.sure], direction)
    if relation.negative:
        broken = [event for event in sure if certain.meets(relation, event, beside)]
        may_break = (
            bool(unread)
            or len(known) < len(activations)
            or any(possible.meets(relation, event, beside) for event in known)
        )
        return broken, may_break and bool(targets) and bool(activations)
    blockers = sure_blockers = _Partners(sure, direction)
    if len(sure) < len(known):
        blockers = _Partners(known, direction)
    broken = [event for event in sure if not possible.meets(relation, event, beside, sure_blockers)]
    if certain is possible and len(sure) == len(activations):
        return broken, bool(broken)  # mostly nothing is in doubt
    if unread and broken:
        anyone, no_blockers = _Partners(unread, direction), _Partners((), direction)
        broken = [
            event
            for event in broken
            if event.key is NONE or not anyone.meets(relation, event._replace(key=()), beside, no_blockers)
        ]
    may_break = len(known) < len(activations) or not all(
        certain.meets(relation, event, beside, blockers) for event in known
    )
    return broken, may_break


class _Pairs:
    """The events of the other side, one by one, for constraints that compare two events.

    `side` is that of the activations, events that need or must not have a partner.
    """

    def __init__(
        self,
        constraint: CallConstraint,
        side: int,
        activations: Sequence[_Event],
        targets: Sequence[_Event],
        sequence: _Sequence,
    ) -> None:
        self._constraint, self._side, self._sequence = constraint, side, sequence
        self._relation = RELATIONS[constraint.template]
        self._direction = -1 if side else 1
        self._read: tuple[dict[int, tuple[Read, ...]], dict[int, tuple[Read, ...]]] = ({}, {})
        self._indexes: dict[Any, ValueIndex] = {}
        self._by_key = self._grouped(targets)
        self._all = self._ordered(targets)
        self._by_place = {event.at: event for event in targets} if constraint.nearest else {}
        self._activations = self._grouped(activations) if self._relation.reach == "alternate" else {}
        self._nearest: dict[Any, tuple[list[int], list[_Event]]] = {}
        self._can_look_up = (
            len(constraint.where) == 1
            and constraint.within is None
            and not constraint.nearest
            and self._relation.reach == "later"
            and UNKNOWN not in self._by_key
            and all(event.sure for event in targets)
        )
        if constraint.nearest:
            kind = constraint.identities[1 - side]
            paths = tuple(pair[1 - side] for pair in constraint.same)
            self._nearest = self._grouped(sequence.events(kind, paths, constraint.roles))

    def broken(self, activations: Sequence[_Event]) -> tuple[list[_Event], bool]:
        """The activations that surely break the relation, and whether any may."""
        broken: list[_Event] = []
        may_break = False
        for event in activations:
            has_partner = self._has_partner(event)
            if has_partner is self._relation.negative and event.sure:
                broken.append(event)
            may_break = may_break or has_partner is not (not self._relation.negative)
        return broken, may_break

    def example(self, event: _Event) -> str:
        """The partner by which `event` breaks the relation, or the nearest that is none, with its values."""
        shown = None
        for other, _ in self._within_reach(event):
            if not self._relation.negative or self._fits(event, other):
                shown = other
                break
        if shown is None and self._constraint.nearest:
            others = [other for other in self._nearest_ones(event)[0] if other.at != event.at]
            return f" ({self._sequence.name(others[-1].at)})" if others else ""
        if shown is None:
            return ""
        values = [
            comparison.shown(*((one, two) if self._side == 0 else (two, one)))
            for comparison, one, two in zip(
                self._constraint.where,
                self._values_of(event, self._side),
                self._values_of(shown, 1 - self._side),
                strict=True,
            )
        ]
        return f" ({'; '.join([self._sequence.name(shown.at), *values])})"

    def _values_of(self, event: _Event, side: int) -> tuple[Read, ...]:
        """What `event`, of a side, is compared by."""
        values = self._read[side].get(event.at)
        if values is None:
            values = self._read[side][event.at] = tuple(
                self._sequence.value(comparison.value_of(side), event.at)
                for comparison in self._constraint.where
            )
        return values

    def _ordered(self, events: Iterable[_Event]) -> tuple[list[int], list[_Event]]:
        """Steps and events from the one that is first in the direction of the relation."""
        inorder = list(events)[:: self._direction]
        return [event.step * self._direction for event in inorder], inorder

    def _grouped(self, events: Sequence[_Event]) -> dict[Any, tuple[list[int], list[_Event]]]:
        groups: dict[Any, list[_Event]] = {}
        for event in events:
            groups.setdefault(event.key, []).append(event)
        return {key: self._ordered(group) for key, group in groups.items()}

    def _has_partner(self, event: _Event) -> bool | None:
        if event.key is NONE:
            return False
        if NONE in self._values_of(event, self._side):
            return False
        known = self._look_up(event)
        if known is not None:
            return known
        verdict: bool | None = False
        for other, is_sure in self._within_reach(event):
            fits = self._fits(event, other)
            if fits and is_sure:
                return True
            if fits is not False:
                verdict = None
        return verdict

    def _look_up(self, event: _Event) -> bool | None:
        """`_has_partner` without trying each; None where that does not decide."""
        if not self._can_look_up or event.key is UNKNOWN:
            return None
        steps, events = self._by_key.get(event.key, ((), ()))
        if len(events) < _INDEXED:
            return None
        index = self._indexes.get(event.key)
        if index is None:
            (comparison,) = self._constraint.where
            other = 1 - self._side
            values = [self._values_of(each, other)[0] for each in events]
            index = self._indexes[event.key] = ValueIndex(comparison, other, values)
        step = event.step * self._direction
        begin, _ = self._bounds(steps, step)
        if any(each.at == event.at for each in events[begin : bisect_right(steps, step)]):
            return None  # it is no partner of itself
        return index.has_partner(self._values_of(event, self._side)[0], begin)

    def _fits(self, event: _Event, other: _Event) -> bool | None:
        """Whether the two compare as required."""
        constraint, side = self._constraint, self._side
        verdict: bool | None = True
        own, others = self._values_of(event, side), self._values_of(other, 1 - side)
        for comparison, one, two in zip(constraint.where, own, others, strict=True):
            held = comparison.holds(one, two) if side == 0 else comparison.holds(two, one)
            if held is False:
                return False
            verdict = verdict and held
        if constraint.within is not None:
            near = self._sequence.are_near(event.at, other.at, constraint.within)
            return False if near is False else verdict and near
        return verdict

    def _within_reach(self, event: _Event) -> Iterator[tuple[_Event, bool]]:
        """The events that may be partners of `event`, nearest first, and whether they surely are."""
        key = event.key
        if self._constraint.nearest:
            yield from self._next_ones(event)
            return
        if key is UNKNOWN:
            groups = [(self._all, False)]
        else:
            groups = [(self._by_key[key], True)] if key in self._by_key else []
            if UNKNOWN in self._by_key:
                groups.append((self._by_key[UNKNOWN], False))
        step = event.step * self._direction
        last_for_sure, last = self._limits(event, step)
        for (steps, events), is_sure in groups:
            begin, end = self._bounds(steps, step)
            for place in range(begin, end):
                other = events[place]
                if steps[place] > last or other.at == event.at or other.key is NONE:
                    continue
                self._sequence.count_pairs(1)
                is_in_place = self._is_in_place(event, other, steps[place] - step)
                if is_in_place is not False:
                    yield other, is_sure and other.sure and steps[place] <= last_for_sure

    def _bounds(self, steps: Sequence[int], step: int) -> tuple[int, int]:
        reach = self._relation.reach
        if reach == "any":
            return 0, len(steps)
        with_own = reach == "beside" or (self._sequence.beside and not self._relation.negative)
        begin = bisect_left(steps, step) if with_own else bisect_right(steps, step)
        if reach == "beside":
            return begin, bisect_right(steps, step)
        return begin, bisect_right(steps, step + 1) if reach == "next" else len(steps)

    def _is_in_place(self, event: _Event, other: _Event, distance: int) -> bool:
        """Whether `other` is the neighbour for certain where it must not be: alone, as is `event`."""
        relation = self._relation
        if relation.reach != "next" or not relation.negative or not self._sequence.beside:
            return True
        return event.alone and other.alone and distance == 1

    def _limits(self, event: _Event, step: int) -> tuple[float, float]:
        """Up to which steps partners count for certain, and at all: where the next activation stands."""
        if event.key not in self._activations:
            return math.inf, math.inf
        steps, events = self._activations[event.key]
        begin = bisect_right(steps, step)
        last_for_sure = steps[begin] if begin < len(steps) else math.inf
        last = next((steps[at] for at in range(begin, len(steps)) if events[at].sure), math.inf)
        return last_for_sure, last

    def _next_ones(self, event: _Event) -> Iterator[tuple[_Event, bool]]:
        """The partners of `event` at the nearest step at which there is any of their kind."""
        if event.key is UNKNOWN:
            yield from ((other, False) for other in self._all[1] if other.at != event.at)
            return
        nearest, is_sure = self._nearest_ones(event)
        self._sequence.count_pairs(len(nearest))
        for other in nearest:
            partner = self._by_place.get(other.at)
            if partner is not None:
                yield partner, is_sure and partner.sure

    def _nearest_ones(self, event: _Event) -> tuple[list[_Event], bool]:
        """Those of their kind that may be the nearest of `event`, and whether it is one of them for certain.

        Mostly one; several where they ran side by side, or it is open whether some are of the kind.
        """
        step = event.step * self._direction
        nearest: list[_Event] = []
        is_sure = True
        for key in (event.key, UNKNOWN):
            steps, events = self._nearest.get(key, ((), ()))
            begin = bisect_left(steps, step) if self._sequence.beside else bisect_right(steps, step)
            at_step: int | None = None
            for place in range(begin, len(steps)):
                other = events[place]
                if other.at == event.at:
                    continue
                if at_step is not None and steps[place] != at_step:
                    break
                if steps[place] > step and other.sure and key is not UNKNOWN:
                    at_step = steps[place]
                elif not other.sure or key is UNKNOWN:
                    is_sure = False
                nearest.append(other)
        return nearest, is_sure


_CHECKS: Mapping[str, Callable[[CallConstraint, _Sequence], Finding]] = {
    **dict.fromkeys(ENDS, _end),
    **dict.fromkeys(COUNTS, _count),
    **dict.fromkeys(CHOICES, _choice),
    **dict.fromkeys(RELATIONS, _relation),
    **dict.fromkeys(_GROUP_CHECKS, _of_all),
}


def _finding(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    finding = _CHECKS[constraint.template](constraint, sequence)
    if constraint.with_calls and not sequence.length:
        finding.applies, finding.can_lapse = False, True
    return finding


def _relation_text(constraint: CallConstraint, side: int, event: _Event) -> str:
    """How `event`, a call of one side, breaks the constraint."""
    relation = RELATIONS[constraint.template]
    target, other = constraint.kinds[1 - side].label, constraint.kinds[side].label
    where = "before" if side else "after"
    paths = [pair[side].text for pair in constraint.same]
    if event.key is NONE:
        return f"it has no {' and '.join(paths)}"
    place = {
        "any": "in the run",
        "next": f"right {where} it",
        "later": f"{where} it",
        "alternate": f"{where} it, up to the {'last' if side else 'next'} {other}",
        "beside": "in parallel to it",
    }[relation.reach]
    if constraint.nearest:
        place = f"as the {'last' if side else 'next'} {constraint.identities[1 - side].label} {place}"
    shared = f" with the same {' and '.join(paths)}" if paths else ""
    if constraint.within is not None:
        shared += f" within {format_duration(constraint.within)}"
    if constraint.where:
        shared += f" where {' and '.join(comparison.written for comparison in constraint.where)}"
    return f"{target} {place}{shared}" if relation.negative else f"no {target} {place}{shared}"


def _key(arguments: JsonObject | None, paths: tuple[JsonPath, ...]) -> Any:
    """The values at `paths`, in a form that compares; `NONE`: one is missing; `UNKNOWN`: not known."""
    if arguments is None:
        return UNKNOWN if paths else ()
    keys = []
    for path in paths:
        values = path.values(arguments)
        if not values:
            return UNKNOWN if has_masked_key(arguments) else NONE
        if any(map(contains_mask, values)):
            return UNKNOWN
        keys.append(equality_key(values))
    return tuple(keys)


def _share(held: float, broken: float) -> float:
    return held / (held + broken) if broken else 1.0
