"""Bounded label values: names that come from telemetry must not be able to make series without end."""

from collections.abc import Iterable

OVERFLOW = "__overflow__"
"""The value that stands for every name that got no slot."""

MAX_LENGTH = 256
"""Longer names share the overflow value."""


class LabelValues:
    """Gives the first `limit` names seen a value of their own, and `OVERFLOW` to all others.

    Reserved names always have one and take none of the slots.
    """

    def __init__(self, limit: int) -> None:
        self._slots = limit
        self._values: dict[str, str] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Give `names` a value whatever the limit; they keep it from then on."""
        for name in names:
            self._values[name] = _valid(name)

    def value(self, name: str) -> str:
        """The label value that `name` counts under."""
        value = self._values.get(name)
        if value is not None:
            return value
        if self._slots <= 0 or len(name) > MAX_LENGTH or name == OVERFLOW:
            return OVERFLOW
        self._slots -= 1
        value = self._values[name] = _valid(name)
        return value


def _valid(name: str) -> str:
    """`name` as text that can be encoded: half a surrogate pair would make every later scrape fail."""
    return name.encode(errors="replace").decode()
