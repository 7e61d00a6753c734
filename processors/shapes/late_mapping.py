"""A mapping that is made only when somebody looks at it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from processors.model import late

_ValueT = TypeVar("_ValueT")


class LateMapping(Mapping[str, _ValueT], Generic[_ValueT]):
    """What `make` gives, asked for once and on first use; equal to any mapping with the same members."""

    def __init__(self, make: Callable[[], Mapping[str, _ValueT]]) -> None:
        """`make` must not depend on anything that changes."""
        self._make = make

    @late
    def _all(self) -> Mapping[str, _ValueT]:
        return self._make()

    def __getitem__(self, key: str) -> _ValueT:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return repr(self._all)
