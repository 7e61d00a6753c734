"""Lengths of time between the dates and times of the evidence, since answers tell them as numbers."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import combinations, pairwise
from typing import Final

from processors.response_handling.quantities import Moment
from processors.response_handling.reading import to_date

_MOST_KNOWN, _MOST_DATES, _MOST_CLOCKS, _MOST_INSTANTS = 600, 26, 30, 14
"""Moments that are looked at, and dates, times and dates with a time of which pairs are formed."""
_DAY, _MONTH, _YEAR = 86_400.0, 2_629_800.0, 31_557_600.0
"""Seconds of a day, a month and a year."""
_IN_UTC: Final = frozenset({"Z", "UTC", "GMT"})


def lapses(moments: Sequence[Moment]) -> set[float]:
    """The seconds between moments of the evidence: dates in days, months and years, and times of day."""
    moments = moments[:_MOST_KNOWN]
    clocks = [moment for moment in moments if moment.minutes is not None]
    lengths: set[float] = set()
    for one, other in combinations(sorted(_dates(moments)[:_MOST_DATES]), 2):
        gap, months = (other - one).days, (other.year - one.year) * 12 + other.month - one.month
        years = other.year - one.year - ((other.month, other.day) < (one.month, one.day))
        lengths |= {gap * _DAY, (gap + 1) * _DAY, months * _MONTH, years * _YEAR}
    seconds = {(clock.minutes or 0) * 60.0 + clock.seconds for clock in clocks[:_MOST_CLOCKS]}
    for first, second in combinations(seconds, 2):
        lengths |= {abs(first - second), _DAY - abs(first - second)}
    for (start, offset), (end, other_offset) in combinations(_instants(moments)[:_MOST_INSTANTS], 2):
        shift = offset - other_offset if offset is not None and other_offset is not None else 0
        lengths.add(abs((end - start).total_seconds() + shift * 60))
    return lengths - {0.0}


def _dates(moments: Sequence[Moment]) -> list[date]:
    """The full dates, years taken from the others where they are missing."""
    days = [day for moment in moments for day in moment.dates]
    year = next((day[0] for day in days if day[0]), None)
    full = (to_date((day[0] or year, day[1], day[2])) for day in days)
    return list(dict.fromkeys(day for day in full if day and 1 < day.year < 9999))


def _instants(moments: Sequence[Moment]) -> list[tuple[datetime, int | None]]:
    """The dates with a time, as written, with the minutes from UTC where these are written."""
    instants = []
    for moment, following in pairwise([*moments, Moment((), None, "\0")]):
        clock = moment if moment.minutes is not None else following
        day = to_date(moment.dates[0]) if moment.dates else None
        if day and clock.minutes is not None and clock.path == moment.path and 1 < day.year < 9999:
            at = datetime(day.year, day.month, day.day) + timedelta(minutes=clock.minutes)  # noqa: DTZ001 as written
            instants.append((at, _minutes_from_utc(clock.zone)))
    return list(dict.fromkeys(instants))


def _minutes_from_utc(zone: str) -> int | None:
    if zone in _IN_UTC:
        return 0
    sign, digits = zone[:1], zone[1:].replace(":", "")
    if sign not in ("+", "-") or len(digits) != 4 or not digits.isdecimal():
        return None
    return (int(digits[:2]) * 60 + int(digits[2:])) * (-1 if sign == "-" else 1)
