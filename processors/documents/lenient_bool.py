"""Booleans as people and other tools write them in evaluation sets."""

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticKnownError

_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def read_lenient_bool(value: object) -> bool:
    """The boolean that `value` stands for.

    Booleans, the numbers 0 and 1 (also as 0.0 and 1.0) and the texts `true false t f yes no y n on off
    1 0` in any case are read; everything else, null and lists included, raises ValueError.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return value == 1
    if isinstance(value, str):
        word = value.lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
    raise PydanticKnownError("bool_type")


LenientBool = Annotated[bool, BeforeValidator(read_lenient_bool), WithJsonSchema({"type": "boolean"})]
"""A Pydantic field that takes whatever `read_lenient_bool` reads."""
