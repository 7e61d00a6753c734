"""Which calls stand for which expected ones, each used once: in the expected order, or in any.

A call is a row: an integer whose bit `j` says that the call can stand for expected key `j`.

- `common_subsequence`: in the order of the calls as they are.
- `best_fitting_order`: the order of calls that ran side by side which makes that longest.
- `maximum_matching`: as many as possible, in whatever order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations, groupby
from operator import or_
from typing import Annotated, TypeAlias

from pydantic import Field

from processors.model import MAX_REORDERING_STEPS, ToolCall, canonical_tool_name, canonical_tool_names

MAX_OPTIONAL_CALLS = 8
"""Optional calls of one expected order: each alternative with or without one is aligned."""

OptionalCall: TypeAlias = Annotated[
    bool, Field(description="Whether the call may be left out: with and without it, the better score counts.")
]


class OptionalCalls:
    """Which of `width` expected keys are optional, and the alternatives that they make.

    Keys are bits. With `in_order` more than `MAX_OPTIONAL_CALLS` raise a ValueError.
    """

    def __init__(self, optional: Iterable[bool], *, in_order: bool) -> None:
        marked = list(optional)
        self.width = len(marked)
        self._keys = [key for key, is_optional in enumerate(marked) if is_optional]
        self.required = mask_of(key for key, is_optional in enumerate(marked) if not is_optional)
        """The keys that are no optional ones."""
        if in_order and len(self._keys) > MAX_OPTIONAL_CALLS:
            raise ValueError(
                f"{len(self._keys)} optional calls: at most {MAX_OPTIONAL_CALLS} where their order counts"
            )
        self.alternatives = self._alternatives() if in_order else {}
        """What can be expected, as a row and its keys; those with more optional keys first, none empty."""
        self.required_first = sorted(range(self.width), key=set(self._keys).__contains__)
        """All keys, the optional ones last."""

    def _alternatives(self) -> dict[int, Sequence[int]]:
        rows = (
            self.required | mask_of(keys)
            for number in range(len(self._keys), -1, -1)
            for keys in combinations(self._keys, number)
        )
        return {row: tuple(keys_of(row)) for row in rows if row}

    def rows(self, rows: Sequence[int], alternative: int) -> Sequence[int]:
        """`rows` of calls where only `alternative` is expected."""
        return [row & alternative for row in rows] if self._keys else rows

    def counted(self, assigned: Sequence[int]) -> int:
        """How many calls are expected once the optional ones without a call of their own are left out."""
        return self.width - sum([assigned[key] < 0 for key in self._keys])


class ExpectedCalls:
    """Expected calls by name and, where they have one, id; a name may be the id of a call as well."""

    __slots__ = ("_by_id", "_by_name", "_with_id")

    def __init__(self, expected: Iterable[tuple[str, str | None]]) -> None:
        self._by_name: dict[str, int] = {}
        self._by_id: dict[str, int] = {}
        self._with_id = 0
        for key, (text, call_id) in enumerate(expected):
            name = canonical_tool_name(text)
            own = text if call_id is None else call_id
            self._by_name[name] = self._by_name.get(name, 0) | 1 << key
            self._by_id[own] = self._by_id.get(own, 0) | 1 << key
            self._with_id |= (call_id is not None) << key

    def row(self, call: ToolCall) -> int:
        """The expected calls that mean `call`: by its id, or by its name unless both have an id."""
        row = self._by_name.get(canonical_tool_name(call.name), 0)
        if call.call_id is None:
            return row
        return row & ~self._with_id | self._by_id.get(call.call_id, 0)

    def rows(self, calls: Sequence[ToolCall]) -> list[int]:
        """`row` of each call."""
        by_name = self._by_name
        return [
            by_name.get(name, 0) if call.call_id is None else self.row(call)
            for name, call in zip(canonical_tool_names(calls), calls, strict=True)
        ]


def ordered_keys(
    calls: Sequence[ToolCall], rows: Sequence[int], width: int
) -> tuple[list[int], Sequence[int]] | None:
    """A longest common subsequence, and the order of the calls by position in which it is found.

    Where it is not all that is expected, the calls of one parallel group are taken in the order that fits
    best. Returns None when the search for that order was given up.
    """
    keys = common_subsequence(rows, width)
    if len(keys) == width or not _is_reorderable(calls, rows):
        return keys, range(len(rows))
    order = best_fitting_order(rows, parallel_segments(calls))
    if order is None:
        return None
    return common_subsequence([rows[position] for position in order], width), order


def _is_reorderable(calls: Sequence[ToolCall], rows: Sequence[int]) -> bool:
    """Whether neighbouring calls of one parallel group match different keys."""
    previous = None
    matched = 0
    for call, row in zip(calls, rows, strict=True):
        group = call.parallel_group
        if group is None or group != previous:
            previous = group
            matched = row
        elif row and matched and row != matched:
            return True
        else:
            matched = matched or row
    return False


def lasting_alignment(calls: Sequence[ToolCall], rows: Sequence[int], width: int) -> int:
    """How many expected calls are aligned whatever further calls come.

    Only one call of a parallel group counts, since later spans may show its order.
    """
    first_of_each = [rows[segment[0]] for segment in parallel_segments(calls)]
    return common_subsequence_length(first_of_each, width)


def common_subsequence(rows: Sequence[int], width: int) -> list[int]:
    """The expected keys, as ascending positions, of one longest common subsequence of calls and keys.

    The usual table is kept row by row as one integer: bit `j` is clear where the length grows from key
    `j - 1` to key `j` (the formulation of Hyyrö, 2004), so a row costs a few operations on machine words.

    Of several the one is taken that is found from the ends backwards by: a match is used; else a call is
    left out if that alone keeps the length; else an expected key.
    """
    full = (1 << width) - 1
    vector = full
    vectors = []
    for row in rows:
        matched = vector & row
        vector = ((vector + matched) | (vector - matched)) & full
        vectors.append(vector)

    positions = []
    row_index, bit = len(rows) - 1, width - 1
    while row_index >= 0 and bit >= 0:
        if rows[row_index] >> bit & 1:
            positions.append(bit)
            row_index -= 1
            bit -= 1
        elif vectors[row_index] >> bit & 1:
            bit -= 1
        else:
            row_index -= 1
    positions.reverse()
    return positions


def common_subsequence_length(rows: Sequence[int], width: int) -> int:
    """The length of the longest common subsequences."""
    full = (1 << width) - 1
    vector = full
    for row in rows:
        matched = vector & row
        vector = ((vector + matched) | (vector - matched)) & full
    return width - vector.bit_count()


def parallel_segments(calls: Sequence[ToolCall]) -> list[range]:
    """The positions of `calls`, cut into groups of neighbours that ran side by side, and single calls."""
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


def best_fitting_order(rows: Sequence[int], segments: Sequence[range]) -> list[int] | None:
    """A permutation of the calls, inside their segments, with the longest common subsequence.

    None when the search would exceed `MAX_REORDERING_STEPS`.
    """
    budget = MAX_REORDERING_STEPS
    # reached[k]: the fewest leading keys among which k matches are possible. A trail has for each segment
    # what was reached before it, and for each k the number of matches that were there before it.
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


def maximum_matching(rows: Sequence[int], width: int, order: Sequence[int] | None = None) -> list[int]:
    """For each expected call the position of the call that stands for it, or -1; as many as possible.

    `order` are the keys in the order in which they are served: of those that come first as many as possible
    are, too. Without it they are served in their own order.

    First fit is not enough as soon as one expected call fits several calls: it can take the only call that
    another one fits. Expected calls are served in their order, each by the earliest free call that it fits,
    so calls keep to the order of the expectations where that costs nothing. Calls with equal rows are
    interchangeable and taken together: the work grows with the kinds of calls, not with the calls.
    """
    kinds: dict[int, list[int]] = {}
    for position, row in enumerate(rows):
        if row:
            kinds.setdefault(row, []).append(position)
    positions_of = list(kinds.values())
    matching = _Matching(
        {row: len(positions) for row, positions in kinds.items()},
        lambda kind, taken: positions_of[kind][taken],
    )
    for key in range(width) if order is None else order:
        matching.add(key)
    assigned = [-1] * width
    for positions, keys in zip(positions_of, matching.keys_of, strict=True):
        for key, position in zip(sorted(keys), positions, strict=False):
            assigned[key] = position
    return assigned


def matching_size(rows: Sequence[int], width: int) -> int:
    """How many expected calls a maximum matching serves."""
    return width - maximum_matching(rows, width).count(-1)


def mask_of(keys: Iterable[int]) -> int:
    """The row with `keys`."""
    return reduce(or_, (1 << key for key in keys), 0)


def keys_of(row: int) -> Iterator[int]:
    """The keys of `row`, ascending."""
    while row:
        lowest = row & -row
        yield lowest.bit_length() - 1
        row ^= lowest


def _arrange(rows: Sequence[int], segment: range, start: int, gained: int) -> list[int]:
    """The positions of `segment`: first those that match `gained` keys from `start` on, then the others."""
    if len(segment) == 1 or not gained:
        return list(segment)
    matching = _Matching(Counter(rows[position] for position in segment if rows[position]))
    for key in keys_of(reduce(or_, matching.rows) >> start << start):
        gained -= matching.add(key)
        if not gained:
            break
    free: dict[int, list[int]] = {}
    for position in reversed(segment):
        free.setdefault(rows[position], []).append(position)
    matched = [free[row].pop() for _, row in sorted(matching.row_of().items())]
    return matched + sorted(position for positions in free.values() for position in positions)


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
        """Steps of one search in addition to the keys it yields, at most."""
        if overlapping:
            self.overhead += self.union.bit_count() * self._sizes.total() * len(self._sizes)

    def matched_keys(self, start: int) -> Iterator[int]:
        """The keys from `start` on at which, going forward, one more key can be matched."""
        row = self.union >> start << start
        if self._overlapping:
            matching = _Matching(self._sizes)
            yield from (key for key in keys_of(row) if matching.add(key))
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
    """A growing assignment of expected keys to kinds of calls: a kind is a row and the number of its calls.

    Of kinds that are as near, the first is taken; with `rank`, which is given the number of the kind and how
    many of its calls are taken, the one with the lowest.
    """

    def __init__(self, sizes: Mapping[int, int], rank: Callable[[int, int], int] | None = None) -> None:
        self.rows = list(sizes)
        self.keys_of: list[list[int]] = [[] for _ in sizes]
        self._sizes = list(sizes.values())
        self._rank = rank
        self._kinds_of: dict[int, list[int]] = {}
        for kind, row in enumerate(sizes):
            for key in keys_of(row):
                self._kinds_of.setdefault(key, []).append(kind)
        self._kind_of: dict[int, int] = {}
        self._exhausted: set[int] = set()

    def add(self, key: int) -> bool:
        """Assign `key` too, moving others if needed; False when it is not possible."""
        # Breadth first from the key to a kind with a free call; `via[kind]` is the key that led there.
        taken = self.keys_of
        via: dict[int, int] = {}
        queue = [key]
        for reaching in queue:
            reached = [
                kind
                for kind in self._kinds_of.get(reaching, ())
                if kind not in via and kind not in self._exhausted
            ]
            via.update(dict.fromkeys(reached, reaching))
            free = [kind for kind in reached if len(taken[kind]) < self._sizes[kind]]
            if free:
                rank = self._rank
                ranked = free if rank is None else sorted(free, key=lambda kind: rank(kind, len(taken[kind])))
                self._move(key, ranked[0], via)
                return True
            for kind in reached:
                queue.extend(taken[kind])
        # What led to no free call now leads to none later: nothing that was taken is given back.
        self._exhausted.update(via)
        return False

    def row_of(self) -> dict[int, int]:
        """The row of each key that is assigned."""
        return {key: self.rows[kind] for key, kind in self._kind_of.items()}

    def _move(self, key: int, kind: int, via: Mapping[int, int]) -> None:
        while (moved := via[kind]) != key:
            previous = self._kind_of[moved]
            self.keys_of[previous].remove(moved)
            self._assign(moved, kind)
            kind = previous
        self._assign(key, kind)

    def _assign(self, key: int, kind: int) -> None:
        self.keys_of[kind].append(key)
        self._kind_of[key] = kind
