"""Rule RH2: dates, times and weekdays that no evidence supports."""

import calendar
import re
from collections.abc import Iterator
from datetime import date, timedelta

from processors.response_handling.ledger import FROM_USER, Moment
from processors.response_handling.lexicons.keys import ZONE_WORDS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.reading import CalendarDay, Token, agree, to_date
from processors.response_handling.response import Finding, Response, shown

_LONGEST_GAP = 3_700
_MOST = 60
_MOST_KNOWN = 600
_MOST_STEPS = 24
_NEAR = (1, 2, 3, 7)
_WORD = re.compile(r"[^\W\d_]{2,20}(?:-feira)?")


def unsupported_dates(response: Response) -> Iterator[Finding]:
    """RH2.1: a date, RH2.2: a time of day, RH2.3: a weekday that its date does not have."""
    claims = [token for token in response.tokens if token.kind in ("date", "time")]
    if not claims:
        return
    moments = response.ledger.moments
    known = list(dict.fromkeys([day for moment in moments for day in moment.dates] + _composed(response)))[
        :_MOST_KNOWN
    ]
    has_results = any(moment.call >= 0 and moment.dates for moment in moments)
    steps = _steps(response)
    for token in claims:
        claim = shown(response.output[max(0, token.start - 16) : token.end + 6])
        if token.kind == "date":
            if any(agree(day, other) for day in token.dates for other in known):
                yield from _weekday(token, known, response)
            elif _is_reached(token, known, steps, response):
                known.extend(token.dates[:1])
            else:
                nearest = _nearest_day(token, moments)
                where = f"; nearest: {nearest.key} {_day_text(nearest.dates[0])}" if nearest else ""
                rule = "RH2.1" if has_results else "RH2.4"
                yield Finding(
                    rule,
                    claim,
                    f"{token.text} is not in the results{where}",
                    nearest.path if nearest else "",
                    nearest.call if nearest else None,
                )
        elif not _is_told_time(token, moments, steps, response):
            clocks = [moment for moment in moments if moment.minutes is not None and moment.call >= 0]
            if clocks:
                near = min(clocks, key=lambda moment: abs((moment.minutes or 0) - token.minutes))
                told = f"{(near.minutes or 0) // 60:02d}:{(near.minutes or 0) % 60:02d}"
                yield Finding(
                    "RH2.2",
                    claim,
                    f"{token.text.strip()} is not in the results; nearest: {near.key} {told}",
                    near.path,
                    near.call,
                )


def _composed(response: Response) -> list[CalendarDay]:
    """Dates whose parts stand under keys of their own, such as `exp_month` and `exp_year`; months too."""
    found: list[CalendarDay] = []
    for record in response.ledger.records[:_MOST_KNOWN]:
        parts: dict[str, int] = {}
        for quantity in record.numbers:
            for word in key_words(quantity.key)[-1:]:
                if word in ("year", "month", "day") and quantity.value == int(quantity.value):
                    parts[word] = int(quantity.value)
        if 1 <= parts.get("month", 0) <= 12:
            found.append((parts.get("year"), parts["month"], parts.get("day")))
    for leaf in response.ledger.leaves[:_MOST_KNOWN]:
        for text in (leaf.value, leaf.key):
            if isinstance(text, str) and (
                match := re.search(r"(?<!\d)(\d{4})-(0[1-9]|1[0-2])(?![\d-])", text[:200])
            ):
                found.append((int(match[1]), int(match[2]), None))
    return found


def _steps(response: Response) -> list[int]:
    """The numbers of days by which dates are moved: what evidence or answer counts in days and longer."""
    found: dict[int, None] = {}
    for quantity in response.ledger.quantities[:_MOST_KNOWN]:
        if (
            quantity.unit is not None
            and quantity.unit.dimension == "time"
            and quantity.unit.factors[0] >= 3600
        ):
            found[round(quantity.value * quantity.unit.factors[0] / 86400)] = None
    for token in response.tokens:
        if (
            token.kind == "number"
            and token.unit is not None
            and token.unit.dimension == "time"
            and token.unit.factors[0] >= 86400
        ):
            found[round(token.values[0] * token.unit.factors[0] / 86400)] = None
    return [step for step in found if 0 < step <= _LONGEST_GAP][:_MOST_STEPS]


def _months(response: Response) -> list[int]:
    found: dict[int, None] = {}
    for quantity in response.ledger.quantities[:_MOST_KNOWN]:
        if quantity.unit is not None and quantity.unit.symbol in ("mo", "y") and 0 < quantity.value < 600:
            found[int(quantity.value) * (12 if quantity.unit.symbol == "y" else 1)] = None
    for token in response.tokens:
        if (
            token.kind == "number"
            and token.unit is not None
            and token.unit.symbol in ("mo", "y")
            and 0 < token.values[0] < 600
        ):
            found[int(token.values[0]) * (12 if token.unit.symbol == "y" else 1)] = None
    if _has_month_words(response):
        found[1] = None
    return [*found][:_MOST_STEPS]


def _is_reached(token: Token, known: list[CalendarDay], steps: list[int], response: Response) -> bool:
    """Whether a date lies so many days or months from one of the evidence, or fills a range."""
    days = list(dict.fromkeys(day for one in known if (day := to_date(_with_year(one, response)))))[:_MOST]
    texts = response.ledger.folded_texts
    relative = _relative_days(response)
    for written in token.dates:
        year, month, number = written
        if number is None:
            continue
        for day in days:
            near = _NEAR if day in relative else ()
            targets = [
                day + timedelta(days=sign * step)
                for step in (*steps, *near)
                for sign in (1, -1)
                if abs((date.max - day).days) > step
            ]
            if any(
                target.month == month and target.day == number and year in (None, target.year)
                for target in targets
            ):
                return True
            for months in _months(response):
                for sign in (1, -1):
                    total = day.year * 12 + day.month - 1 + sign * months
                    if total <= 12:
                        continue
                    last = calendar.monthrange(total // 12, total % 12 + 1)[1]
                    if (
                        total % 12 + 1 == month
                        and year in (None, total // 12)
                        and number in (min(day.day, last), min(day.day, last) - 1, last, 1)
                    ):
                        return True
        if len(days) > 1 and (full := to_date((year or days[0].year, month, number))) and any(
            word in texts for word in ("weekly", "daily", "monthly", "every", "wöchentlich", "settiman", "semanal", "hebdo")  # noqa: E501
        ) and min(days) <= full:  # fmt: skip
            return True
        if number in (1, 28, 29, 30, 31) and any(day[1] == month or (day[1] - month) % 12 in (1, 11, 2, 10) for day in known) and (  # noqa: E501
            {"mo", "y"} & {q.unit.symbol for q in response.ledger.quantities if q.unit} or _has_month_words(response)  # noqa: E501
        ):  # fmt: skip
            return True
    return False


def _relative_days(response: Response) -> set[date]:
    """The days from which people count in words: those they named, those of now, and those told in UTC."""
    is_relative = "relative" in response.words.categories(response.question + " " + response.output)
    found: set[date] = set()
    zoned = {moment.path for moment in response.ledger.moments if moment.zone in ("Z", "UTC", "GMT")}
    for moment in response.ledger.moments[:_MOST_KNOWN]:
        is_now = moment.call < 0 or not {"now", "today", "iso", "timestamp", "date"}.isdisjoint(
            key_words(moment.key)
        )
        if (is_relative and is_now) or moment.path in zoned:
            found.update(day for one in moment.dates if (day := to_date(_with_year(one, response))))
    return found


def _has_month_words(response: Response) -> bool:
    names = {name for name, symbol in response.words.units.items() if symbol in ("mo", "y")}
    low = response.ledger.folded_texts + response.output.lower()
    return any(name in low for name in names if len(name) > 3)


def _with_year(day: CalendarDay, response: Response) -> CalendarDay:
    if day[0] is not None:
        return day
    years = [other[0] for moment in response.ledger.moments for other in moment.dates if other[0]]
    candidate = (years[0] if years else None, day[1], day[2])
    try:
        to_date(candidate)
    except ValueError:
        return day
    return candidate


def _weekday(token: Token, known: list[CalendarDay], response: Response) -> Iterator[Finding]:
    """A weekday right beside a date that is in the evidence has to be the day's."""
    full = {
        day
        for one in known
        for written in token.dates
        if agree(written, one) and (day := to_date((written[0] or one[0], one[1], one[2] or written[2])))
    }
    if not full:
        return
    before = response.output[max(0, token.start - 24) : token.start]
    after = response.output[token.end : token.end + 18]
    names = response.words.weekdays
    said = None
    for match in _WORD.finditer(before.lower()):
        if match[0] in names and len(match[0]) > 2 and not re.search(r"[^\w\s,.]|\d", before[match.end() :]):
            gap = before[match.end() :].split()
            said = names[match[0]] if len(gap) <= 3 else None
    if (
        said is None
        and (beside := re.match(r"\s?[,(（]\s?([^\W\d_]{3,20}(?:-feira)?)", after.lower()))
        and beside[1] in names
    ):
        said = names[beside[1]]
    if said is None and not response.words.is_spaced:
        said = next((number for name, number in names.items() if name in after[:5]), None)
    if said is not None and all(day.weekday() != said for day in full):
        day = min(full)
        yield Finding(
            "RH2.3", shown(before + token.text + after), f"{day} is a {calendar.day_name[day.weekday()]}"
        )


def _is_told_time(token: Token, moments: list[Moment], steps: list[int], response: Response) -> bool:
    clocks = [moment for moment in moments if moment.minutes is not None]
    if not clocks:
        return True
    stated = token.minutes
    has_zone = any(moment.zone == "Z" or moment.zone.startswith(("UTC", "GMT", "+00")) for moment in clocks)
    has_offset = any(moment.zone for moment in clocks) or len({*response.ledger.words} & ZONE_WORDS) > 0
    lengths = _lengths(response)
    for moment in clocks[:_MOST]:
        told = moment.minutes or 0
        if told == stated or ((not token.is_exact or not moment.is_exact) and (told - stated) % 720 == 0):
            return True
        if (
            has_zone
            and not token.zone
            and (told - stated) % 30 == 0
            and _is_other_zone(moment, stated, response)
        ):
            return True
        if has_offset and (told - stated) % 60 == 0 and _speaks_of_zones(response):
            return True
        if (
            token.kind == "time"
            and "approx" in response.words.categories(response.output[max(0, token.start - 14) : token.start])
            and abs(told - stated) <= 10
        ):
            return True
        for length in lengths:
            if (told + length - stated) % (720 if not token.is_exact else 1440) == 0 or (
                told - length - stated
            ) % 1440 == 0:
                return True
    # "24 h" and "18h" can be lengths as well as times.
    return stated % 60 == 0 and (
        any(float(stated // 60) == abs(q.value) for q in response.ledger.quantities)
        or stated in (0, 720)
        or str(stated // 60) in response.digit_groups
        or str(stated // 60 % 12) in response.digit_groups
    )


def _is_other_zone(moment: Moment, stated: int, response: Response) -> bool:
    """Whether a time in UTC can be the stated one in another zone, with the dates moved as well."""
    written = [day for token in response.tokens for day in token.dates if day[2]]
    told = [one for other in response.ledger.moments if other.path == moment.path for one in other.dates]
    days = [day for one in told[:_MOST] if (day := to_date(one))]
    if not written or not days:
        return True
    for offset in (stated - (moment.minutes or 0) + wrap for wrap in (-1440, 0, 1440)):
        if -720 <= offset <= 840:
            for day in days:
                moved = day + timedelta(days=((moment.minutes or 0) + offset) // 1440)
                if any(agree(one, (moved.year, moved.month, moved.day)) for one in written):
                    return True
    return False


def _speaks_of_zones(response: Response) -> bool:
    words = {
        word.lower() for word in re.findall(r"[^\W\d_]{2,20}", response.output + " " + response.question)
    }
    return (
        bool(
            words
            & {"local", "locale", "lokal", "ortszeit", "hora", "heure", "time", "tijd", "czasu", *ZONE_WORDS}
        )
        or "时间" in response.output
        or "時間" in response.output
    )


def _lengths(response: Response) -> list[int]:
    """The lengths in minutes by which times are moved: those of the evidence and of the answer."""
    found: dict[int, None] = {}
    for quantity in response.ledger.quantities[:_MOST_KNOWN]:
        if quantity.unit is not None and quantity.unit.dimension == "time":
            found[round(quantity.value * quantity.unit.factors[0] / 60)] = None
        elif quantity.call != FROM_USER and {"duration", "delay", "dauer", "durata"} & {
            *key_words(quantity.key)
        }:
            found[round(quantity.value)] = None
    for token in response.tokens:
        if token.kind == "number" and token.unit is not None and token.unit.dimension == "time":
            found[
                round(
                    (token.values[0] * token.unit.factors[0] + sum(v * u.factors[0] for v, u in token.extra))
                    / 60
                )
            ] = None
    return [length for length in found if 0 < length < 100_000][:_MOST_STEPS]


def _nearest_day(token: Token, moments: list[Moment]) -> Moment | None:
    dated = [moment for moment in moments if moment.dates and moment.call >= 0]
    _, month, number = token.dates[0]
    return (
        min(dated, key=lambda m: abs(m.dates[0][1] - month) * 31 + abs((m.dates[0][2] or 1) - (number or 1)))
        if dated
        else None
    )


def _day_text(day: CalendarDay) -> str:
    return "-".join(f"{part:02d}" for part in day if part is not None)
