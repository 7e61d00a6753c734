"""The order of a run's calls, and which of them ran side by side.

Calls stand by the model turn that asked for them, then by their place in the model's answer, then by
start; never by arrival or by end alone.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TURN_TOLERANCE_NANOS = 1_000_000
"""A call may seem to start this much before the model's answer ended: clocks of senders are coarse."""

NOT_ASKED_FOR = -1


@dataclass(slots=True)
class CallPlace:
    """Where a call stands: its times, its span id, and its place in the model's answer if that is known."""

    start: int
    end: int
    span_id: bytes
    place: Callable[[], int | None]
    """Asked only where calls share a turn; `NOT_ASKED_FOR` where the model's answer lacks the call."""
    turn: int = -1
    group: int | None = None
    known_place: int | None = None


def order_calls(places: Sequence[CallPlace], turns: Sequence[tuple[int, int]]) -> list[int]:
    """The order of the calls as positions in `places`, whose `turn` and `group` are set on the way.

    Args:
        places: The calls.
        turns: When the run's model turns began and ended, in ascending order of their ends.
    """
    turn_ends = [end for _, end in turns]
    for place in places:
        turn = bisect_right(turn_ends, place.start + _TURN_TOLERANCE_NANOS) - 1
        while turn >= 0 and turns[turn][0] > place.start:  # a model that began later did not ask for it
            turn -= 1
        place.turn = turn
    by_turn: dict[int, list[int]] = {}
    for position in sorted(range(len(places)), key=lambda position: _by_start(places[position])):
        by_turn.setdefault(places[position].turn, []).append(position)
    ordered: list[int] = []
    next_group = 0
    for turn in sorted(by_turn):
        members = by_turn[turn]
        if len(members) > 1:
            members = _by_place(places, members)
            next_group = _group(places, members, turn, next_group)
        ordered.extend(members)
    return ordered


def _by_start(place: CallPlace) -> tuple[int, int, bytes]:
    return place.start, -place.end, place.span_id


def _by_place(places: Sequence[CallPlace], members: list[int]) -> list[int]:
    """The calls of one turn in the order the model asked for them, if it is known of every one."""
    for position in members:
        places[position].known_place = places[position].place()
    known = {places[position].known_place for position in members}
    if None in known or NOT_ASKED_FOR in known or len(known) < len(members):
        return members
    return sorted(members, key=lambda position: places[position].known_place or 0)


def _group(places: Sequence[CallPlace], members: list[int], turn: int, next_group: int) -> int:
    """Number the calls that ran side by side: one turn's, or without turns those that overlap in time.

    Calls that the turn's model is known not to have asked for are a program's own, one after the other.
    """
    if turn >= 0 and any(places[position].known_place != NOT_ASKED_FOR for position in members):
        for position in members:
            places[position].group = next_group
        return next_group + 1
    cluster: list[int] = []
    latest = 0
    for position in sorted(members, key=lambda position: _by_start(places[position])):
        place = places[position]
        if cluster and place.start >= latest and place.start != places[cluster[-1]].start:
            next_group = _close(places, cluster, next_group)
            cluster, latest = [], 0
        cluster.append(position)
        latest = max(latest, place.end)
    return _close(places, cluster, next_group)


def _close(places: Sequence[CallPlace], cluster: list[int], next_group: int) -> int:
    if len(cluster) < 2:
        return next_group
    for position in cluster:
        places[position].group = next_group
    return next_group + 1
