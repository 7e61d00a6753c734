"""Values of the service that are no Structs: they hold what has no form as bytes."""

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
