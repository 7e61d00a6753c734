"""Templates that relate each event of one kind to events of another."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from processors.comparison.constraint_events import Event, EventSequence
from processors.comparison.constraint_terms import RELATIONS, CallConstraint, Finding, Relation
from processors.comparison.event_values import NONE, UNKNOWN, Read, ValueIndex
from processors.documents import format_duration
from processors.model import late

_INDEXED: Final = 8
"""Events from which on values are looked up."""


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
        partners = _Partners(constraint, side, activations, targets, sequence)
        broken, may_break = partners.broken(activations)
        if side and relation.reach != "any" and any(event.held_back for event in targets):
            # What waits or was refused guards nothing that was done, only what waits as well.
            executed = [event for event in activations if not event.held_back]
            done = [event for event in targets if not event.held_back]
            unguarded, may_lack = _Partners(constraint, side, executed, done, sequence).broken(executed)
            broken = sorted({*broken, *unguarded}, key=lambda event: event.at)
            may_break = may_break or may_lack
        if broken and not finding.unmet:
            finding.text = _relation_text(constraint, side, broken[0])
            if compares:
                finding.text += partners.example(broken[0])
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


class _Partners:
    """The events of the other side, one by one, as partners of the activations.

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
        self._targets = targets
        self._by_key = self._grouped(targets)
        self._by_place = {event.at: event for event in targets} if constraint.nearest else {}
        self._blockers: dict[Any, tuple[list[int], list[int]]] = {}
        if self._relation.reach == "alternate":
            for key, (steps, events) in self._grouped(activations).items():
                sure = [step for step, event in zip(steps, events, strict=True) if event.sure]
                self._blockers[key] = steps, sure
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

    @late
    def _all(self) -> tuple[list[int], list[Event]]:
        """Those of every key: of which an activation may be, one of whose values is unknown."""
        return self._ordered([event for event in self._targets if event.key is not NONE])

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
        compares = self._constraint.compares
        if compares and NONE in self._values_of(event, self._side):
            return False
        known = self._look_up(event) if self._can_look_up else None
        if known is not None:
            return known
        verdict: bool | None = False
        for other, is_sure in self._within_reach(event):
            fits = self._fits(event, other) if compares else True
            if fits and is_sure:
                return True
            if fits is not False:
                verdict = None
            self._sequence.count_pairs(1)
        return verdict

    def _look_up(self, event: Event) -> bool | None:
        """`_has_partner` without trying each; None where that does not decide."""
        if event.key is UNKNOWN:
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
        # Of several side by side another one may have stood between a call and its neighbour.
        is_alone = self._relation.negative and self._relation.reach == "next" and self._sequence.beside
        if is_alone and not event.alone:
            return
        last_for_sure, last = self._limits(event, step) if self._blockers else (math.inf, math.inf)
        for (steps, events), is_sure in groups:
            begin, end = self._bounds(steps, step)
            for place in range(begin, end):
                other = events[place]
                if steps[place] > last:
                    break
                if other.at != event.at and (other.alone or not is_alone):
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

    def _limits(self, event: Event, step: int) -> tuple[float, float]:
        """Up to which steps partners count for certain, and at all: where the next activation stands."""
        if event.key is UNKNOWN or event.key not in self._blockers:
            return math.inf, math.inf
        steps, sure = self._blockers[event.key]
        at, at_sure = bisect_right(steps, step), bisect_right(sure, step)
        return steps[at] if at < len(steps) else math.inf, sure[at_sure] if at_sure < len(sure) else math.inf

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
