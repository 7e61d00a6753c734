"""Values made once for every span, call or result on the hot path."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

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
