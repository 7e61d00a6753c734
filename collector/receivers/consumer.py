"""The consumer of export requests, and the response to a sender."""

from collections.abc import Awaitable, Collection
from typing import Literal, NamedTuple, Protocol, TypeAlias

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.trace import RecordSource, Signal

ReceivedSignal: TypeAlias = Signal | Literal["metrics"]
"""What senders with one endpoint for everything send. Metrics are acknowledged and discarded."""

FULL_SUCCESS = b""
"""The serialised response when nothing was rejected: `partial_success` must then be unset."""

FULL_SUCCESS_JSON = b"{}"

LARGE_REQUEST_BYTES = 1 << 20
"""A longer request takes so long to read that others must not wait."""

COMPRESSED_AT_ONCE_BYTES = 1 << 18
"""Longer compressed requests are decompressed in a thread."""

_MAX_MESSAGE_LENGTH = 4096


class ExportOutcome(NamedTuple):
    """The outcome of a request that was accepted, wholly or in part.

    `rejected` spans (or log records) will never be accepted, for the reason in `message`; a message without
    rejected ones is a warning. If `stored` is given, it must be awaited before the request is acknowledged;
    it raises a `Refusal` if they could not be stored.
    """

    accepted: int
    rejected: int
    message: str = ""
    stored: Awaitable[None] | None = None


class Consumer(Protocol):
    """Accepts export requests."""

    def consume_traces(self, body: bytes) -> ExportOutcome:
        """Accept a serialised ExportTraceServiceRequest, or refuse all of it.

        The accepted spans may be acknowledged as soon as they are `stored`. Runs on the event loop, so it
        must be quick and never wait.

        Raises:
            Refusal: nothing of the request was accepted.
        """

    async def consume_large_traces(self, body: bytes) -> ExportOutcome:
        """The same for a request of more than `LARGE_REQUEST_BYTES`; the loop is not blocked."""

    def consume_logs(self, body: bytes) -> ExportOutcome:
        """As `consume_traces`, for the log records of a serialised ExportLogsServiceRequest."""

    async def consume_large_logs(self, body: bytes) -> ExportOutcome:
        """As `consume_large_traces`, for log records."""


class PartitionIntake(Protocol):
    """Accepts the records of one partition of a topic; see `collector.path.partition.Partition`."""

    def read(self, unix_nano: int) -> None:
        """A record with this time was read: the clock of the partition advances."""

    def reach_end(self) -> None:
        """The end of the partition was reached."""

    def caught_up(self) -> None:
        """A poll finished and all its records were passed on; called at least once a second."""

    def leave_end(self) -> None:
        """Unread records may exist."""

    def stand_still(self) -> None:
        """The broker does not respond."""

    def note_horizon(self, unix_nano: int) -> None:
        """Records written before `unix_nano` were not read."""

    @property
    def is_ahead(self) -> bool:
        """Whether what was read last should wait until the partition that this one is joined to was read."""

    def admit(self, body: bytes, record: int, key: bytes | None = None) -> Collection[bytes]:
        """Accept the spans of a record that has this key; returns the ids of their traces.

        Raises:
            Refusal: nothing of it was accepted; `Overloaded` if it may be later.
        """

    def admit_again(self, body: bytes, record: int | None) -> None:
        """Note a record that was delivered before; raises `Overloaded` as `admit` does."""

    def close(self) -> None:
        """Finish no further traces."""

    def forget(self) -> None:
        """Release everything that is held; the last call."""


class RecordConsumer(Consumer, Protocol):
    """Accepts records of partitions as well."""

    @property
    def has_room(self) -> bool:
        """Whether further records should be read; not if too much waits for exporters."""

    def open_partition(self, source: RecordSource, partition_count: int) -> PartitionIntake:
        """The intake of a partition; `source` has its records until they are delivered."""

    def open_records_partition(self, source: RecordSource, joined: PartitionIntake | None) -> PartitionIntake:
        """The intake of a partition with log records; `joined` has the spans of their traces, if any has."""


def encode_response(outcome: ExportOutcome) -> bytes:
    """The serialised response for `outcome`: the fields of the one for logs have the same numbers."""
    if not outcome.rejected and not outcome.message:
        return FULL_SUCCESS
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = outcome.rejected
    response.partial_success.error_message = outcome.message[:_MAX_MESSAGE_LENGTH]
    return response.SerializeToString()


def encode_response_json(outcome: ExportOutcome, signal: ReceivedSignal = "traces") -> bytes:
    """The response for `outcome`, as OTLP/JSON."""
    if not outcome.rejected and not outcome.message:
        return FULL_SUCCESS_JSON
    partial_success: dict[str, str] = {}
    if outcome.rejected:
        key = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
        partial_success[key] = str(outcome.rejected)
    if outcome.message:
        partial_success["errorMessage"] = outcome.message[:_MAX_MESSAGE_LENGTH]
    return orjson.dumps({"partialSuccess": partial_success})
