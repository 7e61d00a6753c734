"""What a competent Python developer writes first, to compare with: group spans by trace and forward them.

A grpcio server on generated classes decodes every attribute into dicts, keeps the spans of a trace together,
takes a trace as finished once it was quiet, builds new requests and sends them through the generated stub.
It evaluates nothing and bounds nothing.

`python -m benchmarks.naive_peer SINK QUIET_SECONDS` announces its port on stderr.
"""

import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    TraceServiceStub,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

_CHECK_SECONDS = 0.2
_SPANS_PER_REQUEST = 512


@dataclass(slots=True)
class DecodedSpan:
    """A span with its attributes as Python values, and what it belongs to."""

    message: Span
    attributes: dict[str, object]
    origin: "Origin"


@dataclass(slots=True)
class Origin:
    """The resource and scope of received spans; the keys are equal where those are."""

    resource_attributes: dict[str, object]
    resource_spans: ResourceSpans
    scope_spans: ScopeSpans
    resource_key: bytes
    scope_key: tuple[bytes, bytes]


@dataclass(slots=True)
class OpenTrace:
    """The spans of a trace so far."""

    spans: list[DecodedSpan] = field(default_factory=list)
    last_arrival: float = 0.0


class Backend(Protocol):
    """Where requests go: the generated stub."""

    def Export(self, request: ExportTraceServiceRequest) -> object:
        """Send one request and wait for the answer."""
        ...


class NaivePeer(TraceServiceServicer):
    """Groups spans by trace and forwards every trace that was quiet for `quiet_seconds`."""

    def __init__(
        self, backend: Backend, quiet_seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._backend = backend
        self._quiet_seconds = quiet_seconds
        self._monotonic = monotonic
        self._lock = Lock()
        self._traces: dict[bytes, OpenTrace] = {}

    def Export(
        self, request: ExportTraceServiceRequest, context: grpc.ServicerContext | None
    ) -> ExportTraceServiceResponse:
        """Take the spans of one request in."""
        received: list[DecodedSpan] = []
        for resource_spans in request.resource_spans:
            resource_attributes = attributes_of(resource_spans.resource.attributes)
            resource_key = resource_spans.resource.SerializeToString()
            for scope_spans in resource_spans.scope_spans:
                scope_key = resource_key, scope_spans.scope.SerializeToString()
                origin = Origin(resource_attributes, resource_spans, scope_spans, resource_key, scope_key)
                for span in scope_spans.spans:
                    received.append(DecodedSpan(span, attributes_of(span.attributes), origin))
        now = self._monotonic()
        with self._lock:
            for decoded in received:
                trace_id = decoded.message.trace_id
                trace = self._traces.get(trace_id)
                if trace is None:
                    trace = self._traces[trace_id] = OpenTrace()
                trace.spans.append(decoded)
                trace.last_arrival = now
        return ExportTraceServiceResponse()

    def forward_finished(self) -> None:
        """Forward the traces that are quiet now."""
        quiet_since = self._monotonic() - self._quiet_seconds
        with self._lock:
            finished = [key for key, trace in self._traces.items() if trace.last_arrival <= quiet_since]
            traces = [self._traces.pop(key) for key in finished]
        pending: list[DecodedSpan] = []
        for trace in traces:
            pending.extend(trace.spans)
            if len(pending) >= _SPANS_PER_REQUEST:
                self._backend.Export(request_of(pending))
                pending = []
        if pending:
            self._backend.Export(request_of(pending))


def attributes_of(attributes: Iterable[KeyValue]) -> dict[str, object]:
    """Attributes as a dict of Python values."""
    return {attribute.key: value_of(attribute.value) for attribute in attributes}


def value_of(value: AnyValue) -> object:
    """The Python value of an attribute value."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return attributes_of(value.kvlist_value.values)
    decoded: object = getattr(value, kind)
    return decoded


def request_of(spans: Iterable[DecodedSpan]) -> ExportTraceServiceRequest:
    """A request with `spans`, grouped by resource and scope."""
    request = ExportTraceServiceRequest()
    resources: dict[bytes, ResourceSpans] = {}
    scopes: dict[tuple[bytes, bytes], ScopeSpans] = {}
    for span in spans:
        origin = span.origin
        scope_spans = scopes.get(origin.scope_key)
        if scope_spans is None:
            resource_spans = resources.get(origin.resource_key)
            if resource_spans is None:
                resource_spans = resources[origin.resource_key] = request.resource_spans.add(
                    resource=origin.resource_spans.resource, schema_url=origin.resource_spans.schema_url
                )
            scope_spans = scopes[origin.scope_key] = resource_spans.scope_spans.add(
                scope=origin.scope_spans.scope, schema_url=origin.scope_spans.schema_url
            )
        scope_spans.spans.append(span.message)
    return request


def main() -> None:
    """Serve until the process is told to end."""
    sink, quiet_seconds = sys.argv[1:]
    backend = TraceServiceStub(grpc.insecure_channel(sink))  # type: ignore[no-untyped-call]  # generated
    peer = NaivePeer(backend, float(quiet_seconds))
    server = grpc.server(ThreadPoolExecutor(10), options=[("grpc.so_reuseport", 0)])
    add_TraceServiceServicer_to_server(peer, server)  # type: ignore[no-untyped-call]  # generated
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"naive ready: grpc=127.0.0.1:{port}", file=sys.stderr, flush=True)
    while True:
        time.sleep(_CHECK_SECONDS)
        peer.forward_finished()


if __name__ == "__main__":
    main()
