"""What sends a load's requests: a plain gRPC client, and the exporters of the OpenTelemetry SDK."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

import grpc
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from collector.otlp import join_spans
from processors.spans import RawSpan
from tests.support.otlp_senders import EXPORT_METHOD

FIRST_RETRY_SECONDS = 0.5
"""The SDK's exporters try again by themselves, after 0.8 s at the earliest: what took less is one attempt."""


@dataclass(frozen=True)
class Exported:
    """How one export ended."""

    is_acknowledged: bool
    was_unanswered: bool
    """Whether an attempt may have reached the service without an answer."""


class LoadSender(Protocol):
    """Sends requests to one receiver."""

    def encoded(self, spans: Sequence[RawSpan]) -> Sequence[RawSpan]:
        """The spans as this sender writes them."""
        ...

    async def export(self, spans: Sequence[RawSpan]) -> Exported:
        """Send the spans in one request."""
        ...


class PlainSender:
    """grpcio's own client, which tells of each attempt how it ended."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._export = channel.unary_unary(EXPORT_METHOD)

    def encoded(self, spans: Sequence[RawSpan]) -> Sequence[RawSpan]:
        return spans

    async def export(self, spans: Sequence[RawSpan]) -> Exported:
        try:
            await self._export(join_spans(spans), timeout=5)
        except grpc.aio.AioRpcError as error:
            is_refused = error.code() is grpc.StatusCode.UNAVAILABLE and "connect" in (error.details() or "")
            return Exported(is_acknowledged=False, was_unanswered=not is_refused)
        return Exported(is_acknowledged=True, was_unanswered=False)


class StockSender:
    """An exporter of the SDK, with its own retries and its own reading of what the service answers."""

    def __init__(self, exporter: SpanExporter, threads: Executor) -> None:
        self._exporter = exporter
        self._threads = threads

    def encoded(self, spans: Sequence[RawSpan]) -> Sequence[RawSpan]:
        encoded = encode_spans(list(map(_readable, spans)))
        (resource_spans,) = encoded.resource_spans
        (scope_spans,) = resource_spans.scope_spans
        return [(span.span_id, span.SerializeToString(), spans[0][2]) for span in scope_spans.spans]

    async def export(self, spans: Sequence[RawSpan]) -> Exported:
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._threads, self._exporter.export, list(map(_readable, spans)))
        is_acknowledged = result is SpanExportResult.SUCCESS
        return Exported(
            is_acknowledged, not is_acknowledged or time.monotonic() - started > FIRST_RETRY_SECONDS
        )


def _readable(span: RawSpan) -> ReadableSpan:
    _, payload, envelope = span
    message = Span.FromString(payload)
    trace_id = int.from_bytes(message.trace_id, "big")
    resource = ResourceSpans.FromString(envelope.resource).resource
    scope = ScopeSpans.FromString(envelope.scope).scope
    return ReadableSpan(
        message.name,
        _context(trace_id, message.span_id),
        _context(trace_id, message.parent_span_id) if message.parent_span_id else None,
        Resource({each.key: _text(each.value) for each in resource.attributes}),
        {each.key: _text(each.value) for each in message.attributes},
        kind=SpanKind.INTERNAL,
        start_time=message.start_time_unix_nano,
        end_time=message.end_time_unix_nano,
        instrumentation_scope=InstrumentationScope(scope.name),
    )


def _context(trace_id: int, span_id: bytes) -> SpanContext:
    return SpanContext(
        trace_id, int.from_bytes(span_id, "big"), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def _text(value: AnyValue) -> str:
    assert value.HasField("string_value"), value
    return value.string_value
