"""Spans made by hand, and a trace buffer whose time moves only when a test says so."""

from collections.abc import Callable, Sequence

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from collector.buffer import FinishedTraces, GroupByTraceConfig, LearnedWaits, TraceBuffer
from collector.buffer.outages import Outage
from collector.clock import ManualClock
from collector.memory_limiter import MemoryLimiter
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, SpanBatch
from processors.reconstruction import Scopes
from processors.spans import Envelope, RawRecord, RawSpan

START_UNIX_NANO = 1_800_000_000_000_000_000
SECOND = 1_000_000_000

REMOTE_PARENT = 0x300
LOCAL_PARENT = 0x100


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def span_id(number: int) -> bytes:
    return number.to_bytes(8, "big")


def envelope(service: str = "agent") -> Envelope:
    name = KeyValue(key="service.name", value=AnyValue(string_value=service))
    return Envelope(ResourceSpans(resource=Resource(attributes=[name])).SerializeToString(), b"")


def record_outage(buffer: TraceBuffer) -> None:
    """Let the buffer know that spans may have been lost right now."""
    clock = buffer.finish_clock
    clock.stand_still()
    clock.outages.record(Outage(clock.unix_nano, clock.unix_nano, clock.monotonic))


AGENT = envelope()

FIXED_GRACE = GroupByTraceConfig.model_validate({"root_grace": "2s"})
"""The default but for the grace after a root, which does not depend on what the spans show."""


def raw_span(
    number: int,
    parent: int | None = None,
    *,
    trace: int = 1,
    kind: Span.SpanKind.ValueType = Span.SPAN_KIND_INTERNAL,
    flags: int = LOCAL_PARENT,
    start: int = START_UNIX_NANO,
    end: int = START_UNIX_NANO,
    name: str = "span",
    attribute: str = "",
    of: Envelope = AGENT,
) -> RawSpan:
    """A span whose ids are those numbers; times are Unix nanoseconds."""
    span = Span(
        trace_id=trace_id(trace),
        span_id=span_id(number),
        parent_span_id=b"" if parent is None else span_id(parent),
        name=name,
        kind=kind,
        flags=flags,
        start_time_unix_nano=start,
        end_time_unix_nano=end,
    )
    if attribute:
        span.attributes.append(KeyValue(key=attribute, value=AnyValue(string_value="value")))
    return span_id(number), span.SerializeToString(), of


def batch(*spans: RawSpan, trace: int = 1, tenant: str = "") -> SpanBatch:
    return SpanBatch(trace_id(trace), spans, tenant)


class BufferUnderTest:
    """A trace buffer with its real neighbours and a manual clock that starts at `START_UNIX_NANO`."""

    def __init__(
        self,
        config: GroupByTraceConfig | None = None,
        *,
        limit_bytes: int = 1 << 30,
        finished_traces: FinishedTraces | None = None,
        streams: bool = False,
        verdict_delay: float = 0.0,
        shared_bytes: Callable[[], int] = int,
        learned: LearnedWaits | None = None,
        settled_scopes: Callable[[Sequence[RawSpan]], Scopes | None] | None = None,
        reports_end: Callable[[Sequence[RawRecord]], bool] = lambda records: False,
    ) -> None:
        self.clock = ManualClock(unix_nano=START_UNIX_NANO)
        self.metrics = Metrics()
        self.limiter = MemoryLimiter(limit_bytes, shared_bytes)
        self.buffer = TraceBuffer(
            config=config or FIXED_GRACE,
            limiter=self.limiter,
            metrics=self.metrics,
            clock=self.clock,
            finished_traces=finished_traces,
            streams=streams,
            verdict_delay=verdict_delay,
            learned=learned,
            settled_scopes=settled_scopes,
            reports_end=reports_end,
        )
        self.buffer.poll()

    def admit(self, *batches: SpanBatch) -> list[SpanBatch]:
        """Admit one request; the late spans of it."""
        return list(self.buffer.admit(batches).late)

    def pass_time(self, seconds: float) -> list[FinishedTrace]:
        """Let time pass as in a running process, polled every half second; what finished meanwhile."""
        finished = []
        while seconds > 0:
            self.clock.advance(min(seconds, 0.5))
            seconds -= 0.5
            finished += self.buffer.poll()
        return finished

    def stop_process(self, seconds: float) -> list[FinishedTrace]:
        """Let time pass in which the process does not run; what finished at the first poll after."""
        self.clock.advance(seconds)
        return self.buffer.poll()
