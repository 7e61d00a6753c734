"""Deliveries of hand-made spans, and an exporter in memory that answers as a test tells it."""

import asyncio
from collections.abc import Callable
from random import Random

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.clock import Clock
from collector.exporters import SpanExporterConfig
from collector.exporters.counts import ExportCounts
from collector.exporters.delivery import Delivery
from collector.exporters.exporter import ACCEPTED, ExportResponse, SpanExporter
from collector.exporters.sending_queue import SendingQueue
from collector.exporters.sink import exporter_sink
from collector.memory_limiter import MemoryLimiter
from collector.telemetry import Metrics
from collector.trace import GradedTrace, Signal, held_bytes
from processors.spans import Envelope, RawSpan

_RESOURCE = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="agent"))])
ENVELOPE = Envelope(
    ResourceSpans(resource=_RESOURCE).SerializeToString(),
    ScopeSpans(scope=InstrumentationScope(name="test")).SerializeToString(),
)


def make_spans(trace: int, count: int, *, padding: int = 0, first: int = 1) -> list[RawSpan]:
    """`count` spans of trace number `trace`, with ids that are unique across traces."""
    spans: list[RawSpan] = []
    for number in range(first, first + count):
        span = Span(
            trace_id=trace.to_bytes(16, "big"),
            span_id=(trace * 1_000_000 + number).to_bytes(8, "big"),
            name=f"span {number}",
            start_time_unix_nano=1,
            end_time_unix_nano=2,
        )
        if padding:
            span.attributes.append(KeyValue(key="padding", value=AnyValue(string_value="x" * padding)))
        spans.append((span.span_id, span.SerializeToString(), ENVELOPE))
    return spans


def make_trace(trace: int, count: int, *, padding: int = 0) -> GradedTrace:
    """A graded trace without runs."""
    return GradedTrace(trace_id=trace.to_bytes(16, "big"), spans=make_spans(trace, count, padding=padding))


def make_delivery(
    limiter: MemoryLimiter, trace: int, count: int, *, padding: int = 0, required: bool = True
) -> Delivery:
    """A delivery for one queue whose bytes are acquired from `limiter`."""
    spans = make_spans(trace, count, padding=padding)
    held = held_bytes(spans)
    if not limiter.try_acquire(held):
        raise AssertionError("the limiter has no room for the spans of the test")
    return Delivery(spans, held, limiter.release, holders=1, required_holders=int(required))


class MemoryExporter:
    """Records the requests that it takes. `behave` may answer, raise, or wait on what it returns."""

    def __init__(self, name: str = "otlp/memory") -> None:
        self.name = name
        self.endpoints: dict[Signal, str] = {"traces": "memory"}
        self.requests: list[bytes] = []
        self.span_counts: list[int] = []
        self.attempts = 0
        self.is_started = False
        self.shutdowns = 0
        self.behave: Callable[[bytes, int], ExportResponse | asyncio.Event] = lambda request, count: ACCEPTED

    async def start(self) -> None:
        self.is_started = True

    async def export(self, request: bytes, span_count: int, signal: Signal = "traces") -> ExportResponse:
        self.attempts += 1
        answer = self.behave(request, span_count)
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            answer = ACCEPTED
        self.requests.append(request)
        self.span_counts.append(span_count)
        return answer

    async def shutdown(self, deadline: float) -> None:
        self.shutdowns += 1


def span_queue(
    exporter: SpanExporter,
    config: SpanExporterConfig,
    *,
    metrics: Metrics,
    clock: Clock,
    random: Random | None = None,
) -> SendingQueue:
    """The queue of received spans before an exporter."""
    counts = ExportCounts(metrics, exporter.name)
    return SendingQueue(
        exporter_sink(exporter),
        config.sending_queue,
        config.retry_on_failure,
        counts=counts,
        clock=clock,
        is_required=config.delivery == "required",
        random=random,
    )
