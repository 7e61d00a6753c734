"""The finish clock of a partition: the time of its records, as far as they are read.

Quiet means something only where all that was sent has been read. While records wait, time is that of the last
one read. At the end of the partition the reader's own seconds count, from one time that it asked for records
to the next; a longer gap adds nothing, nor do the 10 s after it, for what came meanwhile is yet to be read.
"""

from collector.buffer.finish_clock import MAX_GAP_SECONDS
from collector.buffer.outages import SETTLE_SECONDS, Outages
from collector.clock import Clock


class RecordClock:
    """Counts the seconds of one partition; satisfies `collector.buffer.trace_buffer.QuietClock`.

    A record from the future counts as one of now, and one older than another before it lets no time pass.

    Attributes:
        monotonic: the monotonic clock at the last reading.
        unix_nano: the wall clock at the last reading.
        standstill_seconds: always 0: lag and pauses are counted elsewhere.
        outages: always empty: what comes late is read late, and nothing is lost.
    """

    __slots__ = (
        "_clock",
        "_heard",
        "_is_at_end",
        "_origin_nano",
        "_seconds",
        "_stands_until",
        "monotonic",
        "outages",
        "standstill_seconds",
        "unix_nano",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds = 0.0
        self._origin_nano: int | None = None
        self._is_at_end = False
        self.monotonic = clock.monotonic()
        self.unix_nano = clock.unix_nano()
        self._heard = self._stands_until = self.monotonic
        self.standstill_seconds = 0.0
        self.outages = Outages()

    def now(self) -> float:
        """Seconds since the first record; never goes back."""
        self.monotonic = self._clock.monotonic()
        self.unix_nano = self._clock.unix_nano()
        return self._seconds

    def hear(self) -> None:
        """The reader has asked for records, and has taken in all that it got."""
        now = self._clock.monotonic()
        elapsed = now - self._heard
        self._heard = now
        if elapsed > MAX_GAP_SECONDS:
            self._stands_until = now + SETTLE_SECONDS
        elif self._is_at_end and now >= self._stands_until:
            self._seconds += elapsed

    def stand_still(self) -> None:
        """Nothing is heard of the broker: own seconds do not count for the next 10 s."""
        self._stands_until = self._clock.monotonic() + SETTLE_SECONDS

    def read(self, unix_nano: int) -> None:
        """A record was read that was written at this time; others may wait behind it."""
        self._is_at_end = False
        now = self._clock.unix_nano()
        if unix_nano > now:
            unix_nano = now
        if self._origin_nano is None:
            self._origin_nano = unix_nano
        seconds = (unix_nano - self._origin_nano) / 1e9
        if seconds > self._seconds:
            self._seconds = seconds

    def reach_end(self) -> None:
        """All records were read; from now on own seconds count."""
        self._is_at_end = True
        self._heard = self._clock.monotonic()

    def leave_end(self) -> None:
        """Records may wait that are not read: own seconds do not count."""
        self._is_at_end = False
