"""The dates and times of the evidence."""

from collections.abc import Sequence
from datetime import timedelta

from processors.response_checks.agent_response import AgentResponse
from processors.texts.folded_text import has_digit
from processors.texts.moments import (
    CalendarDate,
    ClockTime,
    compact_dates,
    moment_of_number,
)

MAX_DISTINCT = 500
_MAX_COMBINED = 30
_LONGEST_SHIFT_MINUTES = 1440 * 3700


class EvidenceMoments:
    """Which dates and times an answer may state.

    `calls` are those whose results hold any date or time.
    """

    def __init__(self, response: AgentResponse) -> None:
        self.dates: dict[CalendarDate, None] = {}
        self.times: dict[ClockTime, None] = {}
        self.calls: set[int] = set()
        self.has_zone = False
        self._shifted: tuple[dict[int, set[CalendarDate]], set[float]] | None = None
        for leaf in response.leaves:
            value = leaf.value
            if isinstance(value, bool):
                continue
            if isinstance(value, str):
                if has_digit(value):
                    self._read(response, value, leaf.call)
            elif (moment := moment_of_number(value)) is not None:
                self.has_zone = True
                self._add_date(CalendarDate(moment.year, moment.month, moment.day), leaf.call)
                self._add_time(ClockTime(moment.hour, moment.minute, True), leaf.call)

    def holds(self, stated: CalendarDate | ClockTime) -> bool:
        """Whether some date or time of the evidence agrees with `stated`."""
        if isinstance(stated, ClockTime):
            return any(time.agrees(stated) for time in self.times)
        return any(day.agrees(stated) for day in self.dates)

    def gaps_in_minutes(self) -> list[float]:
        """The lengths between any two of the first dates, and any two of the first times."""
        days = [day for known in list(self.dates)[:_MAX_COMBINED] if (day := known.to_date()) is not None]
        times = [time.hour * 60 + time.minute for time in list(self.times)[:_MAX_COMBINED]]
        gaps = {abs((first - second).days) * 1440.0 for first in days for second in days}
        gaps.update(float(abs(first - second)) for first in times for second in times)
        gaps.update(
            float(1440 - abs(first - second)) for first in times for second in times if first != second
        )
        gaps.discard(0.0)
        return sorted(gaps)

    def is_shifted(self, stated: CalendarDate | ClockTime, minutes: Sequence[float]) -> bool:
        """Whether `stated` is a date or time of the evidence, moved by one of the lengths `minutes`."""
        if self._shifted is None:
            self._shifted = _shifted(
                list(self.dates)[:_MAX_COMBINED], list(self.times)[:_MAX_COMBINED], minutes
            )
        days, times = self._shifted
        if isinstance(stated, ClockTime):
            minute = stated.hour * 60 + stated.minute
            return minute in times or (not stated.is_exact and (minute + 720) % 1440 in times)
        return any(day.agrees(stated) for day in days.get(stated.month, ()))

    def _read(self, response: AgentResponse, text: str, call: int) -> None:
        for written in response.moments_in(text):
            self.has_zone = self.has_zone or written.has_zone
            for value in written.dates:
                self._add_date(value, call)
            if written.time is not None:
                self._add_time(written.time, call)
        for value in compact_dates(text):
            self._add_date(value, call)

    def _add_date(self, value: CalendarDate, call: int) -> None:
        self.calls.add(call)
        if len(self.dates) < MAX_DISTINCT:
            self.dates[value] = None

    def _add_time(self, value: ClockTime, call: int) -> None:
        self.calls.add(call)
        if len(self.times) < MAX_DISTINCT:
            self.times[value] = None


def _shifted(
    days: Sequence[CalendarDate], times: Sequence[ClockTime], minutes: Sequence[float]
) -> tuple[dict[int, set[CalendarDate]], set[float]]:
    """The dates by month, and the minutes of the day, that lie one of `minutes` before or after one given."""
    moved: dict[int, set[CalendarDate]] = {}
    for step in (sign * length for length in minutes for sign in (1, -1)):
        if step % 1440 or abs(step) > _LONGEST_SHIFT_MINUTES:
            continue
        for day in days:
            start = day.to_date()
            if start is None:
                continue
            try:
                end = start + timedelta(minutes=step)
            except OverflowError:
                continue
            moved.setdefault(end.month, set()).add(CalendarDate(end.year, end.month, end.day))
    clock = {
        (time.hour * 60 + time.minute + sign * length) % 1440
        for time in times
        for length in minutes
        for sign in (1, -1)
    }
    return moved, clock
