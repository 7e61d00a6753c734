"""The backend of every measurement: a gRPC server that counts what is forwarded to it.

`python -m benchmarks.sink` announces its port on stderr and answers every line on stdin with the counts
so far as JSON; it ends with its stdin.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Lock

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import Message

EXPORT_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

_RESULT_EVENT = b"\x12\x18gen_ai.evaluation.result"
"""The name field of an evaluation event, so that no other text is counted."""
_IDS_LENGTH = 28  # trace id and span id with their tags and lengths
_TRACE_ID_FIRST = b"\x0a\x10"


@dataclass(slots=True)
class SinkCounts:
    """What arrived: requests, their bytes, spans, spans with different ids, evaluation events."""

    requests: int = 0
    bytes: int = 0
    spans: int = 0
    distinct_spans: int = 0
    result_events: int = 0


class _Sink:
    def __init__(self) -> None:
        self.counts = SinkCounts()
        self._seen: set[bytes] = set()
        self._lock = Lock()

    def export(self, body: bytes, context: object) -> bytes:
        spans = span_payloads(body)
        events = body.count(_RESULT_EVENT)
        with self._lock:
            counts = self.counts
            counts.requests += 1
            counts.bytes += len(body)
            counts.spans += len(spans)
            counts.result_events += events
            self._seen.update([_ids(span) for span in spans])
            counts.distinct_spans = len(self._seen)
        return b""


def span_payloads(body: bytes) -> list[bytes]:
    """The Span messages of a serialised ExportTraceServiceRequest, in its order.

    Cheaply: the three outer levels are parsed, the spans are not.
    """
    request = _REQUEST.FromString(body)
    return [
        span
        for resource_spans in request.resource_spans  # type: ignore[attr-defined]  # made at run time
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


def _ids(span: bytes) -> bytes:
    """Trace id and span id; they stand first in a span, or last where fields are written from behind."""
    return span[:_IDS_LENGTH] if span.startswith(_TRACE_ID_FIRST) else span[-_IDS_LENGTH:]


def _shallow_request() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(
        name="benchmarks/shallow.proto", package="benchmarks.shallow", syntax="proto3"
    )
    _add_message(file.message_type.add(), "ScopeSpans", "spans", 2, None)
    _add_message(file.message_type.add(), "ResourceSpans", "scope_spans", 2, "ScopeSpans")
    _add_message(file.message_type.add(), "Request", "resource_spans", 1, "ResourceSpans")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("benchmarks.shallow.Request")
    return message_factory.GetMessageClass(descriptor)


def _add_message(message: DescriptorProto, name: str, field: str, number: int, of: str | None) -> None:
    message.name = name
    message.field.add(
        name=field,
        number=number,
        label=FieldDescriptorProto.LABEL_REPEATED,
        type=FieldDescriptorProto.TYPE_MESSAGE if of else FieldDescriptorProto.TYPE_BYTES,
        type_name=f".benchmarks.shallow.{of}" if of else None,
    )


_REQUEST = _shallow_request()


def main() -> None:
    """Serve until stdin ends."""
    sink = _Sink()
    server = grpc.server(
        ThreadPoolExecutor(4),
        options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)],
    )
    service, method = EXPORT_METHOD.strip("/").split("/")
    handler = grpc.unary_unary_rpc_method_handler(sink.export)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"sink ready: grpc=127.0.0.1:{port}", file=sys.stderr, flush=True)
    for _ in sys.stdin:
        print(json.dumps(asdict(sink.counts)), flush=True)
    server.stop(None).wait()


if __name__ == "__main__":
    main()
