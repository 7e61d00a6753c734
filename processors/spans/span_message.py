"""The Span message of OTLP as the protobuf runtime is to read it here (see `partial_message`)."""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from processors.spans.partial_message import BYTES, OPTIONAL, REPEATED, add_attributes, message_classes


class SpanMessage(Protocol):
    """The fields of a Span (opentelemetry/proto/trace/v1/trace.proto); events and status stay encoded."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    name: str
    kind: int
    start_time_unix_nano: int
    end_time_unix_nano: int
    attributes: Mapping[str, bytes]
    dropped_attributes_count: int
    events: Sequence[bytes]
    status: Sequence[bytes]
    flags: int


class _SpanParser(Protocol):
    def __call__(self, serialized: bytes, /) -> SpanMessage: ...


_PACKAGE = "tracegrade.span"
_FIELDS = (
    ("trace_id", 1, FieldDescriptorProto.TYPE_BYTES),
    ("span_id", 2, FieldDescriptorProto.TYPE_BYTES),
    ("parent_span_id", 4, FieldDescriptorProto.TYPE_BYTES),
    ("name", 5, FieldDescriptorProto.TYPE_STRING),
    ("kind", 6, FieldDescriptorProto.TYPE_INT32),
    ("start_time_unix_nano", 7, FieldDescriptorProto.TYPE_FIXED64),
    ("end_time_unix_nano", 8, FieldDescriptorProto.TYPE_FIXED64),
    ("dropped_attributes_count", 10, FieldDescriptorProto.TYPE_UINT32),
    ("flags", 16, FieldDescriptorProto.TYPE_FIXED32),
)


def _parser() -> _SpanParser:
    span = DescriptorProto(name="Span")
    for name, number, field_type in _FIELDS:
        span.field.add(name=name, number=number, type=field_type, label=OPTIONAL)
    # A status that stands there twice is one status in two parts.
    for name, number in (("events", 11), ("status", 15)):
        span.field.add(name=name, number=number, type=BYTES, label=REPEATED)
    add_attributes(span, 9, _PACKAGE)
    [message] = message_classes(_PACKAGE, [span])
    return cast(_SpanParser, message.FromString)


parse_span = _parser()
"""The Span message in its serialised form; raises `google.protobuf.message.DecodeError` on other bytes."""
