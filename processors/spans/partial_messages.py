"""Message classes for parts of OTLP: attributes as a map of encoded values, the rest left as bytes or out.

A map field and a list of key-value messages are the same bytes, and an AnyValue left as bytes is decoded by
nobody who does not ask for it. So the runtime finds the keys in one call, in compiled code. It leaves out of
the map what has a field that OTLP does not know; `has_unknown_fields` shows that, so messages with attributes
name all of their fields here. The descriptors are made here, not checked in as generated code, which parses
as fast and binds to one major of protobuf.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet


class StatusMessage(Protocol):
    """The fields of a Status (opentelemetry/proto/trace/v1/trace.proto)."""

    message: bytes
    code: int


class SpanMessage(Protocol):
    """The fields of a Span (opentelemetry/proto/trace/v1/trace.proto); events stay encoded."""

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
    status: StatusMessage
    flags: int


class EventMessage(Protocol):
    """The fields of a Span.Event (opentelemetry/proto/trace/v1/trace.proto)."""

    time_unix_nano: int
    name: str
    attributes: Mapping[str, bytes]


class LogRecordMessage(Protocol):
    """The fields of a LogRecord (opentelemetry/proto/logs/v1/logs.proto); the body stays encoded."""

    time_unix_nano: int
    observed_time_unix_nano: int
    body: bytes
    attributes: Mapping[str, bytes]
    trace_id: bytes
    span_id: bytes
    event_name: str


class ResourceMessage(Protocol):
    """The fields of a Resource (opentelemetry/proto/resource/v1/resource.proto)."""

    attributes: Mapping[str, bytes]


class ScopeMessage(Protocol):
    """The fields of an InstrumentationScope (opentelemetry/proto/common/v1/common.proto)."""

    name: str
    version: str


class _ResourceSpans(Protocol):
    resource: ResourceMessage


class _ScopeSpans(Protocol):
    scope: ScopeMessage


_PACKAGE = "tracegrade"
_ATTRIBUTES = "attributes"
_FIELDS: Mapping[str, Sequence[tuple[str, int, str]]] = {
    "Span": (
        ("trace_id", 1, "BYTES"),
        ("span_id", 2, "BYTES"),
        ("trace_state", 3, "BYTES"),
        ("parent_span_id", 4, "BYTES"),
        ("name", 5, "STRING"),
        ("kind", 6, "INT32"),
        ("start_time_unix_nano", 7, "FIXED64"),
        ("end_time_unix_nano", 8, "FIXED64"),
        (_ATTRIBUTES, 9, ""),
        ("dropped_attributes_count", 10, "UINT32"),
        ("events", 11, "REPEATED BYTES"),
        ("dropped_events_count", 12, "UINT32"),
        ("links", 13, "REPEATED BYTES"),
        ("dropped_links_count", 14, "UINT32"),
        ("status", 15, "Status"),
        ("flags", 16, "FIXED32"),
    ),
    "Event": (
        ("time_unix_nano", 1, "FIXED64"),
        ("name", 2, "STRING"),
        (_ATTRIBUTES, 3, ""),
        ("dropped_attributes_count", 4, "UINT32"),
    ),
    "LogRecord": (
        ("time_unix_nano", 1, "FIXED64"),
        ("severity_number", 2, "INT32"),
        ("severity_text", 3, "BYTES"),
        ("body", 5, "BYTES"),
        (_ATTRIBUTES, 6, ""),
        ("dropped_attributes_count", 7, "UINT32"),
        ("flags", 8, "FIXED32"),
        ("trace_id", 9, "BYTES"),
        ("span_id", 10, "BYTES"),
        ("observed_time_unix_nano", 11, "FIXED64"),
        ("event_name", 12, "STRING"),
    ),
    "Status": (("message", 2, "BYTES"), ("code", 3, "INT32")),
    "Resource": (
        (_ATTRIBUTES, 1, ""),
        ("dropped_attributes_count", 2, "UINT32"),
        ("entity_refs", 3, "REPEATED BYTES"),
    ),
    "InstrumentationScope": (("name", 1, "STRING"), ("version", 2, "STRING")),
    "ResourceSpans": (("resource", 1, "Resource"),),
    "ScopeSpans": (("scope", 1, "InstrumentationScope"),),
}
"""The messages: each field with its number and type; what is no type of protobuf is another message."""


def _message(name: str) -> DescriptorProto:
    message = DescriptorProto(name=name)
    for field_name, number, kind in _FIELDS[name]:
        label, _, scalar = kind.rpartition(" ")
        field = message.field.add(name=field_name, number=number)
        field.label = FieldDescriptorProto.Label.Value(f"LABEL_{label or 'OPTIONAL'}")
        if field_name == _ATTRIBUTES:  # keys with the bytes of their AnyValue messages
            entry = message.nested_type.add(name="AttributesEntry")
            entry.options.map_entry = True
            for place, (part, part_type) in enumerate((("key", "STRING"), ("value", "BYTES")), start=1):
                inner = entry.field.add(name=part, number=place)
                inner.label = FieldDescriptorProto.LABEL_OPTIONAL
                inner.type = FieldDescriptorProto.Type.Value(f"TYPE_{part_type}")
            field.label = FieldDescriptorProto.LABEL_REPEATED
            scalar = f"{name}.AttributesEntry"
        if f"TYPE_{scalar}" in FieldDescriptorProto.Type.keys():  # noqa: SIM118  # an enum is no mapping
            field.type = FieldDescriptorProto.Type.Value(f"TYPE_{scalar}")
        else:
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_PACKAGE}.{scalar}"
    return message


def _pool() -> DescriptorPool:
    """A pool in which the messages know each other and nothing else."""
    pool = DescriptorPool()
    file = FileDescriptorProto(
        name="tracegrade.proto", package=_PACKAGE, syntax="proto3", message_type=map(_message, _FIELDS)
    )
    pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _pool()


def _parser(name: str) -> Callable[[bytes], object]:
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}")).FromString


parse_span = cast(Callable[[bytes], SpanMessage], _parser("Span"))
"""The Span message in its serialised form; raises `google.protobuf.message.DecodeError` on other bytes."""

parse_event = cast(Callable[[bytes], EventMessage], _parser("Event"))
"""The Event message in its serialised form; raises `google.protobuf.message.DecodeError` on other bytes."""

parse_log_record = cast(Callable[[bytes], LogRecordMessage], _parser("LogRecord"))
"""The serialised LogRecord message; raises `google.protobuf.message.DecodeError` on other bytes."""

_parse_resource_spans = cast(Callable[[bytes], _ResourceSpans], _parser("ResourceSpans"))
_parse_scope_spans = cast(Callable[[bytes], _ScopeSpans], _parser("ScopeSpans"))


def parse_resource(serialized: bytes) -> ResourceMessage:
    """The resource of a serialised ResourceSpans message; empty where it has none.

    Raises:
        google.protobuf.message.DecodeError: the bytes are no such message.
    """
    return _parse_resource_spans(serialized).resource


def parse_scope(serialized: bytes) -> ScopeMessage:
    """The instrumentation scope of a serialised ScopeSpans message; empty where it has none.

    Raises:
        google.protobuf.message.DecodeError: the bytes are no such message.
    """
    return _parse_scope_spans(serialized).scope


def has_unknown_fields(message: SpanMessage | EventMessage | LogRecordMessage | ResourceMessage) -> bool:
    """Whether the message itself, or an attribute in it, has a field that OTLP does not know."""
    return len(UnknownFieldSet(cast(Message, message))) > 0
