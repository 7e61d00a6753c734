"""Spans below one parent, searched for one that lies within the time of another."""

from bisect import bisect_left

from processors.spans.minimum_tree import MinimumTree
from processors.spans.span_tree import SpanTree


class SpansSideBySide:
    """Positions of spans in order of start. A search takes time in step with their number's logarithm."""

    __slots__ = ("_ends", "_positions", "_starts", "_tree")

    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree
        self._positions: list[int] = []
        self._starts: list[int] = []
        self._ends: MinimumTree | None = None

    def add(self, position: int) -> None:
        """Take in a span, which must not begin before those that are there; before the first search only."""
        self._positions.append(position)
        self._starts.append(self._tree.starts[position])

    def first_within(self, position: int) -> int:
        """The first span that began and ended within the time of the one at `position`, or -1."""
        ends = self._tree.ends
        if self._ends is None:
            self._ends = MinimumTree([ends[held] for held in self._positions])
        place = self._ends.first(bisect_left(self._starts, self._tree.starts[position]), ends[position])
        return -1 if place < 0 else self._positions[place]
