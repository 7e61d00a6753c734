"""Which traces were finished, and which spans they had: so that late spans are known as late.

Compact on purpose, as a hundred thousand traces are kept: the ids of a trace are one `bytes`, sorted.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Collection

MAX_TRACES = 100_000
MAX_ID_BYTES = 64 * 1024 * 1024

_LATE_ID_BYTES = 100
"""What one id in a set takes, against 8 in the sorted bytes."""


class FinishedTraces:
    """The last `max_traces` finished traces with their span ids.

    When the ids take more than `max_id_bytes`, those of the oldest traces are forgotten first; such a
    trace is still known, so its late spans are still late, but a repeat among them is not recognised.
    """

    __slots__ = ("_id_bytes", "_ids", "_late_ids", "_max_id_bytes", "_max_traces", "_order", "_order_of_ids")

    def __init__(self, max_traces: int = MAX_TRACES, max_id_bytes: int = MAX_ID_BYTES) -> None:
        self._max_traces = max_traces
        self._max_id_bytes = max_id_bytes
        self._ids: dict[bytes, bytes | None] = {}
        self._late_ids: dict[bytes, set[bytes]] = {}
        self._order: deque[bytes] = deque()
        self._order_of_ids: deque[bytes] = deque()  # the traces whose ids are kept: a tail of `_order`
        self._id_bytes = 0

    def __contains__(self, trace: bytes) -> bool:
        return trace in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def id_bytes(self) -> int:
        """Bytes that the remembered span ids take, about."""
        return self._id_bytes

    def add(self, trace: bytes, span_ids: Collection[bytes]) -> None:
        """Remember a trace that was finished and is not remembered yet."""
        ids = b"".join(sorted(span_ids))
        self._ids[trace] = ids
        self._id_bytes += len(ids)
        self._order.append(trace)
        self._order_of_ids.append(trace)
        if len(self._order) > self._max_traces:
            oldest = self._order.popleft()
            if self._order_of_ids and self._order_of_ids[0] == oldest:
                self._forget_oldest_ids()
            del self._ids[oldest]
        self._enforce_id_bytes()

    def add_late_span(self, trace: bytes, span_id: bytes) -> bool:
        """Remember a span that came after its remembered trace; False if that span was there already."""
        ids = self._ids[trace]
        if ids is None:
            return True
        count = len(ids) // 8
        place = bisect_left(range(count), span_id, key=lambda i: ids[i * 8 : i * 8 + 8])
        if ids[place * 8 : place * 8 + 8] == span_id:
            return False
        late = self._late_ids.setdefault(trace, set())
        if span_id in late:
            return False
        late.add(span_id)
        self._id_bytes += _LATE_ID_BYTES
        self._enforce_id_bytes()
        return True

    def _enforce_id_bytes(self) -> None:
        while self._id_bytes > self._max_id_bytes:
            self._forget_oldest_ids()

    def _forget_oldest_ids(self) -> None:
        trace = self._order_of_ids.popleft()
        self._id_bytes -= len(self._ids[trace] or b"")
        self._ids[trace] = None
        self._id_bytes -= _LATE_ID_BYTES * len(self._late_ids.pop(trace, ()))
