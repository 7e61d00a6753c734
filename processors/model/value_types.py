"""Values made once for every span, call or result on the hot path, and what of them is read late."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value_type(cls: type[T]) -> type[T]:
    """A dataclass with slots and keyword arguments whose fields the type checker lets nobody assign.

    At run time it is not frozen: making a frozen instance costs three times as much. Instances compare by
    value and are not hashable.
    """
    return dataclass(slots=True, kw_only=True)(cls)


@dataclass_transform(frozen_default=True)
def positional_value_type(cls: type[T]) -> type[T]:
    """The same with arguments that may be given by position."""
    return dataclass(slots=True)(cls)


class late(Generic[T]):  # a decorator, as `property`
    """An attribute that the decorated method reads when somebody first looks at it, and that then stays.

    The one way in which something is read late here: conversations are long, and mostly nobody asks. It is
    `functools.cached_property` without the lock that costs more than most of what is read.
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
        found = holder.__dict__[self._name] = self._read(holder)
        return found
