"""The finish clock: seconds that pass only while the service could have received spans.

Quiet means something only while senders get through. The clock therefore stands still while requests are
refused, while the process is stopped or lags, and for 10 s after.
"""

from collector.buffer.outages import SETTLE_SECONDS, Outage, Outages
from collector.clock import Clock

MAX_GAP_SECONDS = 1.0
"""Longest time between two readings in which the process counts as running; it is read every 100 ms."""
OUTAGE_SECONDS = 5.0
"""A longer gap is an outage: senders may have given up meanwhile (SDK exporters do after 10 s)."""


class FinishClock:
    """Counts receiving seconds; every reading moves it on, so it must be read at least once a second.

    A gap is taken from whichever of the monotonic and the wall clock moved further, because the former
    does not run while a machine is suspended.

    Attributes:
        monotonic: the monotonic clock at the last reading.
        unix_nano: the wall clock at the last reading.
        standstill_seconds: how long the clock has stood still, in total.
        outages: the gaps of more than 5 s, and whatever else was recorded there.
    """

    __slots__ = (
        "_clock",
        "_is_read",
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
        """The service cannot receive now (it refuses, it replays): stand still for the next 10 s."""
        self.now()
        self._stands_until = self.monotonic + SETTLE_SECONDS
