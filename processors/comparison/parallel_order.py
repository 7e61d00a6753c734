"""The order in which calls that ran side by side fit an expected order best.

Calls of one parallel group have no order among themselves, so a comparison with an expected order takes
each group in the permutation that fits best. Rows are those of `processors.comparison.common_subsequence`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from processors.model.agent_run import ToolCall
from processors.model.limits import MAX_REORDERING_STEPS


def parallel_segments(calls: Sequence[ToolCall]) -> list[range]:
    """The positions of `calls`, cut into parallel groups and single calls.

    A group is a run of neighbouring calls with one `parallel_group` number.
    """
    segments: list[range] = []
    start = 0
    for group, members in groupby(calls, key=lambda call: call.parallel_group):
        stop = start + sum(1 for _ in members)
        if group is None:
            segments.extend(range(position, position + 1) for position in range(start, stop))
        else:
            segments.append(range(start, stop))
        start = stop
    return segments


def best_fitting_order(rows: Sequence[int], segments: Sequence[range], width: int) -> list[int] | None:
    """A permutation of the calls, inside their segments, with the longest common subsequence.

    Returns None when the search would exceed `MAX_REORDERING_STEPS`.
    """
    budget = MAX_REORDERING_STEPS
    # reached[k]: the fewest leading keys among which k matches are possible; in a trail, beside what was
    # reached before a segment, for each k the number of matches that were there before it.
    reached = [0]
    trail: list[tuple[list[int], list[int]]] = []
    for segment in segments:
        classes = _Classes(rows[position] for position in segment)
        best = list(reached)
        origins = list(range(len(reached)))
        for before, start in enumerate(reached if classes.union else ()):
            total = before
            for key in classes.matched_keys(start):
                budget -= 1
                total += 1
                if total == len(best):
                    best.append(key + 1)
                    origins.append(before)
                elif key + 1 < best[total]:
                    best[total] = key + 1
                    origins[total] = before
            budget -= classes.overhead
            if budget < 0:
                return None
        trail.append((reached, origins))
        reached = best

    order: list[int] = []
    total = len(reached) - 1
    for segment, (starts, origins) in zip(reversed(segments), reversed(trail), strict=True):
        before = origins[total]
        order.extend(reversed(_arrange(rows, segment, starts[before], total - before)))
        total = before
    order.reverse()
    return order


def _arrange(rows: Sequence[int], segment: range, start: int, gained: int) -> list[int]:
    """The positions of `segment`: first those that match `gained` keys from `start` on, then the others."""
    if len(segment) == 1 or not gained:
        return list(segment)
    matching = _Matching(Counter(rows[position] for position in segment if rows[position]))
    for key in _keys(matching.union >> start << start):
        gained -= matching.add(key)
        if not gained:
            break
    free: dict[int, list[int]] = {}
    for position in reversed(segment):
        free.setdefault(rows[position], []).append(position)
    matched = [free[matching.row_of[key]].pop() for key in sorted(matching.row_of)]
    return matched + sorted(position for positions in free.values() for position in positions)


def _keys(row: int) -> Iterator[int]:
    """The keys of `row`, ascending."""
    while row:
        lowest = row & -row
        yield lowest.bit_length() - 1
        row ^= lowest


class _Classes:
    """The calls of one segment, those with equal rows taken together."""

    def __init__(self, rows: Iterator[int]) -> None:
        self._sizes = Counter(row for row in rows if row)
        self.union = 0
        overlapping = False
        for row in self._sizes:
            overlapping = overlapping or bool(self.union & row)
            self.union |= row
        self._overlapping = overlapping
        self.overhead = 1
        """Steps of one search beside the keys it yields, at most."""
        if overlapping:
            self.overhead += self.union.bit_count() * self._sizes.total() * len(self._sizes)

    def matched_keys(self, start: int) -> Iterator[int]:
        """The keys from `start` on at which, going forward, one more key can be matched."""
        row = self.union >> start << start
        if self._overlapping:
            matching = _Matching(self._sizes)
            yield from (key for key in _keys(row) if matching.add(key))
            return
        free = dict(self._sizes)
        while row:
            lowest = row & -row
            row ^= lowest
            for members in free:
                if members & lowest:
                    free[members] -= 1
                    if not free[members]:
                        row &= ~members
                    break
            yield lowest.bit_length() - 1


class _Matching:
    """A growing assignment of expected keys to classes of calls that may overlap."""

    def __init__(self, sizes: Counter[int]) -> None:
        self.row_of: dict[int, int] = {}
        self.union = 0
        self._free = dict(sizes)
        self._keys_of: dict[int, list[int]] = {row: [] for row in sizes}
        for row in sizes:
            self.union |= row

    def add(self, key: int) -> bool:
        """Assign `key` too, moving others if needed; False when it is not possible."""
        # Breadth first from the key to a class with a free call; `via[row]` is the key that led there.
        via: dict[int, int] = {}
        queue = [key]
        for wanted in queue:
            for row in self._free:
                if row in via or not row >> wanted & 1:
                    continue
                via[row] = wanted
                if self._free[row]:
                    self._free[row] -= 1
                    self._move(key, row, via)
                    return True
                queue.extend(self._keys_of[row])
        return False

    def _move(self, key: int, row: int, via: dict[int, int]) -> None:
        while (moved := via[row]) != key:
            previous = self.row_of[moved]
            self._keys_of[previous].remove(moved)
            self._keys_of[row].append(moved)
            self.row_of[moved] = row
            row = previous
        self._keys_of[row].append(key)
        self.row_of[key] = row
