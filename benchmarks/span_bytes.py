"""The spans of an export request as bytes, cheaply: the three outer levels are parsed, the spans are not."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import Message

_PACKAGE = "benchmarks.shallow"


def span_payloads(body: bytes) -> list[bytes]:
    """The Span messages of a serialised ExportTraceServiceRequest, in its order."""
    request = _REQUEST.FromString(body)
    return [
        span
        for resource_spans in request.resource_spans  # type: ignore[attr-defined]  # made at run time
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


def _shallow_request() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(
        name="benchmarks/shallow.proto", package=_PACKAGE, syntax="proto3"
    )
    _add_message(file.message_type.add(), "ScopeSpans", "spans", 2, None)
    _add_message(file.message_type.add(), "ResourceSpans", "scope_spans", 2, "ScopeSpans")
    _add_message(file.message_type.add(), "Request", "resource_spans", 1, "ResourceSpans")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.Request")
    return message_factory.GetMessageClass(descriptor)


def _add_message(message: DescriptorProto, name: str, field: str, number: int, of: str | None) -> None:
    message.name = name
    message.field.add(
        name=field,
        number=number,
        label=FieldDescriptorProto.LABEL_REPEATED,
        type=FieldDescriptorProto.TYPE_MESSAGE if of else FieldDescriptorProto.TYPE_BYTES,
        type_name=f".{_PACKAGE}.{of}" if of else None,
    )


_REQUEST = _shallow_request()
