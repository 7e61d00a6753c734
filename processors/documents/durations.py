"""Durations as people write them: `200ms`, `5s`, `1h30m`."""

import re
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
DURATION_PATTERN = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+)$"
"""What a text that is a duration matches."""
_EXPECTED = "expected a duration such as 200ms, 5s, 1m or 1h30m"


def parse_duration(text: str) -> float:
    """The seconds that `text` stands for.

    A duration is one or more numbers with a unit (`ms`, `s`, `m`, `h`, `d`, `w`), in any order, added up;
    `0` needs no unit.

    Raises:
        ValueError: `text` is something else; the message says what was expected.
    """
    stripped = text.strip()
    if not re.fullmatch(DURATION_PATTERN, stripped):
        hint = " (the unit is missing)" if stripped.replace(".", "", 1).isdigit() else ""
        raise ValueError(f"{_EXPECTED}, got {text!r}{hint}")
    return sum(float(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(stripped)) / 1000


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads as `seconds`, to the millisecond: `90.0` is `1m30s`."""
    milliseconds = round(seconds * 1000)
    parts = []
    for unit in ("h", "m", "s", "ms"):
        count, milliseconds = divmod(milliseconds, _MILLISECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def seconds_of(value: object) -> float:
    """The seconds of a duration as a file has it; raises ValueError for what is none."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(_EXPECTED)
    if value != 0:
        raise ValueError(f"{_EXPECTED}, got {value!r} (the unit is missing)")
    return 0.0


Duration: TypeAlias = Annotated[
    float,
    BeforeValidator(seconds_of),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["200ms", "5s", "1h30m"]}),
]
"""Written as a text like `200ms` or `1h30m`, held as seconds (not negative), printed as a text again."""

PositiveDuration: TypeAlias = Annotated[Duration, Field(gt=0)]
"""A `Duration` that may not be 0."""
