"""Rules RH2: dates, weekdays and times of the answer against those of the evidence.

A date or time is supported where the evidence has it, where a clock of a place that somebody named shows
it, or where it lies a length that was told away from one that is known.
"""

import calendar
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import combinations, islice, pairwise
from typing import Final

from processors.response_handling.ledger import FROM_USER, Moment
from processors.response_handling.lexicons import keys
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.lexicons.zones import ZONES, offset_at
from processors.response_handling.reading import CalendarDay, Token, agree, to_date
from processors.response_handling.response import Finding, Response, shown

_MOST, _MOST_KNOWN = 60, 600
"""Dates, times and lengths of each kind that are looked at, and entries of the evidence in all."""
_DAY, _MONTH, _YEAR = 1440, 2629800.0, 31557600.0
"""Minutes of a day, and seconds of a month and a year."""
_NEAR, _MOST_ADDED, _MOST_WRONG = 14, 5, 20
"""Days by which people count from now or from a named day; lengths added up by two; findings."""
_SHORTEST_COUNTRY: Final = 6
"""Names of so many letters also count at the beginning of a word: `Nederlandse`."""
_WORKING = (
    "working", "business", "werktag", "arbeitstag", "ouvré", "ouvrable", "hábil", "habil", "laboral", "úteis",
    "lavorativ", "werkdag", "robocz", "営業日", "工作日",
)  # fmt: skip
"""What says that days are counted without weekends."""
_RATE = re.compile(r"\s?(?:/|per\b|pro\b|par\b|por\b|al\b|na\b|min)")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_YEAR_MONTH = re.compile(r"(?<!\d)((?:19|20)\d\d)-(0[1-9]|1[0-2])(?:-([0-3]\d))?(?![\d-])")
_NAME = re.compile(r"[^\W\d_]{2,20}")
_WEEKDAY = re.compile(r"([^\W\d_]{2,20})(?:-feira)?")
_BESIDE = re.compile(r"\s?[,(（]?\s?([^\W\d_]{2,12})")
_SIGN_BESIDE = re.compile(r"\s?[(（]([^\W\d_])[)）]")
"""`(金)`, `（五）`"""
_BREAK = re.compile(r"[^\w\s,.'’]|\d")


class Timeline:
    """What evidence and answer tell of time: what clocks show elsewhere, and what lies between moments."""

    def __init__(self, response: Response) -> None:
        self._response, self._ledger = response, response.ledger
        self.moments = self._ledger.moments[:_MOST_KNOWN]
        self.clocks = [moment for moment in self.moments if moment.minutes is not None][: 2 * _MOST]

    @cached_property
    def days(self) -> list[CalendarDay]:
        """The dates as written, months without a day, and those that clocks elsewhere show."""
        texts = (
            str(text)[:200] for leaf in self._ledger.leaves[:_MOST_KNOWN] for text in (leaf.value, leaf.key)
        )
        months = [
            (int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
            for text in texts
            if (match := _YEAR_MONTH.search(text))
        ]
        written = [day for moment in self.moments for day in moment.dates]
        local = [(at.year, at.month, at.day) for at in self.local]
        return list(dict.fromkeys([*written, *months, *local]))[:_MOST_KNOWN]

    @cached_property
    def dates(self) -> list[date]:
        """The full dates, years taken from the others where they are missing."""
        year = next((day[0] for day in self.days if day[0]), None)
        full = (to_date((day[0] or year, day[1], day[2])) for day in self.days)
        return list(dict.fromkeys(day for day in full if day and 1 < day.year < 9999))[:_MOST]

    @cached_property
    def dated(self) -> list[Moment]:
        """The dates of results, each once."""
        dated = (moment for moment in self.moments if moment.dates and moment.call >= 0)
        found: dict[CalendarDay, Moment] = {}
        for moment in dated:
            found.setdefault(moment.dates[0], moment)
        return [*found.values()]

    @cached_property
    def instants(self) -> list[tuple[datetime, int | None]]:
        """The dates with a time, as written, with the minutes from UTC where they are told."""
        found = []
        for moment, following in pairwise([*self.moments, Moment((), None, "", "\0", FROM_USER, -1)]):
            clock = moment if moment.minutes is not None else following
            day = to_date(moment.dates[0]) if moment.dates else None
            if day and clock.minutes is not None and clock.path == moment.path and 1 < day.year < 9999:
                at = datetime(day.year, day.month, day.day) + timedelta(minutes=clock.minutes)  # noqa: DTZ001 as written
                found.append((at, _minutes_of(clock.zone)))
        return list(dict.fromkeys(found))[:_MOST]

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
        known = [(at, offset) for at, offset in self.instants if offset is not None]
        moved = [at + timedelta(minutes=offset_at(p, at.date()) - o) for at, o in known for p in self.places]
        texts = (leaf.value for leaf in self._ledger.leaves[:_MOST_KNOWN] if isinstance(leaf.value, str))
        told = {_minutes_of(text) or 0 for text in texts if _OFFSET.fullmatch(text)}
        moved += [at + timedelta(minutes=minutes - o) for at, o in known for minutes in told]
        return list(dict.fromkeys(moved))

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
            gap, months = (other - one).days, (other.year - one.year) * 12 + other.month - one.month
            years = other.year - one.year - ((other.month, other.day) < (one.month, one.day))
            found |= {gap * 86400.0, (gap + 1) * 86400.0, months * _MONTH, years * _YEAR}
        seconds = {(clock.minutes or 0) * 60.0 + clock.seconds for clock in self.clocks[:30]}
        for first, second in combinations(seconds, 2):
            found |= {abs(first - second), _DAY * 60 - abs(first - second)}
        for (start, offset), (end, other_offset) in combinations(self.instants[:14], 2):
            shift = offset - other_offset if offset is not None and other_offset is not None else 0
            found.add(abs((end - start).total_seconds() + shift * 60))
        return found - {0.0}

    @cached_property
    def spans(self) -> set[int]:
        """The numbers of days that dates may lie from each other; long ones are also counted inclusively."""
        lengths = self.in_days
        return {step + off for step in lengths for off in ((-1, 0, 1) if step > 6 else (0,))}

    @cached_property
    def is_relative(self) -> bool:
        """Whether question or answer name days by how far they are from now."""
        said = self._response.question + " " + self._response.output
        return "relative" in self._response.words.categories(said)

    @cached_property
    def durations(self) -> set[float]:
        """The lengths of time of the evidence, in seconds."""
        known = self._ledger.quantities[:_MOST_KNOWN]
        return {one.base for one in known if one.unit is not None and one.unit.dimension == "time"}

    @cached_property
    def in_minutes(self) -> set[int]:
        """The minutes by which evidence and answer move times."""
        return self._lengths(1)

    @cached_property
    def in_days(self) -> set[int]:
        """The days by which evidence and answer move dates."""
        return self._lengths(_DAY)

    def _lengths(self, unit: int) -> set[int]:
        tokens = [token for token in self._response.tokens if token.kind == "number" and token.unit]
        found = [token.total for token in tokens if token.unit and token.unit.dimension == "time"]
        known = self._ledger.quantities[:_MOST_KNOWN]
        found += [quantity.base for quantity in known if quantity.unit and quantity.unit.dimension == "time"]
        lengths = {round(seconds / 60 / unit) for seconds in found[:_MOST]} - {0}
        said = self._ledger.text + self._response.output.lower()
        if unit == _DAY and any(word in said for word in _WORKING):
            days = lengths | {count for count, symbol in self._counts if not symbol}
            lengths |= {count + 2 * ((count + by) // 5) for count in days for by in (0, 4)}
        return lengths

    @cached_property
    def _counts(self) -> list[tuple[int, str]]:
        """The whole numbers of evidence and answer, with the symbols of their units."""
        values = [(quantity.value, quantity.unit) for quantity in self._ledger.quantities[:_MOST_KNOWN]]
        values += [(token.value, token.unit) for token in self._response.tokens if token.kind == "number"]
        return [(int(v), unit.symbol if unit else "") for v, unit in values if 0 < v < 600 and v == int(v)]

    @cached_property
    def instalments(self) -> set[int]:
        """The numbers of months over which what recurs on one day of the month may go."""
        return {count - by for count, symbol in self._counts for by in (0, 1) if not symbol and count > 2}

    @cached_property
    def months(self) -> set[int]:
        """The numbers of months by which evidence and answer may move dates."""
        names = [name for name, symbol in self._response.words.units.items() if symbol in ("mo", "y")]
        low = self._ledger.text + self._response.output.lower()
        is_monthly = any(name in low for name in names if len(name) > 3)
        by_unit = {
            count * (12 if symbol == "y" else 1) for count, symbol in self._counts if symbol in ("mo", "y")
        }
        counts = {count - by for count, symbol in self._counts for by in (0, 1) if not symbol}
        return by_unit | ({1} | counts if is_monthly else set())


def unsupported_dates(response: Response) -> Iterator[Finding]:
    """RH2.1 and RH2.5: dates without support; RH2.3: a wrong weekday; RH2.6: times."""
    return islice(_unsupported(response), _MOST_WRONG)


def _unsupported(response: Response) -> Iterator[Finding]:
    claims = [token for token in response.tokens if token.kind in ("date", "time")]
    timeline = response.once(Timeline)
    known = [*timeline.days] if claims else []
    told = [day for token in claims for day in token.dates]
    for token in claims:
        if token.kind == "time":
            is_moved = not _is_placed(token, timeline, response) and _is_moved(token, response)
            if not (is_moved or _is_told_time(token, timeline, response)):
                yield from _slipped_time(token, timeline, response)
        elif wrong := _wrong_weekday(token, timeline, response):
            yield wrong
        elif any(agree(day, other) for day in token.dates for other in known) or token.dates[0][2] is None:
            continue  # a month alone often is one that rows or questions mean without naming it
        elif not timeline.dates and any(
            keys.WEEK_KEYS & {*key_words(key)[-1:]} for key in response.ledger.keys
        ):
            continue  # what week a date is in is not looked up
        elif _is_reached(token, known, timeline):
            known.extend(token.dates[:1])
        else:
            yield _wrong_date(token, told, timeline, response)


def _wrong_date(token: Token, told: list[CalendarDay], timeline: Timeline, response: Response) -> Finding:
    claim, (year, month, number) = shown(response.around(token)), token.dates[0]
    if not timeline.dated:
        return Finding("RH2.1", claim, f"{token.text} is not in the results, which have no date")

    def distance(moment: Moment) -> int:
        other = moment.dates[0]
        apart = abs(other[1] - month) * 31 + abs((other[2] or 1) - (number or 1))
        return apart + (year not in (None, other[0]))

    near = min(timeline.dated, key=distance)
    is_told = any(agree(day, one) for day in near.dates for one in told)
    is_slip = near.dates[0][1] == month and not is_told and not timeline.in_days
    swapped = [one for one in timeline.dated if year and one.dates[0] == (year, number, month)]
    if swapped and swapped[0].dates[0] not in told:
        near, is_slip = swapped[0], True
    day = "-".join(f"{part:02d}" for part in near.dates[0] if part is not None)
    what = f"{token.text} is not in the results; nearest: {near.key} {day}"
    return Finding("RH2.5" if is_slip else "RH2.1", claim, what, near.path, near.call)


def _is_moved(token: Token, response: Response) -> bool:
    """Whether a time and another one are told as much later or earlier as two of a zone are given.

    Then they are told as clocks show them elsewhere. Seconds may be rounded to the next minute.
    """
    return any(
        told == token.minutes and any(other != told and its != given for other, its in pairs)
        for pairs in response.once(_moves).values()
        for told, given in pairs
    )


def _is_placed(token: Token, timeline: Timeline, response: Response) -> bool:
    """Whether the sentence of a time names a place whose clocks are known."""
    said = response.around(token).lower()
    return bool(timeline.local) and any(len(name) > 3 and name in said for name in timeline.places)


def _moves(response: Response) -> dict[int, set[tuple[int, int]]]:
    """For quarters of an hour which times are told so much later than one of a zone, with that one."""
    zoned = [clock.minutes or 0 for clock in response.once(Timeline).clocks if clock.zone][:_MOST]
    found = defaultdict[int, set[tuple[int, int]]](set)
    for token in response.tokens if zoned else ():
        for given in zoned if token.kind == "time" else ():
            if by := _moved_by(token.minutes, given):
                found[by].add((token.minutes, given))
    return found


def _moved_by(told: int, given: int) -> int:
    """By how many quarters of an hour a time is another one's; 0 if by none."""
    quarters, over = divmod((told - given) % _DAY, 15)
    return quarters if over <= 1 else 0


def _slipped_time(token: Token, timeline: Timeline, response: Response) -> Iterator[Finding]:
    told = {other.minutes for other in response.tokens if other.kind == "time"}
    clocks = [(clock, clock.minutes or 0) for clock in timeline.clocks]
    slips = [
        (clock, at) for clock, at in clocks
        if at not in told and (at % 60 == token.minutes % 60 or at // 60 == token.minutes // 60)
    ]  # fmt: skip
    if slips:
        near, minutes = min(slips, key=lambda entry: abs(entry[1] - token.minutes))
        clock = f"{minutes // 60:02d}:{minutes % 60:02d}"
        what = f"{token.text.strip()} is not in the results; nearest: {near.key} {clock}"
        yield Finding("RH2.6", shown(response.around(token)), what, near.path, near.call)


def _is_reached(token: Token, known: list[CalendarDay], timeline: Timeline) -> bool:
    """Whether a date lies so many days or months, as told, from one that is known."""
    for day in dict.fromkeys([*timeline.dates, *filter(None, map(to_date, known[-9:]))]):
        for year, month, number in token.dates:
            stated = to_date((year or day.year, month, number))
            if stated is None:
                continue
            gap, moved = abs((stated - day).days), (stated.year - day.year) * 12 + stated.month - day.month
            if gap in timeline.spans or (timeline.is_relative and gap <= _NEAR):
                return True
            last = calendar.monthrange(stated.year, stated.month)[1]
            is_same = stated.day == day.day and abs(moved) in timeline.instalments
            is_moved = moved and timeline.months & {abs(moved), abs(moved) % 12 if not year else 0}
            if is_same or (is_moved and stated.day in (min(day.day, last), min(day.day, last) - 1, 1, last)):
                return True
    return False


def _wrong_weekday(token: Token, timeline: Timeline, response: Response) -> Finding | None:
    """A weekday beside a date has to be the day's, in its year or in any that answer or evidence name."""
    told = [day for other in response.tokens for day in other.dates]
    years = {day[0] for day in (*timeline.days, *told) if day[0]}
    dates = (
        to_date((year, day[1], day[2])) for day in token.dates for year in ({day[0]} if day[0] else years)
    )
    full = {day for day in dates if day is not None}
    names, said = response.words.weekdays, list[int]()
    before = response.output[max(0, token.start - 24) : token.start].lower()
    after = response.output[token.end : token.end + 18].lower()
    for match in _WEEKDAY.finditer(before):
        gap = before[match.end() :]
        if match[1] in names and len(match[1]) > 2 and not _BREAK.search(gap) and len(gap.split()) <= 3:
            said = [names[match[1]]]
    if not said and (beside := _BESIDE.match(after)) and beside[1] in names:
        said = [names[beside[1]]]
    if not said and not response.words.is_spaced:
        said = [number for name, number in names.items() if name in after[:5]]
        if not said and (sign := _SIGN_BESIDE.match(after)):
            said = [number for name, number in names.items() if sign[1] in (name[0], name[-1])]
    if said and full and all(day.weekday() != said[0] for day in full):
        what = f"{min(full)} is a {calendar.day_name[min(full).weekday()]}"
        return Finding("RH2.3", shown(response.around(token)), what)
    return None


def _is_told_time(token: Token, timeline: Timeline, response: Response) -> bool:
    clocks, stated = timeline.clocks, token.minutes
    period = _DAY if token.is_exact else _DAY // 2
    told = {clock.minutes or 0 for clock in clocks} | {at.hour * 60 + at.minute for at in timeline.local}
    told |= {(clock.minutes or 0) + shift for clock in clocks if not clock.zone for shift in timeline.shifts}
    if any((one - stated) % period == 0 for one in told):
        return True
    lasting = {token.minutes * 60.0 + token.seconds, float(stated)}
    if not lasting.isdisjoint(timeline.durations):  # hours, minutes and seconds, or minutes and seconds
        return True
    if (
        any(clock.seconds for clock in clocks) and {stated, stated + _DAY} & timeline.lapses
    ):  # minutes and seconds
        return True
    is_written_as_time = any(mark in token.text for mark in ":apAP")
    if (not clocks and is_written_as_time) or (":" in token.text and _RATE.match(response.output, token.end)):
        return True
    is_about = "approx" in response.words.categories(response.output[max(0, token.start - 14) : token.start])
    if is_about and any(abs(one - stated) <= 15 for one in told):
        return True
    few = sorted(timeline.in_minutes)[:_MOST_ADDED]
    lengths = timeline.in_minutes | {one + other for one, other in combinations(few, 2)}
    if any((one + by - stated) % period == 0 for one in told for n in lengths for by in (n, -n)):
        return True
    numbers = {abs(quantity.value): quantity.call for quantity in response.ledger.quantities}
    hours = {stated // 60, stated // 60 % 12} & numbers.keys() if stated % 60 == 0 else set[float]()
    if is_written_as_time:
        return any(numbers[hour] == FROM_USER for hour in hours)  # "between 9 and 5"
    # "6 h 30" can be a length.
    return stated in lengths or stated * 60.0 in timeline.lapses or bool(hours) or stated in (0, 720)


def _minutes_of(zone: str) -> int | None:
    match = _OFFSET.fullmatch(zone)
    minutes = (int(match[2]) * 60 + int(match[3])) * (-1 if match[1] == "-" else 1) if match else 0
    return minutes if match or zone in ("Z", "UTC", "GMT") else None
