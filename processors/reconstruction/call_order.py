"""The order of a run's calls, and which of them ran side by side.

Calls stand by the model turn that requested them, then by their place in the model's answer, then by
start; never by arrival or by end alone.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from processors.spans import MinimumTree

_TURN_TOLERANCE_NANOS = 1_000_000
"""A call may seem to start this much before the model's answer ended: clocks of senders are coarse."""

NOT_REQUESTED = -1

CallTimes: TypeAlias = tuple[int, int, bytes]
"""(start, end times minus one, span id): calls compare by it as they followed each other."""


def order_calls(
    calls: Sequence[CallTimes],
    turns: Sequence[tuple[int, int]],
    place_of: Callable[[int], int | None],
    turns_around: Mapping[int, int] | None = None,
) -> tuple[list[int], dict[int, int]]:
    """The order of the calls as positions in `calls`, and the numbers of the groups that ran side by side.

    Args:
        calls: When each call ran.
        turns: When the run's model turns began and ended, in ascending order of their ends.
        place_of: Gives the place of a call in its model's answer, None where that is not known and
            `NOT_REQUESTED` where the answer lacks the call; called only where calls share a turn.
        turns_around: For calls whose span lies under a turn's span, that turn.
    """
    turn_ends = [end for _, end in turns]
    turn_starts: MinimumTree | None = None
    placed: list[tuple[int, CallTimes, int]] = []
    lasting: set[int] = set()
    for position, times in enumerate(calls):
        start = times[0]
        around = turns_around.get(position) if turns_around else None
        if around is not None:
            lasting.add(around)
            placed.append((around, times, position))
            continue
        turn = bisect_right(turn_ends, start + _TURN_TOLERANCE_NANOS) - 1
        # Some senders end a turn's span when its calls are done, some begin a call while the model answers.
        following = turn + 1
        if (
            following < len(turns)
            and turns[following][0] <= start
            and (turn < 0 or turn_ends[turn] <= turns[following][0])
        ):
            turn = following
            lasting.add(turn)
        if turn >= 0 and turns[turn][0] > start:  # a model that began later did not request it
            turn_starts = turn_starts or MinimumTree([began for began, _ in turns])
            turn = turn_starts.last(turn, start)
        placed.append((turn, times, position))
    placed.sort()
    if len({turn for turn, _, _ in placed}) == len(placed):
        return [position for _, _, position in placed], {}
    by_turn: dict[int, list[int]] = {}
    for turn, _, position in placed:
        by_turn.setdefault(turn, []).append(position)
    ordered: list[int] = []
    clusters: list[list[int]] = []
    for turn, members in by_turn.items():
        if len(members) > 1:
            places = {position: place_of(position) for position in members}
            # Calls that the turn's model is known not to have requested are a program's own, and so are those
            # that all stand for one request, which was tried again.
            known_places = set(places.values())
            # An only turn that lasts until its calls are done, where nothing shows what it requested, may
            # as well be one span around all turns.
            is_whole_loop = len(turns) == 1 and turn in lasting and None in known_places
            if turn >= 0 and not is_whole_loop and (len(known_places) > 1 or None in known_places):
                clusters.append(members)
            else:
                clusters += _side_by_side(calls, members)
            members = _by_place(places, members)
        ordered.extend(members)
    groups = {position: number for number, cluster in enumerate(clusters) for position in cluster}
    return ordered, groups


def _by_place(places: dict[int, int | None], members: list[int]) -> list[int]:
    """The calls of one turn in the order the model requested them, if it is known of every one."""
    known = set(places.values())
    if None in known or NOT_REQUESTED in known or len(known) < len(members):
        return members
    return sorted(members, key=lambda position: places[position] or 0)


def _side_by_side(calls: Sequence[CallTimes], members: list[int]) -> list[list[int]]:
    """The calls, in order of start, that overlap in time with others."""
    clusters: list[list[int]] = []
    latest = 0
    for position in members:
        start, negative_end, _ = calls[position]
        if not clusters or (start >= latest and start != calls[clusters[-1][-1]][0]):
            clusters.append([])
            latest = 0
        clusters[-1].append(position)
        latest = max(latest, -negative_end)
    return [cluster for cluster in clusters if len(cluster) > 1]
