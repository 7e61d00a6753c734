"""The dates and times of the evidence: what they are, what clocks show elsewhere, what lies between them."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import combinations, islice
from typing import Final

from processors.response_handling.ledger import Ledger, Moment
from processors.response_handling.lexicons.keys import WEEK_KEYS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.lexicons.zones import ZONES, offset_at
from processors.response_handling.reading import CalendarDay, to_date

MOST_DAYS: Final = 60
_MOST_KNOWN = 600
_MOST_INSTANTS = 14
_MONTH = re.compile(r"(?<!\d)(\d{4})-(0[1-9]|1[0-2])(?![\d-])")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_PLACE = re.compile(r"[^\W\d_]{2,20}")
_DAY: Final = 1440
_SHORTEST_COUNTRY: Final = 6
"""Names of so many letters also count at the beginning of a word: `Nederlandse`."""


class Timeline:
    """What a ledger tells of time; `texts` are where people may have named the places whose clocks count."""

    def __init__(self, ledger: Ledger, texts: Iterable[str]) -> None:
        self._ledger = ledger
        self._texts = texts

    @cached_property
    def days(self) -> list[CalendarDay]:
        """The dates as written, with those of months, weeks and parts under keys of their own."""
        written = [day for moment in self._ledger.moments for day in moment.dates]
        return list(dict.fromkeys([*written, *islice(self._composed(), _MOST_KNOWN)]))[:_MOST_KNOWN]

    @cached_property
    def dates(self) -> list[date]:
        """The full dates, years taken from the others where they are missing."""
        year = next((day[0] for day in self.days if day[0]), None)
        found: dict[date, None] = {}
        for day in self.days:
            full = to_date((day[0] or year, day[1], day[2]))
            if full is not None and 1 < full.year < 9999:
                found[full] = None
        return list(found)[:MOST_DAYS]

    def _composed(self) -> Iterator[CalendarDay]:
        for record in self._ledger.records[:_MOST_KNOWN]:
            parts: dict[str, int] = {}
            for quantity in record.numbers:
                word = key_words(quantity.key)[-1:]
                if word and quantity.value == int(quantity.value):
                    kind = (
                        "week"
                        if word[0] in WEEK_KEYS
                        else {"jahr": "year", "année": "year", "anno": "year"}.get(word[0], word[0])
                    )
                    parts[kind] = int(quantity.value)
            year = parts.get("year")
            if 1 <= parts.get("month", 0) <= 12 and 0 < parts.get("day", 1) <= 31:
                yield year, parts["month"], parts.get("day")
            if year and 1900 < year < 2200 and 1 <= parts.get("week", 0) <= 52:
                for weekday in range(1, 8):
                    day = date.fromisocalendar(year, parts["week"], weekday)
                    yield day.year, day.month, day.day
        for leaf in self._ledger.leaves[:_MOST_KNOWN]:
            for text in (leaf.value, leaf.key):
                if isinstance(text, str) and (match := _MONTH.search(text[:200])):
                    yield int(match[1]), int(match[2]), None

    @cached_property
    def instants(self) -> list[tuple[datetime, int | None]]:
        """The dates with a time, as written, with the minutes from UTC where they are told."""
        found: dict[tuple[datetime, int | None], None] = {}
        moments = self._ledger.moments
        for place, moment in enumerate(moments[:_MOST_KNOWN]):
            clock = (
                moment
                if moment.minutes is not None
                else moments[place + 1]
                if place + 1 < len(moments)
                else None
            )
            if not moment.dates or clock is None or clock.minutes is None or clock.path != moment.path:
                continue
            day = to_date(moment.dates[0])
            if day is not None and 1 < day.year < 9999:
                at = datetime(day.year, day.month, day.day) + timedelta(minutes=clock.minutes)  # noqa: DTZ001 as written
                found[at, _minutes_of(clock.zone)] = None
        return list(found)

    @cached_property
    def places(self) -> list[str]:
        """The places and zones that somebody named."""
        said = "\n".join(self._texts).lower().replace("_", " ")
        words = {*_PLACE.findall(said)}
        starts = {word[:size] for word in words for size in range(_SHORTEST_COUNTRY, len(word))} | words
        return [
            name for name in ZONES if (name in starts if name.isascii() and " " not in name else name in said)
        ]

    @cached_property
    def clocks(self) -> list[Moment]:
        """The times of day of the evidence."""
        return [moment for moment in self._ledger.moments if moment.minutes is not None]

    @cached_property
    def local(self) -> list[datetime]:
        """What clocks show at the places at the instants whose offset is known."""
        found: dict[datetime, None] = {}
        for at, offset in self.instants[:MOST_DAYS]:
            for name in self.places[:12] if offset is not None else ():
                found[at + timedelta(minutes=offset_at(name, at.date()) - (offset or 0))] = None
        return list(found)

    @cached_property
    def shifts(self) -> set[int]:
        """By how many minutes the clocks of two places named differ, on the dates of the evidence."""
        if len(self.places) < 2:
            return set()
        days = self.dates[:4] or [date(2024, 1, 15), date(2024, 7, 15)]
        offsets = [{offset_at(name, day) for name in self.places[:12]} for day in days]
        return {one - other for at in offsets for one in at for other in at if one != other}

    @cached_property
    def lapse_minutes(self) -> frozenset[int]:
        """The whole minutes between moments of the evidence."""
        return frozenset(round(seconds / 60) for seconds, _ in self.lapses())

    def lapses(self) -> Iterator[tuple[float, str]]:
        """Seconds between moments of the evidence, and how they were reckoned."""
        days = self.dates[:26]
        for one, other in combinations(days, 2):
            gap = abs((one - other).days)
            yield gap * 86400.0, f"{one} to {other}"
            yield (gap + 1) * 86400.0, f"{one} to {other}, both included"
            first, second = min(one, other), max(one, other)
            months = (second.year - first.year) * 12 + second.month - first.month
            if months:
                yield months * 2629800.0, f"months from {first} to {second}"
                if second.day < first.day and months > 1:
                    yield (months - 1) * 2629800.0, f"whole months from {first} to {second}"
            years = second.year - first.year - ((second.month, second.day) < (first.month, first.day))
            if years > 0:
                yield years * 31557600.0, f"years from {first} to {second}"
        minutes = list(dict.fromkeys(m.minutes for m in self.clocks[:30] if m.minutes is not None))
        for one_clock, other_clock in combinations(minutes, 2):
            gap = abs(one_clock - other_clock)
            for length in (gap, _DAY - gap):
                yield length * 60.0, f"{clock_text(one_clock)} to {clock_text(other_clock)}"
        for (start, offset), (end, other_offset) in combinations(self.instants[:_MOST_INSTANTS], 2):
            shift = (offset or 0) - (other_offset or 0) if None not in (offset, other_offset) else 0
            seconds = (end - start).total_seconds() + shift * 60
            yield abs(seconds), f"{start} to {end}"


def _minutes_of(zone: str) -> int | None:
    if zone in ("Z", "UTC", "GMT"):
        return 0
    match = _OFFSET.fullmatch(zone)
    return (int(match[2]) * 60 + int(match[3])) * (-1 if match[1] == "-" else 1) if match else None


def clock_text(minutes: int) -> str:
    """Minutes since midnight as people write them."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
