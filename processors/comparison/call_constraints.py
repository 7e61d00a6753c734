"""Constraints on the sequence of calls: the templates of DECLARE, checked on one run.

Names and meaning are those of process mining (Pesic, Schonenberg and van der Aalst, "DECLARE: Full Support
for Loosely-Structured Processes", 2007; chain precedence with the past as Di Ciccio and Montali, "Declarative
Process Specifications", 2022). Where a call is of both kinds that a template relates, the other one has to
be another call. Calls that ran side by side stand at one place of the sequence.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from processors.comparison.alignment import parallel_segments
from processors.comparison.captured_value import (
    call_label,
    looks_failed,
    readable_arguments,
    took_effect,
    unknown_arguments,
)
from processors.comparison.expected_value import Expected, compile_expected, fits, fits_members, matching_cost
from processors.comparison.json_paths import JsonPath
from processors.comparison.json_schema_check import SchemaTooComplexError
from processors.comparison.tool_selection import ToolPatterns
from processors.comparison.value_equality import equality_key
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    MAX_MATCHED_CHARACTERS,
    MAX_ORDERED_CALLS,
    AgentRun,
    CallCategory,
    JsonObject,
    NotEvaluated,
    ToolCall,
    contains_mask,
    has_masked_key,
    late,
    may_be_masked,
)

CallStatus: TypeAlias = Literal["any", "succeeded", "failed"]
"""Which calls are meant: all; those that took effect (`took_effect`); those that did not."""

_Reach: TypeAlias = Literal["any", "later", "next", "alternate"]
_MAX_EVENTS: Final = 10_000
"""Calls, once for each kind they are of, that one evaluation looks at. Each costs about two microseconds."""


class _Demand(NamedTuple):
    """Every call of the first kind needs one of the second within reach, after it.

    `backward`: every call of the second needs one of the first before it. `negative`: it must not have one.
    """

    reach: _Reach
    backward: bool = False
    negative: bool = False


class _Template(NamedTuple):
    demands: tuple[_Demand, ...]
    applies_by: tuple[int, ...]
    """The sides of which one call makes the constraint apply."""


def _forward(reach: _Reach) -> _Template:
    return _Template((_Demand(reach),), (0,))


def _backward(reach: _Reach) -> _Template:
    return _Template((_Demand(reach, backward=True),), (1,))


def _both(reach: _Reach) -> _Template:
    return _Template((_Demand(reach), _Demand(reach, backward=True)), (0, 1))


def _never(reach: _Reach, applies_by: tuple[int, ...] = (0,)) -> _Template:
    return _Template((_Demand(reach, negative=True),), applies_by)


RELATIONS: Mapping[str, _Template] = MappingProxyType({
    "responded_existence": _forward("any"),
    "response": _forward("later"),
    "precedence": _backward("later"),
    "succession": _both("later"),
    "alternate_response": _forward("alternate"),
    "alternate_precedence": _backward("alternate"),
    "alternate_succession": _both("alternate"),
    "chain_response": _forward("next"),
    "chain_precedence": _backward("next"),
    "chain_succession": _both("next"),
    "co_existence": _both("any"),
    "not_co_existence": _never("any", applies_by=(0, 1)),
    "not_response": _never("later"),
    "not_chain_response": _never("next"),
})  # fmt: skip
"""The templates that relate each call of one kind to calls of the other."""

CHOICES: Final = ("choice", "exclusive_choice")
"""The templates that require one of two kinds."""
COUNTS: Final = ("existence", "absence", "exactly")
"""The templates that bound a number of calls."""
ENDS: Final = ("init", "last")
"""The templates of how a run begins or ends."""


class CallCondition:
    """A kind of calls: of a tool, with arguments among others that fit, and maybe only if they took effect.

    In `tool`, the name of the tool, `*` and `?` are allowed.

    Raises:
        ValueError: a matcher in `arguments` cannot be used.
    """

    __slots__ = ("_expected", "_status", "cost", "label", "tool", "tools")

    def __init__(
        self,
        tool: str,
        arguments: JsonObject | None = None,
        status: CallStatus = "any",
    ) -> None:
        self.tool = tool
        self.tools = ToolPatterns([tool])
        self._expected: Expected = compile_expected(arguments) if arguments else None
        self._status = status
        self.cost = 0 if self._expected is None else 1 + matching_cost(self._expected)
        """What a character of the arguments costs to compare; 0: they need not be known."""
        self.label = call_label(tool, arguments) if arguments else tool
        if status != "any":
            self.label += f" {status}"

    @property
    def is_by_name(self) -> bool:
        """Whether neither arguments nor the outcome of a call matter."""
        return not self.cost and self._status == "any"

    def status_fits(self, call: ToolCall, *, may_change: bool) -> bool | None:
        """Whether the call ended as required; None where `may_change` and that may still change."""
        if self._status == "any":
            return True
        if may_change and not (call.executed and looks_failed(call)):
            return None
        return took_effect(call) == (self._status == "succeeded")

    def arguments_fit(self, arguments: JsonObject) -> bool | None:
        """Whether `arguments` hold the expected ones; None where masks in them leave that open.

        Raises:
            SchemaTooComplexError: a schema could not be checked within its bounds.
        """
        if isinstance(self._expected, Mapping):
            return fits_members(self._expected, arguments, subset=True)
        return self._expected is None or fits(self._expected, arguments)


@dataclass(frozen=True, slots=True)
class CallConstraint:
    """One template with its kinds of calls.

    `times` counts for `existence`, `absence` and `exactly`. `same` are paths into the arguments of the two
    calls of a relation, by which they belong together. `with_calls`: it applies only to runs with calls.
    """

    template: str
    kinds: tuple[CallCondition, ...]
    times: int = 1
    same: tuple[tuple[JsonPath, JsonPath], ...] = ()
    with_calls: bool = False

    @property
    def label(self) -> str:
        """The constraint as explanations name it."""
        shown = [kind.label for kind in self.kinds]
        if self.template in COUNTS and self.times != 1:
            shown.insert(0, str(self.times))
        return f"{self.template}({', '.join(shown)})"


@dataclass(slots=True)
class Finding:
    """The result of one constraint.

    `applies` and `holds` are None where arguments that are not known decide; `holds` means nothing where the
    constraint does not apply. `unmet` are the calls, by their place in `AgentRun.calls`, that break it;
    `text` states how the first of them, or the run, does. `count` is the number of calls of the kind, where
    the template counts them, and `of` that of all calls. The rest is what further calls could make of it.
    """

    constraint: CallConstraint
    of: int
    applies: bool | None = True
    holds: bool | None = True
    unmet: list[int] = field(default_factory=list)
    text: str = ""
    count: int = 0
    can_hold: bool = True
    can_fail: bool = True
    can_lapse: bool = False


class _Key(Enum):
    UNKNOWN = 0
    NONE = 1


_UNKNOWN, _NONE = _Key.UNKNOWN, _Key.NONE
"""In place of values: arguments that are not known, and arguments that lack one."""


class _Event(NamedTuple):
    """A call of a kind: its place in the run and in the sequence, what `same` picks, whether it is sure.

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
        self._named = ToolPatterns(kind.tool for constraint in constraints for kind in constraint.kinds)
        self._beside = not strict

    def check(self, run: AgentRun, *, may_change: bool = False) -> list[Finding] | NotEvaluated:
        """A finding for each constraint; over the limits none.

        `may_change`: further spans may show how a call ended.
        """
        named, categories = self._named, self._categories
        seen = [at for at, call in enumerate(run.calls) if call.category in categories or call.name in named]
        sequence = _Sequence([run.calls[at] for at in seen], seen, may_change)
        if sequence.length > MAX_ORDERED_CALLS:
            return NotEvaluated.over_limit(f"{sequence.length} tool calls, at most {MAX_ORDERED_CALLS}")
        try:
            return [self._finding(constraint, sequence) for constraint in self._constraints]
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

    def _unknown(self, run: AgentRun, constraint: CallConstraint) -> NotEvaluated:
        masked: ToolCall | None = None
        for call in run.calls:
            if any(call.name in kind.tools for kind in constraint.kinds):
                if readable_arguments(call) is None:
                    return unknown_arguments(call)
                if masked is None and may_be_masked(call.arguments_text):
                    masked = call
        if masked is not None:
            return unknown_arguments(masked)
        raise AssertionError("a constraint is in doubt through a call whose arguments are not known")

    def _finding(self, constraint: CallConstraint, sequence: "_Sequence") -> Finding:
        if constraint.template in ENDS:
            finding = _end(constraint, sequence)
        elif constraint.template in COUNTS:
            finding = _count(constraint, sequence)
        elif constraint.template in CHOICES:
            finding = _choice(constraint, sequence)
        else:
            finding = self._relation(constraint, sequence)
        if constraint.with_calls and not sequence.length:
            finding.applies, finding.can_lapse = False, True
        return finding

    def _relation(self, constraint: CallConstraint, sequence: "_Sequence") -> Finding:
        template = RELATIONS[constraint.template]
        sides = [
            sequence.events(kind, tuple(paths[side] for paths in constraint.same))
            for side, kind in enumerate(constraint.kinds)
        ]
        finding = Finding(constraint, sequence.length)
        known = [any(event.sure for event in sides[side]) for side in (0, 1)]
        finding.can_lapse = not any(known[side] for side in template.applies_by)
        if finding.can_lapse:
            finding.applies = None if any(sides[side] for side in template.applies_by) else False
        is_possible = False
        for demand in template.demands:
            activations, targets = sides[demand.backward], sides[not demand.backward]
            broken, may_break = self._broken(demand, activations, targets)
            if demand.backward and demand.reach != "any" and any(event.held_back for event in targets):
                # What waits or was refused guards nothing that was done, only what waits as well.
                executed = [event for event in activations if not event.held_back]
                done = [event for event in targets if not event.held_back]
                unguarded, may_lack = self._broken(demand, executed, done)
                broken = sorted({*broken, *unguarded}, key=lambda event: event.at)
                may_break = may_break or may_lack
            if broken and not finding.unmet:
                finding.text = _relation_text(constraint, demand, broken[0])
            finding.unmet += [event.at for event in broken]
            is_possible = is_possible or may_break
            if demand.negative:
                finding.can_hold = finding.can_hold and not (broken and demand.reach != "next")
            elif any(event.sure and event.key is _NONE for event in sides[demand.backward]):
                finding.can_hold = False  # nothing can belong to a call without a value
        finding.unmet = sorted(set(finding.unmet))
        finding.holds = False if finding.unmet else None if is_possible else True
        first = template.demands[0]
        if first.reach == "any" and not (first.negative or constraint.same):
            finding.can_fail = is_possible or not all(
                known[not demand.backward] for demand in template.demands
            )
        return finding

    def _broken(
        self, demand: _Demand, activations: Sequence[_Event], targets: Sequence[_Event]
    ) -> tuple[list[_Event], bool]:
        """The activations that surely break the demand, and whether any may."""
        direction, beside = -1 if demand.backward else 1, self._beside
        known = [event for event in activations if event.key is not _UNKNOWN]
        sure = [event for event in known if event.sure]
        unread = [event._replace(key=()) for event in targets if event.key is _UNKNOWN]
        possible = certain = _Targets([event for event in targets if event.key is not _UNKNOWN], direction)
        if unread or not all(event.sure for event in targets):
            certain = _Targets(
                [event for event in targets if event.sure and event.key is not _UNKNOWN], direction
            )
        if demand.negative:
            broken = [event for event in sure if certain.meets(demand, event, beside)]
            may_break = (
                bool(unread)
                or len(known) < len(activations)
                or any(possible.meets(demand, event, beside) for event in known)
            )
            return broken, may_break and bool(targets) and bool(activations)
        blockers = sure_blockers = _Targets(sure, direction)
        if len(sure) < len(known):
            blockers = _Targets(known, direction)
        broken = [event for event in sure if not possible.meets(demand, event, beside, sure_blockers)]
        if certain is possible and len(sure) == len(activations):
            return broken, bool(broken)  # mostly nothing is in doubt
        if unread and broken:
            anyone, no_blockers = _Targets(unread, direction), _Targets((), direction)
            broken = [
                event
                for event in broken
                if event.key is _NONE or not anyone.meets(demand, event._replace(key=()), beside, no_blockers)
            ]
        may_break = len(known) < len(activations) or not all(
            certain.meets(demand, event, beside, blockers) for event in known
        )
        return broken, may_break


def share_of(findings: Sequence[Finding]) -> float:
    """The share of the constraints that apply that hold; 1 where none applies."""
    applying = [finding for finding in findings if finding.applies]
    held = sum(finding.holds is True for finding in applying)
    return _share(held, len(applying) - held)


def attainable_share(findings: Sequence[Finding]) -> tuple[float, float]:
    """The lowest and the highest share of constraints that hold that any further calls could lead to.

    Exact for each constraint alone: whether it is settled, whatever calls come, wherever they stand.
    """
    failing = sum(finding.can_fail for finding in findings)
    settled = sum(not (finding.can_fail or finding.can_lapse) for finding in findings)
    holding = sum(finding.can_hold for finding in findings)
    lost = sum(not (finding.can_hold or finding.can_lapse) for finding in findings)
    return _share(settled, failing), _share(holding, lost)


class _Sequence:
    """Calls with their places in the run, and their steps: those that ran side by side share one."""

    def __init__(self, calls: Sequence[ToolCall], places: Sequence[int], may_change: bool) -> None:
        self._calls = calls
        self._places = places
        self._may_change = may_change
        self.length = len(calls)
        self._attempts = MAX_ASSIGNMENT_ATTEMPTS
        self._budget = MAX_MATCHED_CHARACTERS
        self._events_left = _MAX_EVENTS
        self._numbers: dict[int, int] = {}
        self._events: dict[tuple[int, tuple[JsonPath, ...]], list[_Event]] = {}

    @late
    def _steps(self) -> list[tuple[int, bool]]:
        """For each call its step, and whether it is alone there."""
        segments = parallel_segments(self._calls)
        return [(step, len(segment) == 1) for step, segment in enumerate(segments) for _ in segment]

    @late
    def _names(self) -> Mapping[str, int]:
        """How often each tool was called."""
        names: dict[str, int] = {}
        for call in self._calls:
            names[call.name] = names.get(call.name, 0) + 1
        return names

    def number(self, kind: CallCondition) -> int:
        """The number of calls of a kind by name."""
        number = self._numbers.get(id(kind))
        if number is None:
            number = sum([count for name, count in self._names.items() if name in kind.tools])
            self._numbers[id(kind)] = number
        self._look_at(number)
        return number

    def places(self, kind: CallCondition) -> list[int]:
        """The places of the calls of a kind by name."""
        names = {name for name in self._names if name in kind.tools}
        return [at for at, call in zip(self._places, self._calls, strict=True) if call.name in names]

    def at_end(self, end: Literal["init", "last"]) -> list[tuple[int, str]]:
        """Place and tool of the calls of the first, or of the last, step."""
        own, _ = self._steps[0 if end == "init" else -1]
        calls = zip(self._places, self._calls, self._steps, strict=True)
        return [(at, call.name) for at, call, (step, _) in calls if step == own]

    def events(self, kind: CallCondition, paths: tuple[JsonPath, ...] = ()) -> list[_Event]:
        """The calls of a kind, in order; those that may be of it, with arguments that are not known, too."""
        events = self._events.get((id(kind), paths))
        if events is not None:
            return events
        events = self._events[id(kind), paths] = []
        names = {name for name in self._names if name in kind.tools}
        for at, call, (step, alone) in zip(self._places, self._calls, self._steps, strict=True):
            if call.name not in names:
                continue
            status = kind.status_fits(call, may_change=self._may_change)
            if status is False:
                continue
            self._look_at(1)
            sure, key = status is True, ()
            if kind.cost or paths:
                arguments = readable_arguments(call)
                self._spend((len(call.arguments_text or "") + 1) * (kind.cost + len(paths)))
                fit: bool | None = None
                if arguments is not None:
                    fit = kind.arguments_fit(arguments)
                    if fit is False:
                        continue
                sure = sure and (fit is True or not kind.cost)
                key = _key(arguments, paths)
            events.append(_Event(at, step, alone, key, sure, call.is_held_back))
        return events

    def _look_at(self, events: int) -> None:
        self._events_left -= events
        if self._events_left < 0:
            raise _OverLimitError

    def _spend(self, characters: int) -> None:
        self._attempts -= 1
        self._budget -= characters
        if self._attempts < 0 or self._budget < 0:
            raise _OverLimitError


class _OverLimitError(Exception):
    """More than one evaluation looks at."""


class _Targets:
    """The calls of a kind by the values that they belong together by."""

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
            if key is _NONE:
                continue
            self._steps.setdefault(key, []).append(step)
            self._count[key] = self._count.get(key, 0) + 1
            self._at[key, step] = self._at.get((key, step), 0) + 1
            self._own.add((key, event.at))
            if event.alone:
                self._alone_at.add((key, step))

    def meets(self, demand: _Demand, event: _Event, beside: bool, blockers: "_Targets | None" = None) -> bool:
        """Whether one of these, other than the event itself, is within reach of `event`."""
        key = event.key
        own = (key, event.at) in self._own
        if demand.reach == "any":
            return self._count.get(key, 0) > own
        step = event.step * self._direction
        if beside and not demand.negative and self._at.get((key, step), 0) > own:
            return True
        if demand.reach == "next":
            if beside and demand.negative:  # of several side by side another one may have stood between
                return event.alone and (key, step + 1) in self._alone_at
            return (key, step + 1) in self._at
        steps = self._steps.get(key)
        if not steps:
            return False
        if demand.reach == "later" or blockers is None:
            return steps[-1] > step
        nearest = bisect_right(steps, step)
        if nearest == len(steps):
            return False
        between = blockers._steps.get(key, [])
        first = bisect_right(between, step)
        return first == len(between) or between[first] >= steps[nearest]


def _end(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    if not sequence.length:
        return Finding(constraint, 0, applies=False, can_lapse=True)
    finding = Finding(constraint, sequence.length)
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
    kind, times = constraint.kinds[0], constraint.times
    events: list[_Event] = []
    if kind.is_by_name:
        most = fewest = sequence.number(kind)
    else:
        events = sequence.events(kind)
        most, fewest = len(events), sum(event.sure for event in events)
    finding = Finding(constraint, sequence.length, count=fewest)
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
    if finding.holds is False:
        finding.unmet = (
            sequence.places(kind) if kind.is_by_name else [event.at for event in events if event.sure]
        )
        finding.text = f"Actual: {fewest}, Expected: {sign} {times}"
    return finding


def _choice(constraint: CallConstraint, sequence: _Sequence) -> Finding:
    first, second = (sequence.events(kind) for kind in constraint.kinds)
    finding = Finding(constraint, sequence.length)
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


def _relation_text(constraint: CallConstraint, demand: _Demand, event: _Event) -> str:
    target, other = (constraint.kinds[side].label for side in (not demand.backward, demand.backward))
    where = "before" if demand.backward else "after"
    paths = [pair[demand.backward].text for pair in constraint.same]
    if event.key is _NONE:
        return f"it has no {' and '.join(paths)}"
    if demand.reach == "any":
        place = "in the run"
    elif demand.reach == "next":
        place = f"right {where} it"
    elif demand.reach == "later":
        place = f"{where} it"
    else:
        place = f"{where} it, up to the {'last' if demand.backward else 'next'} {other}"
    shared = f" with the same {' and '.join(paths)}" if paths else ""
    return f"{target} {place}{shared}" if demand.negative else f"no {target} {place}{shared}"


def _key(arguments: JsonObject | None, paths: tuple[JsonPath, ...]) -> Any:
    """The values at `paths`, in a form that compares; `_NONE`: one is missing; `_UNKNOWN`: not known."""
    if arguments is None:
        return _UNKNOWN if paths else ()
    keys = []
    for path in paths:
        values = path.values(arguments)
        if not values:
            return _UNKNOWN if has_masked_key(arguments) else _NONE
        if any(map(contains_mask, values)):
            return _UNKNOWN
        keys.append(equality_key(values))
    return tuple(keys)


def _share(held: int, broken: int) -> float:
    return held / (held + broken) if broken else 1.0
