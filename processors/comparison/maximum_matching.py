"""The largest assignment of expected calls to actual calls, each used once.

A call is a row as in `processors.comparison.common_subsequence`: an integer whose bit `k` says that the call
can stand for expected call `k`. First fit is not enough as soon as one expected call fits several calls: it
can take the only call that another one fits.
"""

from collections.abc import Iterator, Sequence


def maximum_matching(rows: Sequence[int], width: int) -> list[int]:
    """For each expected call the position of the call that stands for it, or -1; as many as possible.

    Expected calls are served in their order, each by the earliest free call that it fits, so calls keep
    to the order of the expectations where that costs nothing. Calls with equal rows are interchangeable and
    taken together, which keeps the search small: its work grows with the kinds of calls, not with the calls.
    """
    kinds: dict[int, list[int]] = {}
    for position, row in enumerate(rows):
        if row:
            kinds.setdefault(row, []).append(position)
    search = _Search(list(kinds), list(kinds.values()), width)
    for key in range(width):
        search.serve(key)
    assigned = [-1] * width
    for positions, keys in zip(kinds.values(), search.keys_of, strict=True):
        for key, position in zip(sorted(keys), positions, strict=False):
            assigned[key] = position
    return assigned


def matching_size(rows: Sequence[int], width: int) -> int:
    """How many expected calls a maximum matching serves."""
    return width - maximum_matching(rows, width).count(-1)


class _Search:
    """Serves expected calls one by one, moving earlier ones where that makes room."""

    def __init__(self, rows: Sequence[int], positions: Sequence[list[int]], width: int) -> None:
        self.keys_of: list[list[int]] = [[] for _ in rows]
        self._positions = positions
        self._kind_of = [-1] * width
        self._kinds_of_key = [0] * width
        for kind, row in enumerate(rows):
            for key in _bits(row & ((1 << width) - 1)):
                self._kinds_of_key[key] |= 1 << kind
        self._exhausted = 0

    def serve(self, key: int) -> None:
        """Assign `key` if that is possible."""
        # Breadth first from the key to a kind with a free call; `via[kind]` is the key that led there.
        via: dict[int, int] = {}
        seen = self._exhausted
        queue = [key]
        for wanted in queue:
            reached = list(_bits(self._kinds_of_key[wanted] & ~seen))
            open_kinds = []
            for kind in reached:
                seen |= 1 << kind
                via[kind] = wanted
                queue.extend(self.keys_of[kind])
                if len(self.keys_of[kind]) < len(self._positions[kind]):
                    open_kinds.append(kind)
            if open_kinds:
                self._move(key, min(open_kinds, key=self._next_position), via)
                return
        # What led to no free call now leads to none later: nothing that was taken is given back.
        self._exhausted = seen

    def _next_position(self, kind: int) -> int:
        return self._positions[kind][len(self.keys_of[kind])]

    def _move(self, key: int, kind: int, via: dict[int, int]) -> None:
        while True:
            moved = via[kind]
            previous = self._kind_of[moved]
            self.keys_of[kind].append(moved)
            self._kind_of[moved] = kind
            if moved == key:
                return
            self.keys_of[previous].remove(moved)
            kind = previous


def _bits(row: int) -> Iterator[int]:
    while row:
        lowest = row & -row
        yield lowest.bit_length() - 1
        row ^= lowest
