"""A list that is read only when somebody looks at it."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

_ItemT = TypeVar("_ItemT")


class LateSequence(Sequence[_ItemT], Generic[_ItemT]):
    """What `read` gives, asked for once and on first use; equal to any sequence of the same items."""

    __slots__ = ("_items", "_read")

    def __init__(self, read: Callable[[], Sequence[_ItemT]]) -> None:
        self._read = read
        self._items: Sequence[_ItemT] | None = None

    def _all(self) -> Sequence[_ItemT]:
        if self._items is None:
            self._items = self._read()
        return self._items

    @overload
    def __getitem__(self, index: int) -> _ItemT: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_ItemT]: ...
    def __getitem__(self, index: int | slice) -> _ItemT | Sequence[_ItemT]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self._all()))

    def __repr__(self) -> str:
        return f"LateSequence({list(self)!r})"
