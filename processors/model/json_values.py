"""The JSON values that travel through evaluation: arguments, results, details; and how files hold them."""

import json
import math
import re
from typing import NoReturn, TypeAlias

import orjson

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
"""What a JSON document can hold; integers stay exact, objects keep the order of their keys."""

JsonObject: TypeAlias = dict[str, JsonValue]

_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def encode_json(value: JsonValue) -> bytes:
    """`value` as JSON on one line. Total: integers of any size stay exact, lone surrogates are escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return json.dumps(value, separators=(",", ":")).encode()


def decode_json(text: bytes) -> JsonValue:
    """The value that `encode_json` or anybody else wrote, integers exact and lone surrogates kept.

    Raises:
        ValueError: no JSON, NaN or an infinity, or nested too deep.
    """
    value: JsonValue
    if _LONG_NUMBER.search(text) is None:  # the fast parser makes floats of integers beyond 64 bits
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
