"""The messages around spans as the protobuf runtime is to read them here: attributes as a map of bytes.

As for spans, so that compiled code finds the keys and skips what nobody asks for, however much there is.
"""

from collections.abc import Mapping
from typing import Protocol, cast

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass


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


class _ResourceSpansParser(Protocol):
    def __call__(self, serialized: bytes, /) -> _ResourceSpans: ...


class _ScopeSpansParser(Protocol):
    def __call__(self, serialized: bytes, /) -> _ScopeSpans: ...


_PACKAGE = "tracegrade.envelope"
_BYTES, _STRING = FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_STRING
_MESSAGE = FieldDescriptorProto.TYPE_MESSAGE
_OPTIONAL, _REPEATED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED


def _parsers() -> tuple[_ResourceSpansParser, _ScopeSpansParser]:
    resource = DescriptorProto(name="Resource")
    entry = resource.nested_type.add(name="AttributesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_STRING, label=_OPTIONAL)
    entry.field.add(name="value", number=2, type=_BYTES, label=_OPTIONAL)
    _add_message(resource, "attributes", "Resource.AttributesEntry", _REPEATED)
    scope = DescriptorProto(name="InstrumentationScope")
    scope.field.add(name="name", number=1, type=_STRING, label=_OPTIONAL)
    scope.field.add(name="version", number=2, type=_STRING, label=_OPTIONAL)
    resource_spans = DescriptorProto(name="ResourceSpans")
    _add_message(resource_spans, "resource", "Resource", _OPTIONAL)
    scope_spans = DescriptorProto(name="ScopeSpans")
    _add_message(scope_spans, "scope", "InstrumentationScope", _OPTIONAL)
    messages = [resource, scope, resource_spans, scope_spans]
    pool = DescriptorPool()
    file = FileDescriptorProto(
        name="tracegrade/envelope.proto", package=_PACKAGE, syntax="proto3", message_type=messages
    )
    pool.AddSerializedFile(file.SerializeToString())
    resource_class, scope_class = (
        GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("ResourceSpans", "ScopeSpans")
    )
    return (
        cast(_ResourceSpansParser, resource_class.FromString),
        cast(_ScopeSpansParser, scope_class.FromString),
    )


def _add_message(
    owner: DescriptorProto, name: str, type_name: str, label: FieldDescriptorProto.Label.ValueType
) -> None:
    """Give `owner` a field of number 1, which all of them have in these messages."""
    owner.field.add(name=name, number=1, type=_MESSAGE, type_name=f".{_PACKAGE}.{type_name}", label=label)


_parse_resource_spans, _parse_scope_spans = _parsers()


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
