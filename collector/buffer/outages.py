"""Outages, in which the service may have missed spans, and refused spans that have not come back.

No trace that either touches counts as complete.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

SENDER_SECONDS = 15.0
"""How long before an outage a span may have ended and still have been on its way when it began: the batch
delay of the SDKs (5 s) and the deadline of their exporters (10 s)."""
SETTLE_SECONDS = 10.0
"""How long after an outage senders may still be catching up."""

_MAX_OUTAGES = 16
_NANOSECONDS = 1_000_000_000
_SENDER_NANO = int(SENDER_SECONDS * _NANOSECONDS)


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which senders may have given up on spans; start and end may be one moment."""

    start_unix_nano: int
    end_unix_nano: int
    end_monotonic: float


class Outages:
    """The outages since the process started, and those that one before it recorded.

    Those closer than the time in which senders catch up are one, and beyond 16 the oldest two are united:
    that can only touch more traces, never fewer.
    """

    def __init__(self) -> None:
        self._outages: list[Outage] = []

    def __bool__(self) -> bool:
        return bool(self._outages)

    def __iter__(self) -> Iterator[Outage]:
        return iter(self._outages)

    @property
    def end_unix_nano(self) -> int:
        """When the last of them ended; 0 if there was none."""
        return max((outage.end_unix_nano for outage in self._outages), default=0)

    def record(self, outage: Outage) -> None:
        """Add an outage; it may lie in the past."""
        near = int(SETTLE_SECONDS * _NANOSECONDS)
        apart = []
        for other in self._outages:
            if (
                other.start_unix_nano - near <= outage.end_unix_nano
                and outage.start_unix_nano - near <= other.end_unix_nano
            ):
                outage = _union(other, outage)
            else:
                apart.append(other)
        apart.append(outage)
        apart.sort(key=lambda each: each.end_monotonic)
        if len(apart) > _MAX_OUTAGES:
            apart[:2] = [_union(apart[0], apart[1])]
        self._outages = apart

    def touch(
        self, first_arrival: float, earliest_start: int, latest_end: int, whole_at: int | None = None
    ) -> bool:
        """Whether spans may be missing from a trace that is finishing now.

        They may if the trace was open during an outage, or if it began before the end of an outage and either
        arrived within 10 s after it or was still going on shortly before it. `first_arrival` is on the
        monotonic clock. At `whole_at` the trace had been quiet for so long that nothing was missing: what
        begins then or later does not touch it. These and the times of its spans are Unix nanoseconds.
        """
        for outage in self._outages:
            if whole_at is not None and whole_at <= outage.start_unix_nano:
                continue
            if first_arrival <= outage.end_monotonic:
                return True
            if earliest_start < outage.end_unix_nano and (
                first_arrival <= outage.end_monotonic + SETTLE_SECONDS
                or latest_end >= outage.start_unix_nano - _SENDER_NANO
            ):
                return True
        return False


def _union(one: Outage, other: Outage) -> Outage:
    return Outage(
        min(one.start_unix_nano, other.start_unix_nano),
        max(one.end_unix_nano, other.end_unix_nano),
        max(one.end_monotonic, other.end_monotonic),
    )


MAX_SPANS = 100_000


class RefusedSpans:
    """The ids of refused spans by trace, at most `max_spans` of them.

    Beyond that the traces refused longest ago are forgotten, each into `outages`: what was refused then
    is no longer known, so every trace of that time may lack spans.
    """

    def __init__(self, outages: Outages, max_spans: int = MAX_SPANS) -> None:
        self._outages = outages
        self._max_spans = max_spans
        self._by_trace: OrderedDict[bytes, tuple[set[bytes], Outage]] = OrderedDict()
        self._count = 0
        self._first_unix_nano = self._last_unix_nano = 0

    def __contains__(self, trace: bytes) -> bool:
        return trace in self._by_trace

    def __bool__(self) -> bool:
        return bool(self._by_trace)

    def __len__(self) -> int:
        return self._count

    @property
    def last_unix_nano(self) -> int:
        """When spans were last refused, while any are missing; else 0."""
        return self._last_unix_nano if self._by_trace else 0

    @property
    def times(self) -> Sequence[tuple[int, int]]:
        """A time in which all that are missing were refused, from its start to its end; empty if none is."""
        return [(self._first_unix_nano, self._last_unix_nano)] if self._by_trace else []

    def add(self, trace: bytes, span_ids: Iterable[bytes], unix_nano: int, monotonic: float) -> None:
        """Remember that `span_ids` of `trace` were refused at the given time."""
        ids, outage = self._by_trace.get(trace, (set(), None))
        before = len(ids)
        ids.update(span_ids)
        if not ids:
            return
        self._count += len(ids) - before
        self._last_unix_nano = unix_nano
        if not self._by_trace:
            self._first_unix_nano = unix_nano
        first = unix_nano if outage is None else outage.start_unix_nano
        self._by_trace[trace] = ids, Outage(first, unix_nano, monotonic)
        while self._count > self._max_spans:
            _, (forgotten, outage) = self._by_trace.popitem(last=False)
            self._count -= len(forgotten)
            self._outages.record(outage)

    def remove(self, trace: bytes, span_ids: Iterable[bytes]) -> None:
        """These spans of `trace` arrived after all."""
        ids, _ = self._by_trace.get(trace, (None, None))
        if ids is None:
            return
        before = len(ids)
        ids.difference_update(span_ids)
        self._count += len(ids) - before
        if not ids:
            del self._by_trace[trace]

    def forget(self, trace: bytes) -> None:
        """The trace is finished: nothing is waited for any more."""
        ids, _ = self._by_trace.pop(trace, ((), None))
        self._count -= len(ids)
