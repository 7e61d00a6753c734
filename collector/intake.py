"""From an export request to the buffer: what receivers call for every request.

A request is taken as a whole or refused as a whole; spans whose ids are invalid are the one exception and
are told to the sender as a partial success.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from collector.errors import Draining, Overloaded, RequestTooLarge
from collector.otlp.codec import split_request
from collector.otlp.envelope_registry import EnvelopeRegistry
from collector.receivers.consumer import ExportOutcome
from collector.telemetry.metrics import Metrics
from collector.trace import SpanBatch


class Admitted(Protocol):
    """What became of an admitted request."""

    @property
    def late(self) -> Sequence[SpanBatch]:
        """Spans of traces that are finished already: to be forwarded at once, unchanged."""
        ...

    @property
    def fresh(self) -> Sequence[SpanBatch]:
        """Spans that do not wait for their verdict: to be forwarded at once as well."""
        ...


class Buffer(Protocol):
    """The part of the trace buffer that takes spans in."""

    def admit(self, batches: Sequence[SpanBatch]) -> Admitted:
        """Take all batches, or none and raise `Overloaded` or `RequestTooLarge`."""
        ...

    def note_refused(self, batches: Sequence[SpanBatch]) -> None:
        """Remember that these spans were refused and should come back."""
        ...


class TraceIntake:
    """Splits requests by trace and admits them to the buffer.

    `forward` is called with the spans of a request that leave at once, before the request is acknowledged.
    What spans share, their resources and scopes, comes from `envelopes`.
    """

    def __init__(
        self,
        buffer: Buffer,
        forward: Callable[[Sequence[SpanBatch]], None],
        metrics: Metrics,
        envelopes: EnvelopeRegistry,
    ) -> None:
        self._buffer = buffer
        self._forward = forward
        self._metrics = metrics
        self._envelopes = envelopes
        self._is_draining = False
        for reason in (Overloaded.reason, RequestTooLarge.reason, "invalid_id"):
            metrics.spans_refused.add(0, reason)

    def drain(self) -> None:
        """Refuse every further request, retryably."""
        self._is_draining = True

    def consume_traces(self, body: bytes) -> ExportOutcome:
        """Admit the spans of a serialised export request.

        Raises:
            MalformedRequest: the bytes are no such request.
            RequestTooLarge: the request could never fit.
            Overloaded: there is no room now.
            Draining: the service is stopping.
        """
        if self._is_draining:
            raise Draining("The service is shutting down; send the request again.")
        request = split_request(body, self._envelopes)
        batches = [SpanBatch(trace_id, spans) for trace_id, spans in request.traces.items()]
        try:
            admitted = self._buffer.admit(batches)
        except (Overloaded, RequestTooLarge) as refusal:
            self._metrics.spans_refused.add(request.accepted + request.rejected, refusal.reason)
            if isinstance(refusal, Overloaded):
                self._buffer.note_refused(batches)
            raise
        if admitted.late or admitted.fresh:
            self._forward([*admitted.late, *admitted.fresh])
        if not request.rejected:
            return ExportOutcome(accepted=request.accepted, rejected=0)
        self._metrics.spans_refused.add(request.rejected, "invalid_id")
        total = request.accepted + request.rejected
        return ExportOutcome(
            accepted=request.accepted,
            rejected=request.rejected,
            message=(
                f"{request.rejected} of {total} spans rejected: a trace id must be 16 bytes and a span id "
                "8 bytes, neither all zero; a parent span id must be empty or 8 bytes."
            ),
        )
