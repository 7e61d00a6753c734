"""The clocks of quiet time: seconds that pass only while the service could have received spans."""

from dataclasses import dataclass

from collector.buffer.outages import SETTLE_SECONDS, Outage, Outages
from collector.clock import Clock

LOOKAHEAD_NANO = 30_000_000_000
"""How far spans and log records are read ahead of each other."""
MAX_GAP_SECONDS = 1.0
"""Longest time between two readings in which the process counts as running; it is read every 100 ms."""
OUTAGE_SECONDS = 5.0
"""A longer gap is an outage: senders may have given up meanwhile (SDK exporters do after 10 s)."""


class FinishClock:
    """Counts receiving seconds; every reading moves it on, so it must be read at least once a second.

    Quiet means something only while senders get through. The clock stands still while requests are refused,
    while the process is stopped or lags, and for 10 s after. A gap is taken from whichever of the monotonic
    and the wall clock moved further, because the former does not run while a machine is suspended.

    Attributes:
        monotonic: the monotonic clock at the last reading.
        unix_nano: the wall clock at the last reading.
        standstill_seconds: how long the clock has stood still, in total.
        outages: the gaps of more than 5 s, and whatever else was recorded there.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds = 0.0
        self.monotonic = clock.monotonic()
        self.unix_nano = clock.unix_nano()
        self._stands_until = self.monotonic
        self._is_read = False
        self.standstill_seconds = 0.0
        self.outages = Outages()

    def now(self) -> float:
        """Receiving seconds since the first reading; never goes back."""
        before = self.monotonic
        monotonic = self._clock.monotonic()
        unix_nano = self._clock.unix_nano()
        if not self._is_read:
            before, self.unix_nano = monotonic, unix_nano
            self._is_read = True
        elapsed = monotonic - before
        gap = max(elapsed, (unix_nano - self.unix_nano) / 1e9)
        self.monotonic = monotonic
        self.unix_nano = unix_nano
        if gap > MAX_GAP_SECONDS:
            self.standstill_seconds += elapsed
            self._stands_until = monotonic + SETTLE_SECONDS
            if gap > OUTAGE_SECONDS:
                self.outages.record(Outage(unix_nano - int(gap * 1e9), unix_nano, monotonic))
        elif before >= self._stands_until:
            self._seconds += elapsed
        else:
            passed = max(0.0, monotonic - self._stands_until)
            self._seconds += passed
            self.standstill_seconds += elapsed - passed
        return self._seconds

    def stand_still(self) -> None:
        """The service cannot receive now: stand still for the next 10 s."""
        self.now()
        self._stands_until = self.monotonic + SETTLE_SECONDS


@dataclass(slots=True)
class ReadPosition:
    """How far a partition is read: the time of the record read last, or read next (0: none yet)."""

    unix_nano: int = 0
    is_at_end: bool = False


class RecordClock(FinishClock):
    """The finish clock of a partition: the time of its records, as far as they are read.

    Quiet means something only where all that was sent has been read. While records wait, time is that of the
    last one read: a record from the future counts as one of now, and one older than another before it lets no
    time pass. At the end of the partition the reader's own seconds count, from one poll to the next; a longer
    gap adds nothing, nor do the 10 s after it, since what arrived meanwhile is still to be read. With log
    records in a partition of their own (`logs`), time is that of the one which is read less far.

    Standstill and outages stay empty: lag and pauses are counted elsewhere, and what is late is read late.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._origin_nano: int | None = None
        self.spans = ReadPosition()
        self.logs: ReadPosition | None = None
        self._polled = self.monotonic

    def now(self) -> float:
        """Seconds since the first record; never goes back."""
        self.monotonic = self._clock.monotonic()
        self.unix_nano = self._clock.unix_nano()
        return self._seconds

    def caught_up(self) -> None:
        """The reader has polled, and has taken in all records that it got."""
        now = self._clock.monotonic()
        elapsed = now - self._polled
        self._polled = now
        if elapsed > MAX_GAP_SECONDS:
            self._stands_until = now + SETTLE_SECONDS
        elif (
            self.spans.is_at_end and (self.logs is None or self.logs.is_at_end) and now >= self._stands_until
        ):
            self._seconds += elapsed

    def read(self, unix_nano: int) -> None:
        """A record was read that was written at this time; others may wait behind it."""
        self.note_read(self.spans, unix_nano)

    def note_read(self, position: ReadPosition, unix_nano: int) -> None:
        """As `read`, for a record of `position`, one of the two."""
        position.is_at_end = False
        if unix_nano > position.unix_nano:
            position.unix_nano = min(unix_nano, self._clock.unix_nano())
            if self._origin_nano is None:
                self._origin_nano = position.unix_nano
        self._move_on()

    def reach_end(self) -> None:
        """All records were read; from now on own seconds count."""
        self.spans.is_at_end = True
        self._polled = self._clock.monotonic()
        self._move_on()

    def logs_reach_end(self) -> None:
        """As `reach_end`, for log records."""
        if self.logs is not None:
            self.logs.is_at_end = True
        self._move_on()

    def leave_end(self) -> None:
        """Records may wait that are not read: own seconds do not count."""
        self.spans.is_at_end = False

    def is_ahead(self, position: ReadPosition) -> bool:
        """Whether `position` is so far ahead of the other that reading there would only fill memory."""
        other = self.logs if position is self.spans else self.spans
        if other is None or other.is_at_end:
            return False
        return position.unix_nano > other.unix_nano + LOOKAHEAD_NANO

    def _move_on(self) -> None:
        if self._origin_nano is None:
            return
        spans, logs = self.spans, self.logs
        if logs is None or (logs.is_at_end and not spans.is_at_end):
            reached = spans.unix_nano
        elif spans.is_at_end and not logs.is_at_end:
            reached = logs.unix_nano
        else:
            earlier_or_later = max if spans.is_at_end else min
            reached = earlier_or_later(spans.unix_nano, logs.unix_nano)
        seconds = (reached - self._origin_nano) / 1e9
        if seconds > self._seconds:
            self._seconds = seconds
