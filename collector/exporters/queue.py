"""What one exporter still has to deliver, in order of arrival. It never waits and knows no exporter."""

import logging
from collections import deque

from collector.clock import Clock
from collector.exporters.counts import QueueCounts
from collector.exporters.delivery import Delivery, SpanQueue
from collector.exporters.request import ExportRequest, QueuedTrace
from collector.exporters.sink import Sink
from collector.telemetry import RateLimitedLogger

_logger = logging.getLogger(__name__)


class DeliveryQueue(SpanQueue):
    """Holds deliveries until each of their spans is forwarded or dropped."""

    def __init__(self, sink: Sink, counts: QueueCounts, clock: Clock, *, is_required: bool) -> None:
        super().__init__(sink.name, is_required=is_required)
        self.sink = sink
        self.counts = counts
        self.log = RateLimitedLogger(_logger, clock)
        self.waiting_spans = 0
        self.waiting_bytes = 0
        self._held: dict[QueuedTrace, None] = {}  # in order of arrival
        self._waiting: deque[QueuedTrace] = deque()
        self._is_closed = False

    @property
    def held_spans(self) -> int:
        """Spans (or results) that are neither forwarded nor dropped."""
        return self.counts.held

    @property
    def queued_bytes(self) -> int:
        """Encoded size of the deliveries that they belong to."""
        return self.counts.queued_bytes

    @property
    def has_waiting(self) -> bool:
        """Whether there may be something to take."""
        return bool(self._waiting)

    def enqueue(self, delivery: Delivery) -> None:
        """See `SpanQueue`; a closed queue drops a delivery at once."""
        if not delivery.spans:
            super().enqueue(delivery)
            return
        trace = QueuedTrace(delivery)
        self._held[trace] = None
        self._waiting.append(trace)
        self.waiting_spans += trace.waiting_spans
        self.waiting_bytes += trace.waiting_bytes
        self.counts.held += trace.waiting_spans
        self.counts.queued_bytes += trace.waiting_bytes
        if self._is_closed and not delivery.is_stored_elsewhere:
            self._drop(trace, trace.unsettled_spans, "shutdown")
            items = self.counts.items.capitalize()
            self.log.warning(
                "late", f"{items} arrived after the shutdown and were dropped.", **self.sink.where
            )

    def turn_away(self, count: int) -> None:
        """See `SpanQueue`."""
        self.counts.turn_away(count, "queue_full")

    def take(self, max_spans: int, max_bytes: int) -> ExportRequest:
        """The oldest spans as a request of at most that size; a single larger span travels alone.

        Traces stay whole as long as they fit.
        """
        request = ExportRequest()
        size = 0
        while self._waiting:
            trace = self._waiting[0]
            if not trace.is_given_up:
                fits = (
                    request.span_count + trace.waiting_spans <= max_spans
                    and size + trace.waiting_bytes <= max_bytes
                )
                if not fits and request.span_count:
                    break
                count = trace.waiting_spans if fits else trace.spans_that_fit(max_spans, max_bytes)
                waiting_bytes = trace.waiting_bytes
                request.add(trace, trace.take(count))
                size += waiting_bytes
                self.waiting_spans -= count
                self.waiting_bytes -= waiting_bytes - trace.waiting_bytes
                if trace.waiting_spans:
                    break
            self._waiting.popleft()
        return request

    def shed(self, needed_bytes: int = 0, *, needed_spans: int = 0) -> int:
        """Drop the oldest traces, as `queue_full`, until so many held bytes, and spans, are released.

        Traces on the wire stay. It ends early at a trace that a required exporter still holds, since
        dropping that one (and, queues having one order, the ones after it) would free nothing.

        Returns:
            The held bytes of the dropped traces; 0 for a required queue.
        """
        if self.is_required:
            return 0
        freed = span_count = 0
        dropped: list[QueuedTrace] = []
        for trace in self._held:
            if (freed >= needed_bytes and span_count >= needed_spans) or trace.delivery.is_required:
                break
            if not trace.requests_on_wire:
                dropped.append(trace)
                freed += trace.delivery.held_bytes
                span_count += trace.unsettled_spans
        for trace in dropped:
            self.waiting_spans -= trace.waiting_spans
            self.waiting_bytes -= trace.waiting_bytes
            trace.give_up()
            self._drop(trace, trace.unsettled_spans, "queue_full")
        while self._waiting and self._waiting[0].is_given_up:
            self._waiting.popleft()
        if span_count:
            self.log.warning(
                "queue_full",
                f"There is no room; the oldest {self.counts.items} of a queue are dropped.",
                **self.sink.where,
                **{self.counts.key: span_count},
            )
        return freed

    def forward(self, request: ExportRequest, rejected: int) -> None:
        """The backend took a request, without `rejected` of its spans."""
        for trace, spans in request.shares:
            self._settle(trace, len(spans))
        self.counts.forward(request.span_count - rejected)
        if rejected:
            self.counts.drop(rejected, self.counts.partly_rejected)

    def drop(self, request: ExportRequest, reason: str) -> None:
        """A request will not be delivered."""
        for trace, spans in request.shares:
            self._drop(trace, len(spans), reason)

    def close(self) -> tuple[int, int]:
        """Drop everything, as `shutdown`, but what is stored elsewhere: the next process finds it there.

        Returns:
            The spans that are stored elsewhere, and those that are lost.
        """
        self._is_closed = True
        stored = lost = 0
        self._waiting.clear()
        self.waiting_spans = self.waiting_bytes = 0
        for trace in list(self._held):
            if trace.delivery.is_stored_elsewhere:
                stored += trace.unsettled_spans
            else:
                lost += trace.unsettled_spans
                self._drop(trace, trace.unsettled_spans, "shutdown")
        return stored, lost

    def _drop(self, trace: QueuedTrace, span_count: int, reason: str) -> None:
        self._settle(trace, span_count)
        self.counts.drop(span_count, reason)

    def _settle(self, trace: QueuedTrace, span_count: int) -> None:
        trace.unsettled_spans -= span_count
        if not trace.unsettled_spans:
            del self._held[trace]
            self.counts.queued_bytes -= trace.delivery.size
            trace.delivery.done(self.name, required=self.is_required)
