"""Records in: one partition of a topic, each held at its source until what is in it was delivered."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from collector.buffer import ReadPosition, RecordClock, TraceBuffer
from collector.errors import MalformedRequest, RequestTooLarge
from collector.otlp import (
    EnvelopeRegistry,
    SplitRequest,
    count_records,
    json_to_request,
    logs_json_to_request,
    split_request,
)
from collector.path.delivery import Delivery
from collector.path.finish import Finisher
from collector.path.received_records import ReceivedRecords, read_records
from collector.telemetry import Metrics
from collector.trace import RecordSource, SpanBatch
from processors.spans import read_span_head

INVALID_ID = "invalid_id"

MAX_JSON_BYTES = 4 * 1024 * 1024
"""Of a record in JSON: some 100 ms."""


@dataclass
class Partition:
    """Takes in the records of one partition; satisfies `collector.receivers.PartitionIntake`.

    Its traces finish by the time of its records, apart from all others.
    """

    buffer: TraceBuffer
    clock: RecordClock
    source: RecordSource
    envelopes: EnvelopeRegistry
    delivery: Delivery
    finisher: Finisher
    metrics: Metrics

    def __post_init__(self) -> None:
        self._is_closed = False
        self.read = self.clock.read
        self.reach_end = self.clock.reach_end
        self.caught_up = self.clock.caught_up
        self.leave_end = self.clock.leave_end
        self.stand_still = self.clock.stand_still
        self.note_horizon = self.buffer.note_horizon
        self.finisher.follow(self.buffer)

    def admit(self, body: bytes, record: int, key: bytes | None = None) -> Collection[bytes]:
        """Take in the spans of a record, which stays held at the source for each trace that has any.

        Returns:
            The ids of the traces that are in it.

        Raises:
            MalformedRequest: it holds no export request.
            RequestTooLarge: it could never fit.
            Overloaded: there is no room now; nothing of it was kept.
        """
        request = split_request(_protobuf(body, json_to_request), self.envelopes)
        return self._admit(request, _batches(request), record)

    @property
    def is_ahead(self) -> bool:
        """See `PartitionIntake`."""
        return self.clock.is_ahead(self.clock.spans)

    def admit_again(self, body: bytes, record: int | None) -> None:
        """A record that was delivered before is read again, so that what belongs to it is known as late.

        Where spans of the same trace, which were not delivered, are held already, it is admitted with them.

        Raises:
            Overloaded: there is no room now; nothing of it was kept.
        """
        try:
            request = split_request(_protobuf(body, json_to_request), self.envelopes)
            batches = _batches(request)
            if record is not None and self.buffer.holds_any(batches):
                self._admit(request, batches, record)
                return
        except (MalformedRequest, RequestTooLarge):
            return  # as it was when it was delivered: counted then
        for batch in batches:
            end = max(read_span_head(payload)[3] for _, payload, _ in batch.spans)
            self.buffer.remember_finished(batch.trace_id, [span[0] for span in batch.spans], end)

    def close(self) -> None:
        """Finish no trace any more."""
        if not self._is_closed:
            self._is_closed = True
            self.finisher.leave(self.buffer)

    def forget(self) -> None:
        """Release everything that is held, without a verdict: the next reader of the partition has it."""
        self.close()
        spans = self.buffer.forget()
        if not self.buffer.streams:  # else they have left, and only copies are lost
            self.metrics.spans_revoked.add(spans)

    def _admit(self, request: SplitRequest, batches: list[SpanBatch], record: int) -> Collection[bytes]:
        try:
            admitted = self.buffer.admit(batches, record)
        except RequestTooLarge as refusal:
            self.metrics.spans_refused.add(request.accepted + request.rejected, refusal.reason)
            raise
        for leaving, streamed in ((admitted.late, False), (admitted.fresh, True)):
            if leaving:
                self.source.hold(record)
                self.delivery.forward(leaving, streamed=streamed, receipt=self.source.receipt((record,)))
        if request.rejected:
            self.metrics.spans_refused.add(request.rejected, INVALID_ID)
        return request.traces


@dataclass
class RecordsPartition:
    """Takes in the records of a partition with log records, each held at its source until they are delivered.

    Satisfies `collector.receivers.PartitionIntake`. Log records leave at once. Where the partition is
    `joined` to that with the spans of the same traces, copies of agents' records wait in its buffer, and its
    traces finish by the time of both. Without that nothing waits, and nothing is graded.
    """

    buffer: TraceBuffer
    source: RecordSource
    envelopes: EnvelopeRegistry
    delivery: Delivery
    metrics: Metrics
    joined: Partition | None

    def __post_init__(self) -> None:
        self._position = ReadPosition()
        if self.joined is not None:
            self.joined.clock.logs = self._position

    def admit(self, body: bytes, record: int, key: bytes | None = None) -> Collection[bytes]:
        """Forward the log records of a record; raises as `Partition.admit`.

        All of those that make a run by themselves are here only where the key is of more than a trace.
        """
        request = _protobuf(body, logs_json_to_request)
        if self.joined is None:
            received = ReceivedRecords(count_records(request, self.envelopes))
        else:
            received = read_records(request, self.envelopes)
        records, rejected = received.request.records, received.request.rejected
        trace_ids = {batch.trace_id.hex().encode() for batch in received.content if not batch.is_run}
        has_runs = bool(key) and key not in trace_ids
        content = [batch for batch in received.content if has_runs or not batch.is_run]
        try:
            admitted = self.buffer.admit_records(records, content, (self.source, record))
        except RequestTooLarge as refusal:
            self.metrics.log_records_refused.add(len(records) + rejected, refusal.reason)
            raise
        self.metrics.foreign_results.add(received.results)
        self.source.hold(record)
        self.delivery.forward_records(records, admitted, receipt=self.source.receipt((record,)))
        self.metrics.log_records_refused.add(rejected, INVALID_ID)
        return ()

    @property
    def is_ahead(self) -> bool:
        """See `PartitionIntake`."""
        return self.joined is not None and self.joined.clock.is_ahead(self._position)

    def read(self, unix_nano: int) -> None:
        """See `PartitionIntake`."""
        if self.joined is not None:
            self.joined.clock.note_read(self._position, unix_nano)

    def reach_end(self) -> None:
        """See `PartitionIntake`."""
        if self.joined is not None:
            self.joined.clock.logs_reach_end()

    def caught_up(self) -> None:
        """See `PartitionIntake`; the partition with the spans counts seconds for both."""

    def leave_end(self) -> None:
        """See `PartitionIntake`."""
        self._position.is_at_end = False

    def stand_still(self) -> None:
        """See `PartitionIntake`."""
        if self.joined is not None:
            self.joined.stand_still()

    def note_horizon(self, unix_nano: int) -> None:
        """See `PartitionIntake`."""
        if self.joined is not None:
            self.joined.note_horizon(unix_nano)

    def admit_again(self, body: bytes, record: int | None) -> None:
        """See `PartitionIntake`: its traces were delivered, and their spans make that known."""

    def close(self) -> None:
        """See `PartitionIntake`: the traces of both wait for no further log records."""
        if self.joined is not None and self.joined.clock.logs is self._position:
            self.joined.clock.logs = None

    def forget(self) -> None:
        """See `PartitionIntake`; what is held is forgotten with the spans."""


def _protobuf(body: bytes, of_json: Callable[[bytes], bytes]) -> bytes:
    """The request in a record, which may be OTLP/JSON: no request in protobuf begins with a brace.

    Raises:
        MalformedRequest: it is JSON, and no request.
        RequestTooLarge: it is JSON, and so long that the loop would stand still for it.
    """
    if not body.startswith(b"{"):
        return body
    if len(body) > MAX_JSON_BYTES:
        raise RequestTooLarge(f"A record in JSON has {len(body)} bytes, more than {MAX_JSON_BYTES}.")
    return of_json(body)


def _batches(request: SplitRequest) -> list[SpanBatch]:
    return [SpanBatch(trace_id, spans) for trace_id, spans in request.traces.items()]
