"""Dates and clock times as people and machines write them.

The grammar: `2025-11-02T18:30`, `November 2, 2025`, `2 Nov`, `November 2025`, `11/02/2025` in either order,
`2.11.2025`, `18:30`, `6:30 pm`, `6 pm`. Weekdays and relative words are not read.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime

MAX_MOMENTS = 500
"""Dates and times that are read from one text, each."""

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",),
            ("june", "jun"), ("july", "jul"), ("august", "aug"), ("september", "sept", "sep"),
            ("october", "oct"), ("november", "nov"), ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}  # fmt: skip
_MONTH = "(?:" + "|".join(f"{name.capitalize()}|{name.upper()}" for name in _MONTHS) + r")\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?![\d:]|[.,]\d)"
_DATE = re.compile(
    rf"(?<![\w.-])(?P<iso>\d{{4}}-\d{{1,2}}-\d{{1,2}})(?!\d)"
    rf"|(?<![\w.])(?P<ymd>\d{{4}}/\d{{1,2}}/\d{{1,2}})(?![\d/])"
    rf"|\b(?P<md>{_MONTH})\s(?P<md_day>{_DAY})(?:,?\s(?P<md_year>\d{{4}})(?![\d:]))?"
    rf"|(?<![\w.,:])(?P<dm_day>{_DAY})\s(?:of\s)?(?P<dm>{_MONTH})(?:,?\s(?P<dm_year>\d{{4}})(?![\d:]))?"
    rf"|\b(?P<my>{_MONTH}),?\s(?:of\s)?(?P<my_year>\d{{4}})(?![\d:])"
    rf"|(?<![\w./])(?P<slash>\d{{1,2}}(?P<separator>[/.])\d{{1,2}}(?P=separator)(?:\d{{4}}|\d{{2}}))(?![\d/]|\.\d)"
)
_TIME = re.compile(
    r"(?:(?<=T)|(?<![\w.:]))(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(?::[0-5]\d(?:\.\d+)?)?(?![\d:])"
    r"\s?(?P<half>[ap]\.?m\b\.?|[AP]\.?M\b\.?)?(?P<zone>Z\b|[+-]\d{2}:?\d{2}(?!\d))?"
    r"|(?<![\w.:])(?P<only>\d{1,2})\s?(?P<only_half>[ap]\.?m\b\.?|[AP]\.?M\b\.?)"
)
_MAY_HOLD = re.compile(rf"\d[-/.:]\d|\d\s?[ap]\.?m|{_MONTH}", re.IGNORECASE)
_COMPACT = re.compile(r"(?<!\w)(?:19|20)\d{6}(?!\w)")


@dataclass(frozen=True, slots=True)
class CalendarDate:
    """A date of which some parts may not be written: year and day can be None."""

    year: int | None
    month: int
    day: int | None

    def agrees(self, other: "CalendarDate") -> bool:
        """Whether all parts that both have are equal."""
        return (
            self.month == other.month
            and (self.year is None or other.year is None or self.year == other.year)
            and (self.day is None or other.day is None or self.day == other.day)
        )

    def to_date(self) -> date | None:
        """The day, where all parts are written and make one."""
        if self.year is None or self.day is None:
            return None
        try:
            return date(self.year, self.month, self.day)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day; without `is_exact` nothing tells morning from evening."""

    hour: int
    minute: int
    is_exact: bool

    def agrees(self, other: "ClockTime") -> bool:
        """Whether both can be the same minute of a day."""
        if self.minute != other.minute:
            return False
        if self.is_exact and other.is_exact:
            return self.hour % 24 == other.hour % 24
        return self.hour % 12 == other.hour % 12


@dataclass(frozen=True, slots=True)
class Written:
    """Where something is written in a text, and what it can mean (a slash date has two orders)."""

    start: int
    end: int
    text: str
    dates: tuple[CalendarDate, ...] = ()
    time: ClockTime | None = None
    has_zone: bool = False


def written_moments(text: str) -> list[Written]:
    """All dates and times of `text`, dates first."""
    if _MAY_HOLD.search(text) is None:
        return []
    found = []
    for match in _DATE.finditer(text):
        dates = _dates_of(match)
        if dates:
            found.append(Written(match.start(), match.end(), match[0], dates=dates))
        if len(found) >= MAX_MOMENTS:
            break
    dates_found = len(found)
    for match in _TIME.finditer(text):
        time = _time_of(match)
        if time is not None:
            found.append(
                Written(match.start(), match.end(), match[0], time=time, has_zone=match["zone"] is not None)
            )
        if len(found) - dates_found >= MAX_MOMENTS:
            break
    return found


def compact_dates(text: str) -> list[CalendarDate]:
    """The dates that `text` writes as eight digits."""
    found = []
    for match in _COMPACT.finditer(text):
        value = _checked(int(match[0][:4]), int(match[0][4:6]), int(match[0][6:]))
        if value is not None:
            found.append(value)
        if len(found) >= MAX_MOMENTS:
            break
    return found


def moment_of_number(value: float) -> datetime | None:
    """The moment that a number means if it looks like Unix seconds or milliseconds."""
    if 1e12 <= value < 4e12:
        value /= 1000
    if not 1e9 <= value < 4e9:
        return None
    return datetime.fromtimestamp(value, UTC)


def _dates_of(match: "re.Match[str]") -> tuple[CalendarDate, ...]:
    if (iso := match["iso"] or match["ymd"]) is not None:
        year, month, day = map(int, re.split(r"\D", iso))
        value = _checked(year, month, day)
        return () if value is None else (value,)
    if (slash := match["slash"]) is not None:
        first, second, year = map(int, re.split(r"\D", slash))
        year += 2000 if year < 100 else 0
        orders = (_checked(year, first, second), _checked(year, second, first))
        return tuple(dict.fromkeys(order for order in orders if order is not None))
    for month_group, day_group, year_group in (
        ("md", "md_day", "md_year"),
        ("dm", "dm_day", "dm_year"),
        ("my", "", "my_year"),
    ):
        name = match[month_group]
        if name is not None:
            month = _MONTHS[name.rstrip(".").lower()]
            day_text = match[day_group] if day_group else None
            year_text = match[year_group]
            value = _checked(
                None if year_text is None else int(year_text),
                month,
                None if day_text is None else int(day_text.rstrip("stndrh")),
            )
            return () if value is None else (value,)
    return ()


def _checked(year: int | None, month: int, day: int | None) -> CalendarDate | None:
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    return CalendarDate(year, month, day)


def _time_of(match: "re.Match[str]") -> ClockTime | None:
    half = match["half"] or match["only_half"]
    hour = int(match["hour"] or match["only"])
    minute = int(match["minute"] or 0)
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        return ClockTime(hour % 12 + (12 if half[0] in "pP" else 0), minute, True)
    if hour > 24:
        return None
    written = match["hour"] or ""
    return ClockTime(
        hour, minute, hour > 12 or hour == 0 or written.startswith("0") or match["zone"] is not None
    )
