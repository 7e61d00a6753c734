"""Rule RH2: dates, times and weekdays that no evidence supports."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

from processors.response_handling.ledger import FROM_USER, Moment
from processors.response_handling.lexicons.keys import LASTING, SPEAKS_OF_ZONES, ZONE_WORDS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.reading import CalendarDay, Token, agree, to_date
from processors.response_handling.response import Finding, Response, shown
from processors.response_handling.timeline import MOST_DAYS, clock_text

_LONGEST_GAP = 3_700
_MOST_STEPS = 24
_MOST_CLAIMS = 40
_MOST_MOMENTS = 150
_NEAR = (1, 2, 3, 7)
_SLIP_DAYS = 3
_SURELY_INSTALMENTS = 3
"""Numbers above it may count months though no key says so."""
_WORD = re.compile(r"[^\W\d_]{2,20}(?:-feira)?")
_BESIDE = re.compile(r"\s?[,(（]\s?([^\W\d_]{3,20}(?:-feira)?)")


def unsupported_dates(response: Response) -> Iterator[Finding]:
    """RH2.1: a date, RH2.2: a time of day, RH2.3: a weekday that its date does not have.

    RH2.5 and RH2.6: a date or time that is a slip of one of the results, which the answer does not tell.
    """
    claims = [token for token in response.tokens if token.kind in ("date", "time")][:_MOST_CLAIMS]
    if not claims:
        return
    timeline = response.timeline
    known = [*timeline.days, *((at.year, at.month, at.day) for at in timeline.local)]
    told_days = [day for token in claims for day in token.dates]
    reach = _reach(response, known)
    for token in claims:
        claim = shown(response.output[max(0, token.start - 16) : token.end + 6])
        if token.kind == "date":
            if any(agree(day, other) for day in token.dates for other in known):
                yield from _weekday(token, known, response)
                yield from _day_elsewhere(token, claim, response)
            elif _is_reached(token, known, reach, response) and not _is_beside_untold(
                token, told_days, response
            ):
                known.extend(token.dates[:1])
            else:
                found = _wrong_date(token, told_days, claim, response)
                # Where lengths are told a date may be reckoned in steps that no search tries.
                lengths = _lengths(response, 1440)
                is_open = len(lengths) > 1 or not _months(response) <= {1}
                if found.rule == "RH2.4":
                    is_open = bool(lengths)
                if found.rule == "RH2.5" and (lengths or _has_month_words(response)):
                    yield replace(found, rule="RH2.1")
                elif found.rule == "RH2.5" or not is_open:
                    yield found
        elif not _is_told_time(token, response):
            yield from _wrong_time(token, claim, response)
        yield from _asked_in_vain(token, claim, response)


def _wrong_date(token: Token, told: list[CalendarDay], claim: str, response: Response) -> Finding:
    dated = [m for m in response.ledger.moments if m.dates and m.call >= 0][:_MOST_MOMENTS]
    if not dated:
        return Finding("RH2.4", claim, f"{token.text} is not in the results")
    year, month, number = token.dates[0]

    def distance(moment: Moment) -> int:
        other = moment.dates[0]
        return (
            abs(other[1] - month) * 31 + abs((other[2] or 1) - (number or 1)) + (year not in (None, other[0]))
        )

    near = min(dated, key=distance)
    is_told = any(agree(day, other) for day in near.dates for other in told)
    one, other = (near.dates[0][1], near.dates[0][2]), (month, number)
    is_part = one[0] == other[0] or one[1] == other[1]
    is_slip = not is_told and number is not None and (distance(near) <= _SLIP_DAYS or is_part)
    what = f"{token.text} is not in the results; nearest: {near.key} {_day_text(near.dates[0])}"
    return Finding("RH2.5" if is_slip else "RH2.1", claim, what, near.path, near.call)


def _day_elsewhere(token: Token, claim: str, response: Response) -> Iterator[Finding]:
    """RH2.5 as well: the day in UTC, beside the time that a clock of the place named shows on another day."""
    start, end = response.sentence_of(token.start)
    inside = [one for one in response.tokens if start <= one.start < end and one.kind in ("date", "time")]
    times = [one for one in inside if one.kind == "time"]
    local = response.timeline.local
    if len(inside) != 2 or len(times) != 1 or not local or any(not m.zone for m in response.timeline.clocks):
        return
    days = [(at.year, at.month, at.day) for at in local if at.hour * 60 + at.minute == times[0].minutes]
    if days and not any(agree(day, other) for day in days for other in token.dates):
        what = f"{times[0].text.strip()} is on {_day_text(days[0])} there"
        yield Finding("RH2.5", claim, what)


def _wrong_time(token: Token, claim: str, response: Response) -> Iterator[Finding]:
    clocks = [m for m in response.timeline.clocks if m.call >= 0]
    if not clocks:
        return
    near = min(clocks, key=lambda moment: abs((moment.minutes or 0) - token.minutes))
    told = {other.minutes for other in response.tokens if other.kind == "time"}
    slips = [
        m for m in clocks if m.minutes not in told and not m.zone
        and ((m.minutes or 0) % 60 == token.minutes % 60 or (m.minutes or 0) // 60 == token.minutes // 60)
    ]  # fmt: skip
    near = slips[0] if slips else near
    what = f"{token.text.strip()} is not in the results; nearest: {near.key} {clock_text(near.minutes or 0)}"
    yield Finding("RH2.6" if slips else "RH2.2", claim, what, near.path, near.call)


def _asked_in_vain(token: Token, claim: str, response: Response) -> Iterator[Finding]:
    """RH12.4: the date or time that was asked for, where the result has another."""

    def is_it(moment: Moment, other: Token) -> bool:
        if other.kind == "time":
            return moment.minutes == other.minutes
        return any(agree(a, b) for a in moment.dates for b in other.dates)

    hits = [m for m in response.ledger.moments[:_MOST_MOMENTS] if is_it(m, token)]
    if not hits or any(m.call >= 0 and m.is_whole for m in hits):
        return
    for asked in hits:
        call = response.ledger.records[asked.record].made_for
        for given in response.ledger.moments[:_MOST_MOMENTS] if call in response.last_calls else ():
            is_other = given.call == call and given.key == asked.key and given.path == asked.path
            if is_other and (given.minutes is None) == (asked.minutes is None):
                if not any(is_it(given, other) for other in response.tokens):
                    what = f"{given.key} is " + (
                        clock_text(given.minutes) if given.minutes is not None else _day_text(given.dates[0])
                    )
                    yield Finding("RH12.4", claim, what, given.path, call)
                    return


def _is_beside_untold(token: Token, told: list[CalendarDay], response: Response) -> bool:
    """Whether a date lies a day beside one of a result that the answer does not tell."""
    days = {q.value for q in response.ledger.quantities if q.unit is not None and q.unit.symbol == "d"}
    if 1.0 in days or any(m.zone for m in response.ledger.moments) or len(response.timeline.days) > 8:
        return False
    for moment in response.ledger.moments:
        full = to_date(moment.dates[0]) if moment.dates and moment.call >= 0 else None
        if full is None or not 1 < full.year < 9999 or any(agree(moment.dates[0], other) for other in told):
            continue
        for year, month, number in token.dates:
            if number and year in (None, full.year) and (month, number) in {
                ((full + timedelta(days=by)).month, (full + timedelta(days=by)).day) for by in (-1, 1)
            }:  # fmt: skip
                return True
    return False


def _lengths(response: Response, unit: int) -> list[int]:
    """The lengths, in units of so many minutes, by which evidence and answer move dates and times."""
    found: dict[int, None] = {}
    for quantity in response.ledger.quantities[:600]:
        if quantity.unit is not None and quantity.unit.dimension == "time":
            seconds = quantity.value * quantity.unit.factors[0]
            found[round(seconds / 60 / unit)] = None
        elif unit == 1 and quantity.call != FROM_USER and LASTING & {*key_words(quantity.key)}:
            found[round(quantity.value)] = None
    for token in response.tokens:
        if token.kind == "number" and token.unit is not None and token.unit.dimension == "time":
            seconds = token.value * token.unit.factors[0] + sum(v * u.factors[0] for v, u in token.extra)
            found[round(seconds / 60 / unit)] = None
    most = _LONGEST_GAP if unit > 1 else 100_000
    return [length for length in found if 0 < length < most][:_MOST_STEPS]


def _months(response: Response) -> set[int]:
    """The numbers of months by which evidence and answer may move dates."""
    is_monthly = _has_month_words(response)
    found = {1} if is_monthly else set()
    values = [(q.value, q.unit) for q in response.ledger.quantities[:600]]
    values += [(token.value, token.unit) for token in response.tokens if token.kind == "number"]
    for value, unit in values:
        if value == int(value) and 0 < value < 600:
            if unit is not None and unit.symbol in ("mo", "y"):
                found.add(int(value) * (12 if unit.symbol == "y" else 1))
            elif unit is None and (is_monthly or value > _SURELY_INSTALMENTS):
                found |= {int(value) - 1, int(value)}
    return found


def _has_month_words(response: Response) -> bool:
    names = {name for name, symbol in response.words.units.items() if symbol in ("mo", "y")}
    low = response.ledger.folded_texts + response.output.lower()
    return any(name in low for name in names if len(name) > 3)


def _reach(response: Response, known: list[CalendarDay]) -> frozenset[date]:
    """The days that lie a told length, or a length in words, from one of the evidence."""
    steps = _lengths(response, 1440)
    relative = _relative_days(response)
    spans = {step + off for step in steps for off in ((-1, 0, 1) if step > 6 else (0,))}
    days = {*response.timeline.dates, *(day for one in known[-9:] if (day := to_date(one)))}
    ordinals = {
        day.toordinal() + sign * span for day in days
        for span in (spans | {*_NEAR} if day in relative else spans) for sign in (1, -1)
    }  # fmt: skip
    return frozenset(date.fromordinal(o) for o in ordinals if 1 <= o <= date.max.toordinal())


def _is_reached(token: Token, known: list[CalendarDay], reach: frozenset[date], response: Response) -> bool:
    """Whether a date lies so many days or months from one of the evidence, or fills a range."""
    days = [*response.timeline.dates, *(day for one in known[-9:] if (day := to_date(one)))][:MOST_DAYS]
    months, is_monthly = _months(response), _has_month_words(response)
    for year, month, number in token.dates:
        if number is None:
            continue
        if year and to_date((year, month, number)) in reach:
            return True
        if not year and any((day.month, day.day) == (month, number) for day in reach):
            return True
        for day in days:
            span = ((year or day.year) - day.year) * 12 + month - day.month
            span = span if year else span % 12
            last = calendar.monthrange(year or day.year, month)[1]
            if span and (span in months or -span in months):
                if number in (min(day.day, last), min(day.day, last) - 1) or (
                    is_monthly and number in (1, last)
                ):
                    return True
    return False


def _relative_days(response: Response) -> set[date]:
    """The days from which people count in words: those they named, those of now, and those told in UTC."""
    is_relative = "relative" in response.words.categories(response.question + " " + response.output)
    found: set[date] = set()
    zoned = {moment.path for moment in response.ledger.moments if moment.zone in ("Z", "UTC", "GMT")}
    for moment in response.ledger.moments[:600]:
        is_now = moment.call < 0 or not {"now", "today", "iso", "timestamp"}.isdisjoint(key_words(moment.key))
        if (is_relative and is_now) or moment.path in zoned:
            found.update(day for one in moment.dates if (day := to_date(one)))
    return found


def _weekday(token: Token, known: list[CalendarDay], response: Response) -> Iterator[Finding]:
    """A weekday right beside a date that is in the evidence has to be the day's."""
    full = {
        day for one in known for written in token.dates
        if agree(written, one) and (day := to_date((written[0] or one[0], one[1], one[2] or written[2])))
    }  # fmt: skip
    before = response.output[max(0, token.start - 24) : token.start]
    after = response.output[token.end : token.end + 18]
    names = response.words.weekdays
    said = None
    for match in _WORD.finditer(before.lower()):
        if match[0] in names and len(match[0]) > 2 and not re.search(r"[^\w\s,.]|\d", before[match.end() :]):
            said = names[match[0]] if len(before[match.end() :].split()) <= 3 else None
    if said is None and (beside := _BESIDE.match(after.lower())) and beside[1] in names:
        said = names[beside[1]]
    if said is None and not response.words.is_spaced:
        said = next((number for name, number in names.items() if name in after[:5]), None)
    if said is not None and full and all(day.weekday() != said for day in full):
        day = min(full)
        yield Finding(
            "RH2.3", shown(before + token.text + after), f"{day} is a {calendar.day_name[day.weekday()]}"
        )


def _is_told_time(token: Token, response: Response) -> bool:
    timeline = response.timeline
    clocks = timeline.clocks[:MOST_DAYS]
    if not clocks:
        return True
    stated = token.minutes
    period = 1440 if token.is_exact else 720
    told = {m.minutes or 0 for m in clocks}
    local = {at.hour * 60 + at.minute for at in timeline.local} | {
        (one + shift) % 1440
        for one in {m.minutes or 0 for m in clocks if not m.zone}
        for shift in timeline.shifts
    }
    loose = {m.minutes or 0 for m in clocks if not m.is_exact}
    if any((one - stated) % period == 0 for one in told | local) or any(
        (one - stated) % 720 == 0 for one in loose
    ):
        return True
    before = response.output[max(0, token.start - 14) : token.start]
    if "approx" in response.words.categories(before) and any(abs(one - stated) <= 10 for one in told | local):
        return True
    # Without a place that is known, any zone is possible.
    is_zoned = any(m.zone for m in clocks) or not ZONE_WORDS.isdisjoint(response.ledger.words)
    speaks = any(word in response.output + " " + response.question for word in SPEAKS_OF_ZONES)
    is_open = not timeline.local or len(timeline.places) < 1
    if (
        is_zoned
        and is_open
        and (speaks or any(m.zone == "Z" for m in clocks))
        and _is_elsewhere(stated, response)
    ):
        return True
    lengths = _lengths(response, 1)
    if any(
        (one + sign * length - stated) % period == 0
        for one in told | local
        for length in lengths
        for sign in (1, -1)
    ):
        return True
    if stated in timeline.lapse_minutes:
        return True  # "6 h 30" can be a length
    # "24 h" and "18h" can be lengths as well as times.
    if any(mark in token.text for mark in ":apAP"):
        return False
    return stated % 60 == 0 and (
        any(stated // 60 == abs(q.value) for q in response.ledger.quantities) or stated in (0, 720)
        or str(stated // 60) in response.digit_groups or str(stated // 60 % 12) in response.digit_groups
    )  # fmt: skip


def _is_elsewhere(stated: int, response: Response) -> bool:
    """Whether some clock shows the time at one of the moments told, on the day that the answer tells."""
    written = [day for token in response.tokens for day in token.dates if day[2]]
    for at, _ in response.timeline.instants[:MOST_DAYS]:
        ahead = (stated - at.hour * 60 - at.minute) % 1440
        for shift in (ahead, ahead - 1440):
            there = at + timedelta(minutes=shift)
            if shift % 30 == 0 and -720 <= shift <= 840:
                if not written or any(agree(day, (there.year, there.month, there.day)) for day in written):
                    return True
    told = {m.minutes or 0 for m in response.timeline.clocks[:MOST_DAYS]}
    return not response.timeline.instants and any((one - stated) % 30 == 0 for one in told)


def _day_text(day: CalendarDay) -> str:
    return "-".join(f"{part:02d}" for part in day if part is not None)
