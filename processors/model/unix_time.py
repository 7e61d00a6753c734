"""Moments as texts: RFC 3339 in UTC with all nine digits of a nanosecond, so that texts sort as times do."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_SECOND = 1_000_000_000
_TO_THE_SECOND = len("2026-01-31T08:00:00")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def time_text(unix_nano: int) -> str:
    """Nanoseconds since 1970, as OTLP counts them in 64 bits, such as `2026-01-31T08:00:00.000000001Z`."""
    seconds, nanoseconds = divmod(unix_nano, _SECOND)
    return f"{_second_text(seconds)}.{nanoseconds:09}Z"


def unix_nano_of(text: str) -> int:
    """The nanoseconds since 1970 of a time of RFC 3339, with an offset and up to nine digits of a second.

    Raises:
        ValueError: it is no such time, or before 1970.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("no time of RFC 3339")
    moment, fraction, offset = match.groups()
    seconds = (datetime.fromisoformat(moment + offset) - _EPOCH) // timedelta(seconds=1)
    if seconds < 0:
        raise ValueError("before 1970")
    return seconds * _SECOND + int((fraction or "").ljust(9, "0"))


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    """To the second: a run and its calls share most of them."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:_TO_THE_SECOND]
