"""Templates that relate each event of one kind to events of another."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from processors.comparison.constraint_events import Event, EventSequence
from processors.comparison.constraint_terms import RELATIONS, CallConstraint, Finding, Relation
from processors.comparison.event_values import NONE, UNKNOWN, Read, ValueIndex
from processors.documents import format_duration

_INDEXED: Final = 8
"""Events from which on values are looked up."""


class _Partners:
    """The events of a kind by the values that they belong together by."""

    __slots__ = ("_alone_at", "_at", "_count", "_direction", "_own", "_steps")

    def __init__(self, events: Sequence[Event], direction: int) -> None:
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
        self, relation: Relation, event: Event, beside: bool, blockers: "_Partners | None" = None
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


def check_relation(constraint: CallConstraint, sequence: EventSequence) -> Finding:
    """Whether each event of the kinds that need one has, or lacks, another one within reach."""
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


def _allow_for_unknown(finding: Finding, relation: Relation, lacks: Sequence[bool]) -> None:
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
    relation: Relation, side: int, activations: Sequence[Event], targets: Sequence[Event], beside: bool
) -> tuple[list[Event], bool]:
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
        activations: Sequence[Event],
        targets: Sequence[Event],
        sequence: EventSequence,
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
        self._nearest: dict[Any, tuple[list[int], list[Event]]] = {}
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

    def broken(self, activations: Sequence[Event]) -> tuple[list[Event], bool]:
        """The activations that surely break the relation, and whether any may."""
        broken: list[Event] = []
        may_break = False
        for event in activations:
            has_partner = self._has_partner(event)
            if has_partner is self._relation.negative and event.sure:
                broken.append(event)
            may_break = may_break or has_partner is not (not self._relation.negative)
        return broken, may_break

    def example(self, event: Event) -> str:
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

    def _values_of(self, event: Event, side: int) -> tuple[Read, ...]:
        """What `event`, of a side, is compared by."""
        values = self._read[side].get(event.at)
        if values is None:
            values = self._read[side][event.at] = tuple(
                self._sequence.value(comparison.value_of(side), event.at)
                for comparison in self._constraint.where
            )
        return values

    def _ordered(self, events: Iterable[Event]) -> tuple[list[int], list[Event]]:
        """Steps and events from the one that is first in the direction of the relation."""
        inorder = list(events)[:: self._direction]
        return [event.step * self._direction for event in inorder], inorder

    def _grouped(self, events: Sequence[Event]) -> dict[Any, tuple[list[int], list[Event]]]:
        groups: dict[Any, list[Event]] = {}
        for event in events:
            groups.setdefault(event.key, []).append(event)
        return {key: self._ordered(group) for key, group in groups.items()}

    def _has_partner(self, event: Event) -> bool | None:
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

    def _look_up(self, event: Event) -> bool | None:
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

    def _fits(self, event: Event, other: Event) -> bool | None:
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

    def _within_reach(self, event: Event) -> Iterator[tuple[Event, bool]]:
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

    def _is_in_place(self, event: Event, other: Event, distance: int) -> bool:
        """Whether `other` is the neighbour for certain where it must not be: alone, as is `event`."""
        relation = self._relation
        if relation.reach != "next" or not relation.negative or not self._sequence.beside:
            return True
        return event.alone and other.alone and distance == 1

    def _limits(self, event: Event, step: int) -> tuple[float, float]:
        """Up to which steps partners count for certain, and at all: where the next activation stands."""
        if event.key not in self._activations:
            return math.inf, math.inf
        steps, events = self._activations[event.key]
        begin = bisect_right(steps, step)
        last_for_sure = steps[begin] if begin < len(steps) else math.inf
        last = next((steps[at] for at in range(begin, len(steps)) if events[at].sure), math.inf)
        return last_for_sure, last

    def _next_ones(self, event: Event) -> Iterator[tuple[Event, bool]]:
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

    def _nearest_ones(self, event: Event) -> tuple[list[Event], bool]:
        """Those of their kind that may be the nearest of `event`, and whether it is one of them for certain.

        Mostly one; several where they ran side by side, or it is open whether some are of the kind.
        """
        step = event.step * self._direction
        nearest: list[Event] = []
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


def _relation_text(constraint: CallConstraint, side: int, event: Event) -> str:
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
