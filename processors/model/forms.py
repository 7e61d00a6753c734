"""Values as bytes, in the form that follows from the types of their fields: msgpack.

The journal and the grading processes use it. A field that is added to a type is in its form without another
line; give it a default, so that what was written before can still be read.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from processors.model.json_values import decode_json, encode_json

_ValueT = TypeVar("_ValueT")

_JSON = b"\xc1"
"""Begins no msgpack. JSON follows, for what msgpack cannot hold: integers beyond 64 bits, lone surrogates."""


def plain_value(value: object) -> object:
    """`value`, which is of no type that has a form, as one that has.

    Raises:
        TypeError: there is none.
    """
    if isinstance(value, Mapping):  # `LateMapping`
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form")


def encode_value(value: object, encode_other: Callable[[Any], object] = plain_value) -> bytes:
    """The bytes of `value`; `encode_other` gives those of its parts a form whose types have none.

    Raises:
        TypeError: a part has none.
    """
    try:
        return msgspec.msgpack.encode(value, enc_hook=encode_other)
    except (OverflowError, UnicodeEncodeError):
        return _JSON + encode_json(msgspec.to_builtins(value, enc_hook=encode_other))


def decode_value(
    content: bytes,
    kind: type[_ValueT],
    decode_other: Callable[[type, Any], object] | None = None,
) -> _ValueT:
    """The value whose bytes these are.

    Raises:
        ValueError: they are those of no `kind`.
    """
    try:
        if content.startswith(_JSON):
            return msgspec.convert(decode_json(content[1:]), kind, dec_hook=decode_other)
        return msgspec.msgpack.decode(content, type=kind, dec_hook=decode_other)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
