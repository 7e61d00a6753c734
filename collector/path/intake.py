"""Requests in: each is taken as a whole or refused as a whole, and its spans wait in the trace buffer."""

import asyncio
from collections.abc import Sequence

from collector.buffer import FinishedTraces, RecordClock, TraceBuffer
from collector.clock import Clock
from collector.errors import Draining, Overloaded, RequestTooLarge
from collector.journal import Journal
from collector.otlp import EnvelopeRegistry, SplitRequest, split_request
from collector.path.delivery import Delivery
from collector.path.finish import Finisher
from collector.path.partition import INVALID_ID, Partition
from collector.receivers import ExportOutcome
from collector.telemetry import Metrics
from collector.trace import RecordSource, SpanBatch

_MOST_REMEMBERED, _FEWEST_REMEMBERED = 100_000, 1000
_MOST_REMEMBERED_BYTES = 64 * 1024 * 1024
"""Finished traces that all partitions together remember, and how many each may at least."""


class Intake:
    """Takes the spans of requests in; satisfies `collector.receivers.RecordConsumer`.

    Args:
        buffer: Holds the spans of traces that are not finished.
        envelopes: Where what spans share, their resources and scopes, comes from.
        delivery: Where spans leave that wait for no verdict.
        finisher: Takes finished traces out of the buffers of partitions.
        streams: Whether spans leave when they arrive, so that the buffer holds copies of them.
        journal: Keeps what is admitted until it is delivered, if there is one.
        metrics: Counts what is refused.
        clock: Time of records.
    """

    def __init__(
        self,
        buffer: TraceBuffer,
        *,
        envelopes: EnvelopeRegistry,
        delivery: Delivery,
        finisher: Finisher,
        streams: bool,
        journal: Journal | None,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._buffer = buffer
        self._envelopes = envelopes
        self._delivery = delivery
        self._finisher = finisher
        self._streams = streams
        self._journal = journal
        self._metrics = metrics
        self._clock = clock
        self._is_draining = False
        self._splitting = asyncio.Lock()
        for reason in (Overloaded.reason, RequestTooLarge.reason, INVALID_ID):
            metrics.spans_refused.add(0, reason)

    def refuse_requests(self) -> None:
        """Refuse every further request, retryably."""
        self._is_draining = True

    def consume_traces(self, body: bytes) -> ExportOutcome:
        """Admit the spans of a serialised export request: what receivers call for every request.

        Spans whose ids are invalid are the one exception to the whole and are reported to the sender as a
        partial success. Spans that wait for no verdict have left before the request is acknowledged.

        Raises:
            MalformedRequest: the bytes are no such request.
            RequestTooLarge: the request could never fit.
            Overloaded: there is no room now, or the journal cannot be written.
            Draining: the service is stopping.
        """
        self._require_open()
        return self._admit(split_request(body, self._envelopes), body)

    async def consume_large_traces(self, body: bytes) -> ExportOutcome:
        """As `consume_traces`, for a long request: it is split in a thread, one at a time."""
        async with self._splitting:
            request = await asyncio.to_thread(split_request, body, self._envelopes)
        self._require_open()
        return self._admit(request, body)

    def open_partition(self, source: RecordSource, partition_count: int) -> Partition:
        """Take in the records of one of so many partitions of a topic, in addition to requests."""
        share = max(_MOST_REMEMBERED // partition_count, _FEWEST_REMEMBERED)
        clock = RecordClock(self._clock)
        finished_traces = FinishedTraces(share, _MOST_REMEMBERED_BYTES * share // _MOST_REMEMBERED)
        return Partition(
            self._buffer.sibling(source, clock, finished_traces),
            clock,
            source,
            envelopes=self._envelopes,
            delivery=self._delivery,
            finisher=self._finisher,
            streams=self._streams,
            metrics=self._metrics,
        )

    @property
    def is_backed_up(self) -> bool:
        """Whether so much waits for exporters that no more records should be read."""
        return self._delivery.is_backed_up

    def _require_open(self) -> None:
        if self._is_draining:
            raise Draining("The service is shutting down; send the request again.")

    def _admit(self, request: SplitRequest, body: bytes) -> ExportOutcome:
        batches = [SpanBatch(trace_id, spans) for trace_id, spans in request.traces.items()]
        to_keep: Sequence[SpanBatch] = ()
        try:
            if self._journal is not None:
                self._journal.require_room(len(body))
                to_keep = [] if self._streams else [batch for batch in batches if self._waits(batch)]
            admitted = self._buffer.admit(batches)
        except (Overloaded, RequestTooLarge) as refusal:
            self._metrics.spans_refused.add(request.accepted + request.rejected, refusal.reason)
            if isinstance(refusal, Overloaded):
                self._buffer.note_refused(batches)
            raise
        if admitted.late or admitted.fresh:
            self._delivery.forward(admitted.late, streamed=False)
            self._delivery.forward(admitted.fresh, streamed=True)
        stored = None
        if self._journal is not None:
            if not self._streams:
                to_keep = [*to_keep, *admitted.continued]
            is_whole = len(to_keep) == len(batches) and not admitted.continued
            self._journal.add(to_keep, body if is_whole else None)
            stored = self._journal.stored()
        if not request.rejected:
            return ExportOutcome(accepted=request.accepted, rejected=0, stored=stored)
        self._metrics.spans_refused.add(request.rejected, INVALID_ID)
        return ExportOutcome(request.accepted, request.rejected, request.rejection(), stored)

    def _waits(self, batch: SpanBatch) -> bool:
        """Whether the spans of `batch` are to wait for their verdict: neither late nor the service's own."""
        return not (self._buffer.has_finished(batch) or self._delivery.is_own(batch.trace_id))
