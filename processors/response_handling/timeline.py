"""The dates and times of the evidence: what they are, what clocks show elsewhere, what lies between them."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final

from processors.response_handling.ledger import FROM_USER, Ledger, Moment
from processors.response_handling.lexicon import Lexicon
from processors.response_handling.lexicons.keys import LASTING, WEEK_KEYS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.lexicons.zones import ZONES, offset_at
from processors.response_handling.reading import CalendarDay, Token, to_date

DAY: Final = 1440
"""Minutes of a day."""
_MOST: Final = 60
"""Dates, times and lengths of each kind that are looked at."""
_MOST_KNOWN: Final = 600
_MONTH: Final = 2629800.0
_SHORTEST_COUNTRY: Final = 6
"""Names of so many letters also count at the beginning of a word: `Nederlandse`."""
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_YEAR_MONTH = re.compile(r"(?<!\d)(\d{4})-(0[1-9]|1[0-2])(?![\d-])")
_NAME = re.compile(r"[^\W\d_]{2,20}")


class Timeline:
    """What evidence and answer tell of time: what clocks show elsewhere, and what lies between moments."""

    def __init__(self, ledger: Ledger, tokens: Sequence[Token], words: Lexicon, output: str) -> None:
        self._ledger = ledger
        self._tokens = tokens
        self._words = words
        self._output = output
        self.moments = self._ledger.moments[:_MOST_KNOWN]
        self.clocks = [moment for moment in self.moments if moment.minutes is not None][: 2 * _MOST]

    @cached_property
    def days(self) -> list[CalendarDay]:
        """The dates as written, those of months, weeks and parts under keys of their own, and local ones."""
        written = [day for moment in self.moments for day in moment.dates]
        local = [(at.year, at.month, at.day) for at in self.local]
        return list(dict.fromkeys([*written, *self._composed(), *local]))[:_MOST_KNOWN]

    @cached_property
    def dates(self) -> list[date]:
        """The full dates, years taken from the others where they are missing."""
        year = next((day[0] for day in self.days if day[0]), None)
        full = (to_date((day[0] or year, day[1], day[2])) for day in self.days)
        return list(dict.fromkeys(day for day in full if day and 1 < day.year < 9999))[:_MOST]

    def _composed(self) -> Iterator[CalendarDay]:
        for record in self._ledger.records[:_MOST_KNOWN]:
            parts = {key_words(n.key)[-1:]: int(n.value) for n in record.numbers if abs(n.value) < 9999}
            year = parts.get(("year",)) or parts.get(("jahr",)) or parts.get(("anno",))
            month, day = parts.get(("month",), 0), parts.get(("day",))
            if 1 <= month <= 12 and 0 < (day or 1) <= 31:
                yield year, month, day
            week = next((parts[word] for word in parts if word and word[0] in WEEK_KEYS), 0)
            if 1 <= week <= 52 and (year is None or 1900 < year < 2200):
                days = [
                    day.year for day in map(to_date, (d for m in self.moments[:9] for d in m.dates)) if day
                ]
                for weekday in range(1, 8) if year or days else ():
                    at = date.fromisocalendar(year or days[0], week, weekday)
                    yield at.year, at.month, at.day
        for leaf in self._ledger.leaves[:_MOST_KNOWN]:
            for text in (leaf.value, leaf.key):
                if isinstance(text, str) and (match := _YEAR_MONTH.search(text[:200])):
                    yield int(match[1]), int(match[2]), None

    @cached_property
    def instants(self) -> list[tuple[datetime, int | None]]:
        """The dates with a time, as written, with the minutes from UTC where they are told."""
        found: dict[tuple[datetime, int | None], None] = {}
        for moment, following in pairwise([*self.moments, Moment((), None, "", "\0", FROM_USER, -1)]):
            clock = moment if moment.minutes is not None else following
            day = to_date(moment.dates[0]) if moment.dates else None
            if (
                day is not None
                and clock.minutes is not None
                and clock.path == moment.path
                and 1 < day.year < 9999
            ):
                at = datetime(day.year, day.month, day.day) + timedelta(minutes=clock.minutes)  # noqa: DTZ001 as written
                found[at, _minutes_of(clock.zone)] = None
        return list(found)[:_MOST]

    @cached_property
    def places(self) -> list[str]:
        """The places and zones that somebody named."""
        texts = [str(leaf.value) for leaf in self._ledger.leaves if isinstance(leaf.value, str)]
        said = "\n".join((self._output, *texts)).lower().replace("_", " ")
        words = {*_NAME.findall(said)}
        starts = words | {word[:size] for word in words for size in range(_SHORTEST_COUNTRY, len(word))}
        return [name for name in ZONES if name in (starts if name.isascii() and " " not in name else said)][
            :12
        ]

    @cached_property
    def local(self) -> list[datetime]:
        """What clocks show at the places at the instants whose offset is known."""
        return list(dict.fromkeys(
            at + timedelta(minutes=offset_at(name, at.date()) - offset)
            for at, offset in self.instants if offset is not None for name in self.places
        ))  # fmt: skip

    @cached_property
    def shifts(self) -> set[int]:
        """By how many minutes the clocks of two places named differ, on the dates of the evidence."""
        days = self.dates[:4] or [date(2024, 1, 15), date(2024, 7, 15)]
        offsets = [{offset_at(name, day) for name in self.places} for day in days]
        return {one - other for at in offsets for one in at for other in at if one != other}

    @cached_property
    def lapses(self) -> set[float]:
        """The seconds between moments of the evidence."""
        found: set[float] = set()
        for one, other in combinations(sorted(self.dates[:26]), 2):
            gap = (other - one).days
            months = (other.year - one.year) * 12 + other.month - one.month
            found |= {
                gap * 86400.0,
                (gap + 1) * 86400.0,
                months * _MONTH,
                (months - (other.day < one.day)) * _MONTH,
            }
            found.add(
                (other.year - one.year - ((other.month, other.day) < (one.month, one.day))) * 31557600.0
            )
        minutes = list(dict.fromkeys(clock.minutes or 0 for clock in self.clocks[:30]))
        for first, second in combinations(minutes, 2):
            found |= {abs(first - second) * 60.0, (DAY - abs(first - second)) * 60.0}
        for (start, offset), (end, other_offset) in combinations(self.instants[:14], 2):
            shift = offset - other_offset if offset is not None and other_offset is not None else 0
            found.add(abs((end - start).total_seconds() + shift * 60))
        return found - {0.0}

    def lengths(self, unit: int) -> list[int]:
        """The lengths, in units of so many minutes, by which evidence and answer move dates and times."""
        found: dict[int, None] = {}
        for quantity in self._ledger.quantities[:_MOST_KNOWN]:
            if quantity.unit is not None and quantity.unit.dimension == "time":
                found[round(quantity.base / 60 / unit)] = None
            elif quantity.call != FROM_USER and LASTING & {*key_words(quantity.key)}:
                found[round(quantity.value) if unit == 1 else 0] = None
        for token in self._tokens:
            if token.kind == "number" and token.unit is not None and token.unit.dimension == "time":
                found[round(token.total / 60 / unit)] = None
        return [length for length in found if 0 < length < (4000 if unit > 1 else 100_000)][:_MOST]

    @cached_property
    def months(self) -> set[int]:
        """The numbers of months by which evidence and answer may move dates."""
        names = [name for name, symbol in self._words.units.items() if symbol in ("mo", "y")]
        low = self._ledger.text + self._output.lower()
        is_monthly = any(name in low for name in names if len(name) > 3)
        found = {1} if is_monthly else set()
        values = [(quantity.value, quantity.unit) for quantity in self._ledger.quantities[:_MOST_KNOWN]]
        values += [(token.value, token.unit) for token in self._tokens if token.kind == "number"]
        for value, unit in values:
            if value == int(value) and 0 < value < 600:
                if unit is not None and unit.symbol in ("mo", "y"):
                    found.add(int(value) * (12 if unit.symbol == "y" else 1))
                elif unit is None and is_monthly:
                    found |= {int(value) - 1, int(value)}
        return found


def _minutes_of(zone: str) -> int | None:
    if zone in ("Z", "UTC", "GMT"):
        return 0
    match = _OFFSET.fullmatch(zone)
    return (int(match[2]) * 60 + int(match[3])) * (-1 if match[1] == "-" else 1) if match else None


def clock_text(minutes: int) -> str:
    """Minutes since midnight as people write them."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
