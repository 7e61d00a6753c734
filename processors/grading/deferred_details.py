"""Details of a score that are put together only when somebody looks at them.

Most scores are counted and explained in one line, and nobody asks for the whole justification; for a long
run that is most of the work.
"""

from collections.abc import Callable, Iterator, Mapping

from processors.json_value import JsonValue


class DeferredDetails(Mapping[str, JsonValue]):
    """Details made on first use; equal to any mapping with the same members."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Mapping[str, JsonValue]]) -> None:
        """`make` is called at most once; it must not depend on anything that changes."""
        self._make = make
        self._made: Mapping[str, JsonValue] | None = None

    def _all(self) -> Mapping[str, JsonValue]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> JsonValue:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())
