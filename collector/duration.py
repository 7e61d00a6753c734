"""Durations as configuration writes them: texts like `200ms`, `5s`, `1h30m`; seconds as code uses them."""

import re
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_PATTERN = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"
_EXPECTED = "expected a duration such as 200ms, 5s, 1m or 1h30m"


def parse_duration(text: str) -> float:
    """The seconds that `text` stands for.

    A duration is one or more numbers with a unit (`ms`, `s`, `m`, `h`), largest or smallest first, added
    up; `0` needs no unit.

    Raises:
        ValueError: `text` is something else; the message says what was expected.
    """
    stripped = text.strip()
    if stripped == "0":
        return 0.0
    milliseconds = 0.0
    position = 0
    for part in _PART.finditer(stripped):
        if part.start() != position:
            break
        milliseconds += float(part[1]) * _MILLISECONDS[part[2]]
        position = part.end()
    if position != len(stripped) or not stripped:
        hint = " (the unit is missing)" if stripped.replace(".", "", 1).isdigit() else ""
        raise ValueError(f"{_EXPECTED}, got {text!r}{hint}")
    return milliseconds / 1000


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads as `seconds`, to the millisecond: `90.0` is `1m30s`."""
    milliseconds = round(seconds * 1000)
    parts = []
    for unit in ("h", "m", "s", "ms"):
        count, milliseconds = divmod(milliseconds, _MILLISECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _seconds(value: object) -> float:
    if isinstance(value, str):
        return parse_duration(value)
    if value == 0 and not isinstance(value, bool):
        return 0.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{_EXPECTED}, got {value!r} (the unit is missing)")
    raise ValueError(_EXPECTED)


Duration: TypeAlias = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["200ms", "5s", "1h30m"]}),
]
"""A configuration field: written as a text, held as seconds (not negative), printed as a text again."""

PositiveDuration: TypeAlias = Annotated[Duration, Field(gt=0)]
"""A `Duration` that may not be 0."""
