"""Names of tools that models asked for, read from messages only when somebody looks at them."""

from collections.abc import Callable, Sequence
from typing import overload


class RequestedTools(Sequence[str]):
    """A list of names, made on first use; equal to any sequence of the same names."""

    __slots__ = ("_names", "_read")

    def __init__(self, read: Callable[[], Sequence[str]]) -> None:
        self._read = read
        self._names: Sequence[str] | None = None

    def _all(self) -> Sequence[str]:
        if self._names is None:
            self._names = self._read()
        return self._names

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self._all()))

    def __repr__(self) -> str:
        return f"RequestedTools({list(self)!r})"
