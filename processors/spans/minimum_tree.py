"""Numbers in a row, searched for the nearest one that is low enough."""

from collections.abc import Sequence
from math import inf


class MinimumTree:
    """Answers which number next to a place is not above a bound.

    Making it takes time in step with the numbers, a question with their logarithm.
    """

    __slots__ = ("_size", "_tree")

    def __init__(self, numbers: Sequence[int]) -> None:
        size = 1
        while size < len(numbers):
            size *= 2
        # Node n has the nodes 2n and 2n + 1 below it and holds the lower number of the two; node 1 is on top.
        tree: list[float] = [inf] * size + [*numbers] + [inf] * (size - len(numbers))
        for node in range(size - 1, 0, -1):
            tree[node] = min(tree[2 * node], tree[2 * node + 1])
        self._size = size
        self._tree = tree

    def first(self, start: int, bound: int) -> int:
        """The first place from `start` on whose number is at most `bound`, or -1."""
        tree, size = self._tree, self._size
        if start >= size:
            return -1
        node = start + size
        while tree[node] > bound:
            while node & 1:
                node >>= 1
            if not node:
                return -1
            node += 1
        while node < size:
            node *= 2
            if tree[node] > bound:
                node += 1
        return node - size

    def last(self, stop: int, bound: int) -> int:
        """The last place up to `stop`, a place, whose number is at most `bound`, or -1."""
        tree, size = self._tree, self._size
        node = stop + size
        while tree[node] > bound:
            while not node & 1:
                node >>= 1
            if node == 1:
                return -1
            node -= 1
        while node < size:
            node = 2 * node + 1
            if tree[node] > bound:
                node -= 1
        return node - size
