"""Rules RH2: dates, weekdays and times of the answer against those of the evidence.

A date or time is supported where the evidence has it, where a clock of a place that somebody named shows
it, or where it lies a length that was told away from one that is known.
"""

import calendar
import re
from collections.abc import Iterator
from datetime import date
from typing import Final

from processors.response_handling.ledger import FROM_USER, Moment
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.reading import CalendarDay, Token, agree, to_date
from processors.response_handling.response import Finding, Response, shown
from processors.response_handling.timeline import DAY, Timeline, clock_text

_NEAR: Final = frozenset(range(-14, 15))
"""Days by which people count from now or from a day that they named."""
_SLIP: Final = 3
"""Days by which a date is a slip of another."""
_NAME = re.compile(r"[^\W\d_]{2,20}")
_BESIDE = re.compile(r"\s?[,(（]?\s?([^\W\d_]{2,12})")
_BREAK = re.compile(r"[^\w\s,.'’]|\d")


def unsupported_dates(response: Response) -> Iterator[Finding]:
    """RH2.1, RH2.4 and RH2.5: dates without support; RH2.3: a wrong weekday; RH2.2 and RH2.6: times."""
    claims = [token for token in response.tokens if token.kind in ("date", "time")]
    if not claims:
        return
    timeline = response.timeline
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
