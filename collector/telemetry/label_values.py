"""Bounded label values: names that come from telemetry must not be able to make series without end."""

from collections.abc import Container, Iterable

OVERFLOW = "__overflow__"
"""The value that stands for every name that got no slot."""

MAX_LENGTH = 256
"""Longer names share the overflow value."""


class LabelValues:
    """Gives the first `limit` names seen a value of their own, and `OVERFLOW` to all others.

    Reserved names always have one and take none of the slots. A name longer than `max_length` has one only
    if it is reserved.
    """

    def __init__(self, limit: int, max_length: int = MAX_LENGTH) -> None:
        self._limit = limit
        self._max_length = max_length
        self._taken: set[str] = set()
        self._reserved: set[str] = set()

    def reserve(self, names: Iterable[str]) -> None:
        """Give `names` a value whatever the limit. Names reserved before keep theirs in a slot."""
        self._taken |= self._reserved
        self._reserved = {_valid(name) for name in names}
        self._taken -= self._reserved

    def value(self, name: str) -> str:
        """The label value that `name` counts under; a new name takes a slot."""
        if name in self._taken or name in self._reserved:
            return name
        value = _valid(name)
        if value in self._taken or value in self._reserved:
            return value
        if len(self._taken) >= self._limit or len(name) > self._max_length or name == OVERFLOW:
            return OVERFLOW
        self._taken.add(value)
        return value

    def __contains__(self, name: str) -> bool:
        """Whether `name` has a value of its own."""
        return name in self._taken or name in self._reserved

    def __len__(self) -> int:
        """The number of slots taken."""
        return len(self._taken)

    def keep(self, values: Container[str]) -> None:
        """Free the slots of all values that are not among `values`; reserved ones stay."""
        self._taken = {value for value in self._taken if value in values}


def _valid(name: str) -> str:
    """`name` as text that can be encoded: half a surrogate pair would make every later scrape fail."""
    return name.encode(errors="replace").decode()
