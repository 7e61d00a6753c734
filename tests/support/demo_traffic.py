"""The scripted agents of the demonstration as a sender, with new trace ids every time."""

from collections.abc import Mapping
from types import MappingProxyType

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from collector.otlp import split_request
from collector.tools.demo import SERVICE_NAME, perform, scripted_runs


def demo_request(resource_attributes: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """One request with the spans of all scripted runs, a trace for each, children before their parents."""
    memory = InMemorySpanExporter()
    resource = Resource({"service.name": SERVICE_NAME, **resource_attributes})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for run in scripted_runs():
        perform(run, provider.get_tracer("tracegrade.demo"))
    provider.shutdown()
    return encode_spans(memory.get_finished_spans()).SerializeToString()


def without_roots(request: bytes) -> tuple[bytes, bytes]:
    """`request` as two: its spans that have a parent, and its root spans."""
    children = ExportTraceServiceRequest.FromString(request)
    roots = ExportTraceServiceRequest.FromString(request)
    for message, keeps_roots in ((children, False), (roots, True)):
        for resource_spans in message.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                kept = [span for span in scope_spans.spans if keeps_roots != bool(span.parent_span_id)]
                del scope_spans.spans[:]
                scope_spans.spans.extend(kept)
    return children.SerializeToString(), roots.SerializeToString()


def sent_keys(*requests: bytes) -> set[tuple[str, str]]:
    """Trace id and span id of every span in `requests`, in hex."""
    return {
        (trace_id.hex(), span[0].hex())
        for request in requests
        for trace_id, spans in split_request(request).traces.items()
        for span in spans
    }
