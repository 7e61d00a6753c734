"""The finish clock of a partition: the time of its records, as far as they are read.

Quiet means something only where all that was sent has been read. While records wait, time is that of the last
one read. At the end of the partition the reader's own seconds count, as far as it was running and heard of
its broker; a gap adds nothing, nor do the 10 s after it, for what came meanwhile is yet to be read.
"""

from collector.buffer.finish_clock import MAX_GAP_SECONDS
from collector.buffer.outages import SETTLE_SECONDS, Outages
from collector.clock import Clock


class RecordClock:
    """Counts the seconds of one partition; must be read at least once a second, like a `FinishClock`.

    A record from the future counts as one of now, and one older than another before it lets no time pass.

    Attributes:
        monotonic: the monotonic clock at the last reading.
        unix_nano: the wall clock at the last reading.
        standstill_seconds: always 0: lag and pauses are counted elsewhere.
        outages: always empty: what comes late is read late, and nothing is lost.
    """

    __slots__ = (
        "_clock",
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
        self._stands_until = self.monotonic
        self.standstill_seconds = 0.0
        self.outages = Outages()

    def now(self) -> float:
        """Seconds since the first record; never goes back."""
        monotonic = self._clock.monotonic()
        elapsed = monotonic - self.monotonic
        if elapsed > MAX_GAP_SECONDS:
            self._stands_until = monotonic + SETTLE_SECONDS
        elif self._is_at_end and self.monotonic >= self._stands_until:
            self._seconds += elapsed
        self.monotonic = monotonic
        self.unix_nano = self._clock.unix_nano()
        return self._seconds

    def stand_still(self) -> None:
        """Nothing is heard of the broker: own seconds do not count for the next 10 s."""
        self.now()
        self._stands_until = self.monotonic + SETTLE_SECONDS

    def read(self, unix_nano: int) -> None:
        """A record was read that was written at this time; others may wait behind it."""
        self.now()
        self._is_at_end = False
        if unix_nano > self.unix_nano:
            unix_nano = self.unix_nano
        if self._origin_nano is None:
            self._origin_nano = unix_nano
        seconds = (unix_nano - self._origin_nano) / 1e9
        if seconds > self._seconds:
            self._seconds = seconds

    def reach_end(self) -> None:
        """All records were read; from now on own seconds count."""
        self.now()
        self._is_at_end = True

    def leave_end(self) -> None:
        """Records may wait that are not read: own seconds do not count."""
        self.now()
        self._is_at_end = False
