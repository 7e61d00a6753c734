"""Spans that were refused and have not come back: a trace that lacks one is not judged as complete."""

from collections import OrderedDict
from collections.abc import Iterable

from collector.buffer.outages import Outage, Outages

MAX_SPANS = 100_000


class RefusedSpans:
    """The ids of refused spans by trace, at most `max_spans` of them.

    Beyond that the traces refused longest ago are forgotten, each into `outages`: what was refused then
    is no longer known, so every trace of that time may lack spans.
    """

    __slots__ = ("_by_trace", "_count", "_max_spans", "_outages")

    def __init__(self, outages: Outages, max_spans: int = MAX_SPANS) -> None:
        self._outages = outages
        self._max_spans = max_spans
        self._by_trace: OrderedDict[bytes, tuple[set[bytes], Outage]] = OrderedDict()
        self._count = 0

    def __contains__(self, trace: bytes) -> bool:
        return trace in self._by_trace

    def __bool__(self) -> bool:
        return bool(self._by_trace)

    def __len__(self) -> int:
        return self._count

    def add(self, trace: bytes, span_ids: Iterable[bytes], unix_nano: int, monotonic: float) -> None:
        """Remember that `span_ids` of `trace` were refused at the given time."""
        known = self._by_trace.get(trace)
        if known is None:
            ids = set(span_ids)
            first = unix_nano
            self._count += len(ids)
        else:
            ids = known[0]
            first = known[1].start_unix_nano
            self._count -= len(ids)
            ids.update(span_ids)
            self._count += len(ids)
        if not ids:
            return
        self._by_trace[trace] = ids, Outage(first, unix_nano, monotonic)
        while self._count > self._max_spans:
            _, (forgotten, outage) = self._by_trace.popitem(last=False)
            self._count -= len(forgotten)
            self._outages.record(outage)

    def remove(self, trace: bytes, span_ids: Iterable[bytes]) -> None:
        """These spans of `trace` came after all."""
        known = self._by_trace.get(trace)
        if known is None:
            return
        ids = known[0]
        self._count -= len(ids)
        ids.difference_update(span_ids)
        self._count += len(ids)
        if not ids:
            del self._by_trace[trace]

    def forget(self, trace: bytes) -> None:
        """The trace is finished: nothing is waited for any more."""
        known = self._by_trace.pop(trace, None)
        if known is not None:
            self._count -= len(known[0])
