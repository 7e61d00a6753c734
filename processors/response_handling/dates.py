"""Rules RH2: dates, weekdays and times of the answer against those of the evidence.

A date or time is supported where the evidence has it, where a clock of a place that somebody named shows
it, or where it lies a length that was told away from one that is known.
"""

import calendar
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final

from processors.response_handling.ledger import FROM_USER, Moment
from processors.response_handling.lexicons.keys import LASTING, WEEK_KEYS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.lexicons.zones import ZONES, offset_at
from processors.response_handling.reading import CalendarDay, Token, agree, to_date
from processors.response_handling.response import Finding, Response, shown

DAY: Final = 1440
"""Minutes of a day."""
_MOST, _MOST_KNOWN = 60, 600
"""Dates, times and lengths of each kind that are looked at, and entries of the evidence that may have them."""
_MONTH: Final = 2629800.0
_SHORTEST_COUNTRY: Final = 6
"""Names of so many letters also count at the beginning of a word: `Nederlandse`."""
_NEAR: Final = frozenset(range(-14, 15))
"""Days by which people count from now or from a day that they named."""
_SLIP: Final = 3
"""Days by which a date is a slip of another."""
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_YEAR_MONTH = re.compile(r"(?<!\d)(\d{4})-(0[1-9]|1[0-2])(?![\d-])")
_NAME = re.compile(r"[^\W\d_]{2,20}")
_BESIDE = re.compile(r"\s?[,(（]?\s?([^\W\d_]{2,12})")
_BREAK = re.compile(r"[^\w\s,.'’]|\d")


class Timeline:
    """What evidence and answer tell of time: what clocks show elsewhere, and what lies between moments."""

    def __init__(self, response: Response) -> None:
        self._response, self._ledger = response, response.ledger
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
        said = "\n".join((self._response.output, *texts)).lower().replace("_", " ")
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
        for token in self._response.tokens:
            if token.kind == "number" and token.unit is not None and token.unit.dimension == "time":
                found[round(token.total / 60 / unit)] = None
        return [length for length in found if 0 < length < (4000 if unit > 1 else 100_000)][:_MOST]

    @cached_property
    def months(self) -> set[int]:
        """The numbers of months by which evidence and answer may move dates."""
        names = [name for name, symbol in self._response.words.units.items() if symbol in ("mo", "y")]
        low = self._ledger.text + self._response.output.lower()
        is_monthly = any(name in low for name in names if len(name) > 3)
        found = {1} if is_monthly else set()
        values = [(quantity.value, quantity.unit) for quantity in self._ledger.quantities[:_MOST_KNOWN]]
        values += [(token.value, token.unit) for token in self._response.tokens if token.kind == "number"]
        for value, unit in values:
            if value == int(value) and 0 < value < 600:
                if unit is not None and unit.symbol in ("mo", "y"):
                    found.add(int(value) * (12 if unit.symbol == "y" else 1))
                elif unit is None and is_monthly:
                    found |= {int(value) - 1, int(value)}
        return found


def unsupported_dates(response: Response) -> Iterator[Finding]:
    """RH2.1, RH2.4 and RH2.5: dates without support; RH2.3: a wrong weekday; RH2.2 and RH2.6: times."""
    claims = [token for token in response.tokens if token.kind in ("date", "time")]
    if not claims:
        return
    timeline = response.once(Timeline)
    known = [*timeline.days]
    told = [day for token in claims for day in token.dates]
    for token in claims:
        if token.kind == "time":
            if not _is_told_time(token, timeline, response):
                yield _wrong_time(token, timeline, response)
        elif (wrong := _wrong_weekday(token, timeline, response)) is not None:
            yield wrong
        elif any(agree(day, other) for day in token.dates for other in known):
            continue
        elif _is_reached(token, known, timeline, response):
            known.extend(token.dates[:1])
        elif token.dates[0][2] is None:
            continue  # a month alone often is one that rows or questions mean without naming it
        else:
            yield _wrong_date(token, told, timeline, response)


def _wrong_date(token: Token, told: list[CalendarDay], timeline: Timeline, response: Response) -> Finding:
    claim = response.around(token)
    dated = [moment for moment in timeline.moments if moment.dates and moment.call >= 0]
    if not dated:
        return Finding("RH2.4", shown(claim), f"{token.text} is not in the results, which have no date")
    year, month, number = token.dates[0]

    def distance(moment: Moment) -> int:
        other = moment.dates[0]
        return (
            abs(other[1] - month) * 31 + abs((other[2] or 1) - (number or 1)) + (year not in (None, other[0]))
        )

    near = min(dated, key=distance)
    other = near.dates[0]
    is_told = any(agree(day, one) for day in near.dates for one in told)
    is_part = other[1] == month or other[2] == number
    is_slip = not is_told and number is not None and (distance(near) <= _SLIP or is_part)
    is_open = bool(timeline.lengths(DAY)) or not timeline.months <= {1}
    what = f"{token.text} is not in the results; nearest: {near.key} {_day_text(other)}"
    return Finding("RH2.5" if is_slip and not is_open else "RH2.1", shown(claim), what, near.path, near.call)


def _wrong_time(token: Token, timeline: Timeline, response: Response) -> Finding:
    clocks = [clock for clock in timeline.clocks if clock.call >= 0] or timeline.clocks
    told = {other.minutes for other in response.tokens if other.kind == "time"}
    slips = [
        clock for clock in clocks if clock.minutes not in told
        and ((clock.minutes or 0) % 60 == token.minutes % 60 or (clock.minutes or 0) // 60 == token.minutes // 60)
    ]  # fmt: skip
    near = min(slips or clocks, key=lambda clock: abs((clock.minutes or 0) - token.minutes))
    what = f"{token.text.strip()} is not in the results; nearest: {near.key} {clock_text(near.minutes or 0)}"
    return Finding("RH2.6" if slips else "RH2.2", shown(response.around(token)), what, near.path, near.call)


def _is_reached(token: Token, known: list[CalendarDay], timeline: Timeline, response: Response) -> bool:
    """Whether a date lies so many days or months, as told, from one that is known."""
    days = list(dict.fromkeys([*timeline.dates, *filter(None, map(to_date, known[-9:]))]))
    spans = {step + off for step in timeline.lengths(DAY) for off in ((-1, 0, 1) if step > 6 else (0,))}
    is_relative = "relative" in response.words.categories(response.question + " " + response.output)
    said = [
        day for moment in timeline.moments if moment.call < 0 or "Z" in moment.zone for day in moment.dates
    ]
    for year, month, number in token.dates:
        for day in days if number is not None else ():
            try:
                stated = date(year or day.year, month, number or 1)
            except ValueError:
                continue
            gap = (stated - day).days
            if abs(gap) in spans or (gap in _NEAR and is_relative and _is_said(day, said, timeline)):
                return True
            moved = (stated.year - day.year) * 12 + stated.month - day.month
            last = calendar.monthrange(stated.year, stated.month)[1]
            ends = {min(day.day, last), min(day.day, last) - 1, 1, last}
            if moved and not timeline.months.isdisjoint({abs(moved), abs(moved) % 12 if not year else 0}):
                if stated.day in ends:
                    return True
    return False


def _is_said(day: date, said: list[CalendarDay], timeline: Timeline) -> bool:
    """Whether people count from a day in words: one that they named, or that of now."""
    now = [
        other for moment in timeline.moments for other in moment.dates
        if not {"now", "today", "iso", "timestamp", "heute", "oggi", "hoy"}.isdisjoint(key_words(moment.key))
    ]  # fmt: skip
    return any(agree((day.year, day.month, day.day), other) for other in (*said, *now))


def _wrong_weekday(token: Token, timeline: Timeline, response: Response) -> Finding | None:
    """A weekday right beside a date has to be the day's, in the year that is told or in those of the evidence."""
    years = {day[0] for day in timeline.days if day[0]}
    dates = (
        to_date((year, day[1], day[2])) for day in token.dates for year in ({day[0]} if day[0] else years)
    )
    full = {day for day in dates if day is not None}
    names = response.words.weekdays
    before = response.output[max(0, token.start - 24) : token.start].lower()
    after = response.output[token.end : token.end + 18].lower()
    said = None
    for match in _NAME.finditer(before):
        gap = before[match.end() :]
        if match[0] in names and len(match[0]) > 2 and not _BREAK.search(gap) and len(gap.split()) <= 3:
            said = names[match[0]]
    if said is None and (beside := _BESIDE.match(after)) and beside[1] in names:
        said = names[beside[1]]
    if said is None and not response.words.is_spaced:
        said = next((number for name, number in names.items() if name in after[:5]), None)
    if said is not None and full and all(day.weekday() != said for day in full):
        day = min(full)
        what = f"{day} is a {calendar.day_name[day.weekday()]}"
        return Finding("RH2.3", shown(response.around(token)), what)
    return None


def _is_told_time(token: Token, timeline: Timeline, response: Response) -> bool:
    clocks, stated = timeline.clocks, token.minutes
    if not clocks:
        return True
    period = DAY if token.is_exact else DAY // 2
    told = {clock.minutes or 0 for clock in clocks}
    told |= {at.hour * 60 + at.minute for at in timeline.local}
    told |= {(clock.minutes or 0) + shift for clock in clocks if not clock.zone for shift in timeline.shifts}
    half = {clock.minutes or 0 for clock in clocks if not clock.is_exact}
    if any((one - stated) % period == 0 for one in told) or any((one - stated) % 720 == 0 for one in half):
        return True
    before = response.output[max(0, token.start - 14) : token.start]
    if "approx" in response.words.categories(before) and any(abs(one - stated) <= 15 for one in told):
        return True
    is_zoned = any(clock.zone for clock in clocks)
    if is_zoned and not timeline.local and any((one - stated) % 30 == 0 for one in told):
        return True  # without a place that is known, any zone is possible
    lengths = {0, *timeline.lengths(1)}
    if any(
        (one + sign * length - stated) % period == 0 for one in told for length in lengths for sign in (1, -1)
    ):
        return True
    hours = {abs(q.value) for q in response.ledger.quantities if q.call == FROM_USER}
    if stated % 60 == 0 and {stated // 60, stated // 60 % 12} & hours:
        return True  # "between 9 and 5"
    if any(mark in token.text for mark in ":apAP"):
        return False
    if stated in lengths or stated * 60.0 in timeline.lapses:
        return True  # "6 h 30" can be a length
    numbers = {abs(quantity.value) for quantity in response.ledger.quantities}
    return stated % 60 == 0 and bool({stated // 60, stated // 60 % 12} & numbers or stated in (0, 720))


def _day_text(day: CalendarDay) -> str:
    return "-".join(f"{part:02d}" for part in day if part is not None)


def _minutes_of(zone: str) -> int | None:
    if zone in ("Z", "UTC", "GMT"):
        return 0
    match = _OFFSET.fullmatch(zone)
    return (int(match[2]) * 60 + int(match[3])) * (-1 if match[1] == "-" else 1) if match else None


def clock_text(minutes: int) -> str:
    """Minutes since midnight as people write them."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
