"""The JSON values that travel through evaluation: arguments, results, details; and how files hold them."""

import json
import math
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import orjson

if TYPE_CHECKING:
    JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
    """What a JSON document can hold; integers stay exact, objects keep the order of their keys."""
else:
    JsonValue = Any  # msgspec reads the types of fields, and knows no recursive alias

JsonObject: TypeAlias = dict[str, JsonValue]

DIGITS_TO_ZEROS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
LONG_NUMBER = b"0" * 19
"""Shows, in text whose digits are made zeros, where an integer may have more digits than the fast parser
gives exactly. A tenth of the cost of a regular expression."""


def encode_json(value: JsonValue) -> bytes:
    """`value` as JSON on one line. Total: integers of any size stay exact, lone surrogates are escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return json.dumps(value, separators=(",", ":")).encode()


def decode_json(text: bytes) -> JsonValue:
    """The value of a JSON text, integers exact and lone surrogates retained.

    Raises:
        ValueError: no JSON, NaN or an infinity, or nested too deep.
    """
    value: JsonValue
    if text.translate(DIGITS_TO_ZEROS).find(LONG_NUMBER) < 0:  # the fast parser makes floats beyond 64 bits
        try:
            value = orjson.loads(text)
        except ValueError:
            if b"\\ud" not in text.lower():
                raise
        else:
            return value
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError("number out of range")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
