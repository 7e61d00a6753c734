"""What is read when it is first looked at, and then stays: conversations are long, and few criteria use them.

Nothing else defers. What is read late must depend on nothing that changes.
"""

from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class late(Generic[T]):  # a decorator, as `property`
    """An attribute that the decorated method reads.

    It is `functools.cached_property` without its lock, which costs more than most of what is read.
    """

    def __init__(self, read: Callable[..., T]) -> None:
        self._read = read
        self._name = read.__name__
        self.__doc__ = read.__doc__

    @overload
    def __get__(self, holder: None, owner: type) -> "late[T]": ...
    @overload
    def __get__(self, holder: object, owner: type) -> T: ...
    def __get__(self, holder: object | None, owner: type) -> "late[T] | T":
        if holder is None:
            return self
        result = holder.__dict__[self._name] = self._read(holder)
        return result


class LateObject:
    """Has the attributes that `read` gives by their names."""

    def __init__(self, read: Callable[[str], object]) -> None:
        self._read = read

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)  # what copying and pickling look for
        result = self.__dict__[name] = self._read(name)
        return result


class LateMapping(Mapping[str, T], Generic[T]):
    """The mapping that `read` returns."""

    def __init__(self, read: Callable[[], Mapping[str, T]]) -> None:
        self._read = read

    @late
    def _mapping(self) -> Mapping[str, T]:
        return self._read()

    def __getitem__(self, key: str) -> T:
        return self._mapping[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping)

    def __len__(self) -> int:
        return len(self._mapping)

    def items(self) -> ItemsView[str, T]:
        """Those of what was read, which are iterated in a fraction of the time."""
        return self._mapping.items()

    def __repr__(self) -> str:
        return repr(self._mapping)
