"""Templates over all events of a kind: how many there are, and constant, unique and bounded values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from processors.comparison.constraint_events import Event, EventSequence
from processors.comparison.constraint_terms import COUNT, COUNTS, CallConstraint, Finding
from processors.comparison.event_values import NONE, UNKNOWN, NoValue, Read, number_of, shown_value
from processors.comparison.value_equality import all_fit, equality_key


@dataclass(slots=True)
class _Group:
    """The events of a kind with one value of `per`, and what they are about."""

    name: str
    events: list[tuple[Event, Read]] = field(default_factory=list)
    stray: int = 0
    """Events that may belong to it: what `per` looks at is not known of them."""

    @property
    def doubts(self) -> int:
        """How many events may be, or may not, in it, or have a value that is not known."""
        return self.stray + sum(not event.sure or value is UNKNOWN for event, value in self.events)


def check_group(constraint: CallConstraint, sequence: EventSequence) -> Finding:
    """`constant`, `unique` and `sum`, and the templates that bound a number of events."""
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
    if check is _count_in:
        _, most = constraint.bounds
        if most is None and constraint.per is None:
            finding.can_fail = finding.holds is not True
        if finding.can_hold and finding.can_fail and sequence.lacks(constraint.kinds[0]):
            finding.holds = None
    finding.unmet = sorted(set(finding.unmet)) if finding.holds is False else []
    return finding


def _groups(constraint: CallConstraint, sequence: EventSequence) -> list[_Group]:
    """The groups of `per`, of which there is one without it; what has no value of it belongs to none."""
    kind, per, about = constraint.kinds[0], constraint.per, constraint.value
    events = sequence.events(kind, (), constraint.roles)
    if per is None and about is None:
        return [_Group("", [(event, None) for event in events])]
    groups: dict[Any, _Group] = {} if per is not None else {(): _Group("")}
    stray = 0
    by_turn, requests = constraint.looks_at_turns, set[tuple[Read, str]]()
    for event in events:
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
        groups[key].events.append((event, value))
    if stray and (not groups or (constraint.bounds[0] or 0) > 1):
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
    surely: dict[Any, tuple[Event, Read]] = {}
    for event, value in group.events:
        if event.sure and not isinstance(value, NoValue):
            surely.setdefault(equality_key(value), (event, value))
    if len(surely) > 1:
        shown = [f"{shown_value(value)} in call {event.at + 1}" for event, value in surely.values()][:2]
        places = [event.at for event, _ in surely.values()][1:]
        return _Verdict(False, f"{', '.join(shown)}, Expected: one value", places, is_final=True)
    known = [value for _, value in group.events if not isinstance(value, NoValue)]
    unknown = group.stray + len(group.events) - len(known)
    is_one = len({equality_key(value) for value in known}) <= 1
    return _Verdict(True if is_one and (not unknown or (unknown == 1 and not known)) else None)


def _unique_in(constraint: CallConstraint, group: _Group) -> _Verdict:
    surely: dict[Any, Event] = {}
    may_repeat = False
    possible: set[Any] = set()
    for event, value in group.events:
        if isinstance(value, NoValue):
            continue
        key = equality_key(value)
        if event.sure and key in surely:
            text = f"{shown_value(value)} in calls {surely[key].at + 1} and {event.at + 1}, Expected: once"
            return _Verdict(False, text, [event.at], is_final=True)
        if event.sure:
            surely[key] = event
        may_repeat = may_repeat or key in possible
        possible.add(key)
    unknown = group.stray + sum(value is UNKNOWN for _, value in group.events)
    return _Verdict(None if may_repeat or (unknown and len(group.events) + group.stray > 1) else True)


def _sum_in(constraint: CallConstraint, group: _Group) -> _Verdict:
    numbers = [None if isinstance(value, NoValue) else number_of(value) for _, value in group.events]
    if group.doubts or None in numbers:
        return _Verdict(None)
    # As decimals, so that 0.1 and 0.2 are 0.3.
    total = sum((Decimal(repr(number)) for number in numbers), Decimal())
    verdict = _bounded(constraint, float(total), float(total), [event.at for event, _ in group.events])
    return verdict._replace(is_final=False)  # a further one may be negative


def _count_in(constraint: CallConstraint, group: _Group) -> _Verdict:
    places = [event.at for event, _ in group.events if event.sure]
    verdict = _bounded(constraint, len(places), len(group.events) + group.stray, places)
    if not places and constraint.per is not None and verdict.holds is False:
        return _Verdict(None)  # the value may not occur at all
    return verdict


def _bounded(constraint: CallConstraint, lowest: float, highest: float, places: list[int]) -> _Verdict:
    """Whether a number from `lowest` to `highest` is within the bounds."""
    least, most = constraint.bounds
    sign = COUNTS.get(constraint.template)
    if most is not None and lowest > most:
        expected = f"{sign} {constraint.times}" if sign else f"<= {most:.15g}"
        return _Verdict(False, f"Actual: {lowest:.15g}, Expected: {expected}", places, is_final=True)
    if least is not None and highest < least:
        actual = lowest if sign else highest
        return _Verdict(False, f"Actual: {actual:.15g}, Expected: {sign or '>='} {least:.15g}", places)
    is_within = (most is None or highest <= most) and (least is None or lowest >= least)
    return _Verdict(True if is_within else None)


_GROUP_CHECKS: Mapping[str, Callable[[CallConstraint, _Group], _Verdict]] = {
    "constant": _constant_in,
    "unique": _unique_in,
    "sum": _sum_in,
    **dict.fromkeys((*COUNTS, COUNT), _count_in),
}
