"""Requests in: each is taken as a whole or refused as a whole, and its spans wait in the trace buffer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from collector.buffer import FinishedTraces, RecordClock, TraceBuffer
from collector.clock import Clock
from collector.errors import Draining, Overloaded, RequestTooLarge
from collector.otlp import EnvelopeRegistry, SplitRequest, split_request
from collector.path.delivery import Delivery
from collector.path.finish import Finisher
from collector.path.partition import INVALID_ID, Partition, RecordsPartition
from collector.path.received_records import ReceivedRecords, read_records
from collector.receivers import ExportOutcome, PartitionIntake
from collector.telemetry import Metrics
from collector.trace import RecordSource, SpanBatch

_MOST_REMEMBERED, _FEWEST_REMEMBERED = 100_000, 1000
_MOST_REMEMBERED_BYTES = 64 * 1024 * 1024
"""Finished traces that all partitions together remember, and how many each may at least."""


@dataclass(kw_only=True)
class Intake:
    """Takes the spans of requests in; satisfies `collector.receivers.RecordConsumer`.

    `buffer` holds the spans of traces that are not finished; what spans share, their resources and scopes,
    comes from `envelopes`.
    """

    buffer: TraceBuffer
    envelopes: EnvelopeRegistry
    delivery: Delivery
    finisher: Finisher
    metrics: Metrics
    clock: Clock

    def __post_init__(self) -> None:
        self._closed = ""
        self._splitting = asyncio.Lock()
        for reason in (Overloaded.reason, RequestTooLarge.reason, INVALID_ID):
            self.metrics.spans_refused.add(0, reason)
            self.metrics.log_records_refused.add(0, reason)

    def refuse_requests(self, why: str) -> None:
        """Refuse every further request retryably, because "the service is `why`"."""
        self._closed = why
        if self.delivery.journal is not None:
            self.delivery.journal.note_receiving(False)

    def accept_requests(self) -> None:
        """Refuse requests no longer, as at first."""
        self._closed = ""
        if self.delivery.journal is not None:
            self.delivery.journal.note_receiving(True)

    def consume_traces(self, body: bytes) -> ExportOutcome:
        """Admit the spans of a serialised export request: what receivers call for every request.

        Spans whose ids are invalid are the one exception to the whole and are reported to the sender as a
        partial success. Spans that wait for no verdict have left before the request is acknowledged.

        Raises:
            MalformedRequest: the bytes are no such request.
            RequestTooLarge: the request could never fit.
            Overloaded: there is no room now, or the journal cannot be written.
            Draining: the service is starting or stopping.
        """
        self._require_open()
        return self._admit(split_request(body, self.envelopes), body)

    async def consume_large_traces(self, body: bytes) -> ExportOutcome:
        """As `consume_traces`, for a long request: it is split in a thread, one at a time."""
        self._require_open()
        async with self._splitting:
            request = await asyncio.to_thread(split_request, body, self.envelopes)
        self._require_open()
        return self._admit(request, body)

    def consume_logs(self, body: bytes) -> ExportOutcome:
        """Admit the log records of a serialised export request, and forward them; raises as `consume_traces`.

        Records with an id that OTLP/JSON cannot have are reported to the sender as a partial success.
        """
        self._require_open()
        return self._admit_records(read_records(body, self.envelopes), body)

    async def consume_large_logs(self, body: bytes) -> ExportOutcome:
        """As `consume_logs`, for a long request: it is split in a thread, one at a time."""
        self._require_open()
        async with self._splitting:
            received = await asyncio.to_thread(read_records, body, self.envelopes)
        self._require_open()
        return self._admit_records(received, body)

    def open_partition(self, source: RecordSource, partition_count: int) -> Partition:
        """Take in the records of one of so many partitions of a topic, in addition to requests."""
        share = max(_MOST_REMEMBERED // partition_count, _FEWEST_REMEMBERED)
        finished_traces = FinishedTraces(share, _MOST_REMEMBERED_BYTES * share // _MOST_REMEMBERED)
        clock = RecordClock(self.clock)
        buffer = self.buffer.sibling(source, clock, finished_traces)
        return Partition(buffer, clock, source, self.envelopes, self.delivery, self.finisher, self.metrics)

    def open_records_partition(
        self, source: RecordSource, joined: PartitionIntake | None
    ) -> RecordsPartition:
        """Take in the records of a partition of a topic with log records.

        `joined` is the partition that has the spans of the same traces, if one has.
        """
        assert joined is None or isinstance(joined, Partition)
        buffer = self.buffer if joined is None else joined.buffer
        return RecordsPartition(buffer, source, self.envelopes, self.delivery, self.metrics, joined)

    @property
    def has_room(self) -> bool:
        """Whether further records should be read; not if too much waits for exporters."""
        return self.delivery.has_room

    def _require_open(self) -> None:
        if self._closed:
            raise Draining(f"The service is {self._closed}; send the request again.")

    def _admit(self, request: SplitRequest, body: bytes) -> ExportOutcome:
        batches = [SpanBatch(trace_id, spans) for trace_id, spans in request.traces.items()]
        journal, streams = self.delivery.journal, self.buffer.streams
        to_keep: Sequence[SpanBatch] = ()
        try:
            if journal is not None:
                journal.require_room(len(body))
                to_keep = [] if streams else [batch for batch in batches if self._waits(batch)]
            admitted = self.buffer.admit(batches)
        except (Overloaded, RequestTooLarge) as refusal:
            self.metrics.spans_refused.add(request.accepted + request.rejected, refusal.reason)
            if isinstance(refusal, Overloaded):
                self.buffer.note_refused(batches)
            raise
        if admitted.late or admitted.fresh:
            self.delivery.forward(admitted.late, streamed=False)
            self.delivery.forward(admitted.fresh, streamed=True)
        stored = None
        if journal is not None:
            if not streams:
                to_keep = [*to_keep, *admitted.continued]
            is_whole = len(to_keep) == len(batches) and not admitted.continued
            journal.add(to_keep, body if is_whole else None)
            stored = journal.stored()
        if not request.rejected:
            return ExportOutcome(accepted=request.accepted, rejected=0, stored=stored)
        self.metrics.spans_refused.add(request.rejected, INVALID_ID)
        return ExportOutcome(request.accepted, request.rejected, request.rejection(), stored)

    def _admit_records(self, received: ReceivedRecords, body: bytes) -> ExportOutcome:
        request, journal = received.request, self.delivery.journal
        try:
            if journal is not None:
                journal.require_room(len(body))
            admitted = self.buffer.admit_records(request.records, received.content)
        except (Overloaded, RequestTooLarge) as refusal:
            count = len(request.records) + request.rejected
            self.metrics.log_records_refused.add(count, refusal.reason)
            if isinstance(refusal, Overloaded):
                self.buffer.note_refused(())  # traces may lack these as long as their sender stays away
            raise
        self.metrics.foreign_results.add(received.results)
        stored = None
        if request.records:
            self.delivery.forward_records(request.records, admitted, body if not request.rejected else None)
            stored = None if journal is None else journal.stored()
        self.metrics.log_records_refused.add(request.rejected, INVALID_ID)
        return ExportOutcome(len(request.records), request.rejected, request.rejection(), stored)

    def _waits(self, batch: SpanBatch) -> bool:
        """Whether the spans of `batch` are to wait for their verdict: neither late nor the service's own."""
        return not (self.buffer.has_finished(batch) or self.delivery.service_traces.is_own(batch.trace_id))
