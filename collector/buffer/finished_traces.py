"""Which traces were finished, and which spans they had: so that late spans are known as late.

Compact on purpose, since there are a hundred thousand: a trace is one `bytes`, its latest end and the ids of
its spans, sorted.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable

from processors.spans import RawSpan, read_span_head

MAX_TRACES = 100_000
MAX_ID_BYTES = 64 * 1024 * 1024

_LATE_ID_BYTES = 100
"""What one id in a set takes, against 8 in the sorted bytes."""
_END_BYTES = 8
"""Before the ids of a trace: when its last span ended."""


class FinishedTraces:
    """The last `max_traces` finished traces with their span ids.

    When the ids take more than `max_id_bytes`, those of the oldest traces are forgotten first; such a
    trace is still known, so its late spans are still late, but a repeat among them is not recognised.
    `id_bytes` is about what the ids take.
    """

    def __init__(self, max_traces: int = MAX_TRACES, max_id_bytes: int = MAX_ID_BYTES) -> None:
        self._max_traces = max_traces
        self._max_id_bytes = max_id_bytes
        self._ids: dict[bytes, bytes | None] = {}
        self._late_ids: dict[bytes, set[bytes]] = {}
        self._order: deque[bytes] = deque()
        self._order_of_ids: deque[bytes] = deque()  # the traces whose ids are kept: a tail of `_order`
        self.id_bytes = 0

    def __contains__(self, trace: bytes) -> bool:
        return trace in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, trace: bytes, span_ids: Iterable[bytes], latest_end: int = 0) -> None:
        """Remember a trace that was finished, or what went on in one that is remembered.

        What starts after `latest_end` (Unix nanoseconds) goes on in the trace; 0: nothing can.
        """
        end = latest_end.to_bytes(_END_BYTES)
        if trace in self._ids:
            known = self._ids[trace]
            if known is not None:
                self._ids[trace] = end + known[_END_BYTES:]
                for span_id in span_ids:
                    self.add_late_span(trace, span_id)
            return
        ids = b"".join(sorted(span_ids))
        self._ids[trace] = end + ids
        self.id_bytes += len(ids)
        self._order.append(trace)
        self._order_of_ids.append(trace)
        if len(self._order) > self._max_traces:
            oldest = self._order.popleft()
            if self._order_of_ids and self._order_of_ids[0] == oldest:
                self._forget_oldest_ids()
            del self._ids[oldest]
        self._enforce_id_bytes()

    def had(self, trace: bytes, span_id: bytes) -> bool:
        """Whether the remembered trace is known to have had this span."""
        ids = self._ids[trace]
        if ids is None:
            return False
        place = bisect_left(range(_END_BYTES, len(ids), 8), span_id, key=lambda start: ids[start : start + 8])
        start = _END_BYTES + place * 8
        return ids[start : start + 8] == span_id or span_id in self._late_ids.get(trace, ())

    def goes_on(self, trace: bytes, span: RawSpan) -> bool:
        """Whether a span that the remembered trace did not have began after all that was graded of it.

        Such a span is no straggler of what was graded.
        """
        ids = self._ids[trace]
        end = 0 if ids is None else int.from_bytes(ids[:_END_BYTES])
        return 0 < end < read_span_head(span[1])[2]

    def add_late_span(self, trace: bytes, span_id: bytes) -> bool:
        """Remember a span that is late for its remembered trace; False if that span was there already."""
        if self._ids[trace] is None:
            return True
        if self.had(trace, span_id):
            return False
        self._late_ids.setdefault(trace, set()).add(span_id)
        self.id_bytes += _LATE_ID_BYTES
        self._enforce_id_bytes()
        return True

    def _enforce_id_bytes(self) -> None:
        while self.id_bytes > self._max_id_bytes:
            self._forget_oldest_ids()

    def _forget_oldest_ids(self) -> None:
        trace = self._order_of_ids.popleft()
        self.id_bytes -= max(len(self._ids[trace] or b"") - _END_BYTES, 0)
        self._ids[trace] = None
        self.id_bytes -= _LATE_ID_BYTES * len(self._late_ids.pop(trace, ()))
