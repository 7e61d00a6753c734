"""A delivery in one queue, and the requests that its spans travel in."""

from collections.abc import Sequence
from itertools import chain

from collector.exporters.delivery import Delivery, encoded_size
from collector.otlp import join_spans
from collector.trace import UnsplitRecords
from processors.spans import RawSpan


class QueuedTrace:
    """A delivery in one queue: its spans wait, enter requests, and are settled."""

    __slots__ = (
        "delivery",
        "is_given_up",
        "requests_on_wire",
        "unsettled_spans",
        "waiting_bytes",
        "waiting_spans",
    )

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.waiting_spans = self.unsettled_spans = len(delivery.spans)
        self.waiting_bytes = delivery.size
        self.requests_on_wire = 0
        self.is_given_up = False

    def spans_that_fit(self, max_spans: int, max_bytes: int) -> int:
        """How many of the waiting spans a request of that size holds, at least one."""
        count = min(max_spans, self.waiting_spans)
        while count > 1 and encoded_size(self._next(count)) > max_bytes:
            count //= 2
        return count

    def take(self, span_count: int) -> Sequence[RawSpan]:
        """The next `span_count` spans, which wait no longer."""
        taken = self._next(span_count)
        self.waiting_spans -= span_count
        self.waiting_bytes = max(self.waiting_bytes - encoded_size(taken), 0) if self.waiting_spans else 0
        return taken

    def _next(self, span_count: int) -> Sequence[RawSpan]:
        spans = self.delivery.spans
        start = len(spans) - self.waiting_spans
        return spans if span_count == len(spans) else spans[start : start + span_count]

    def give_up(self) -> None:
        """Discard the waiting spans; requests that hold others of this trace leave them out."""
        self.is_given_up = True
        self.waiting_spans = self.waiting_bytes = 0


class ExportRequest:
    """Spans that travel together, by the trace they belong to."""

    __slots__ = ("shares", "span_count")

    def __init__(self) -> None:
        self.shares: list[tuple[QueuedTrace, Sequence[RawSpan]]] = []
        self.span_count = 0

    def add(self, trace: QueuedTrace, spans: Sequence[RawSpan]) -> None:
        """Append spans of a trace."""
        self.shares.append((trace, spans))
        self.span_count += len(spans)

    def encode(self) -> bytes:
        """The request as it goes out; encoded again for each attempt, so that no copy waits in between."""
        bodies = [spans.body for _, spans in self.shares if type(spans) is UnsplitRecords]
        if len(bodies) == len(self.shares):
            return b"".join(bodies)  # one message after the other is both of them
        return join_spans(chain.from_iterable(spans for _, spans in self.shares))

    def mark_on_wire(self, change: int) -> None:
        """Add this request to the traces' requests under way (1) or remove it (-1)."""
        for trace, _ in self.shares:
            trace.requests_on_wire += change

    def discard_given_up(self) -> None:
        """Leave out the spans of traces that have been given up."""
        if any(trace.is_given_up for trace, _ in self.shares):
            self.shares = [share for share in self.shares if not share[0].is_given_up]
            self.span_count = sum(len(spans) for _, spans in self.shares)

    def halves(self) -> tuple["ExportRequest", "ExportRequest"]:
        """Two requests with half of the spans each, in order; `span_count` must be 2 or more."""
        first, second = ExportRequest(), ExportRequest()
        room = self.span_count // 2
        for trace, spans in self.shares:
            if head := spans[:room]:
                first.add(trace, head)
            if tail := spans[room:]:
                second.add(trace, tail)
            room = max(room - len(spans), 0)
        return first, second
