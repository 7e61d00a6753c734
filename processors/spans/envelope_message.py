"""The messages around spans as the protobuf runtime is to read them here (see `partial_message`)."""

from collections.abc import Mapping
from typing import Protocol, cast

from google.protobuf.descriptor_pb2 import DescriptorProto

from processors.spans.partial_message import OPTIONAL, STRING, add_attributes, add_message, message_classes


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


def _parsers() -> tuple[_ResourceSpansParser, _ScopeSpansParser]:
    resource = DescriptorProto(name="Resource")
    add_attributes(resource, 1, _PACKAGE)
    scope = DescriptorProto(name="InstrumentationScope")
    for number, name in enumerate(("name", "version"), start=1):
        scope.field.add(name=name, number=number, type=STRING, label=OPTIONAL)
    resource_spans = DescriptorProto(name="ResourceSpans")
    add_message(resource_spans, "resource", 1, f".{_PACKAGE}.Resource")
    scope_spans = DescriptorProto(name="ScopeSpans")
    add_message(scope_spans, "scope", 1, f".{_PACKAGE}.InstrumentationScope")
    *_, resource_class, scope_class = message_classes(
        _PACKAGE, [resource, scope, resource_spans, scope_spans]
    )
    return (
        cast(_ResourceSpansParser, resource_class.FromString),
        cast(_ScopeSpansParser, scope_class.FromString),
    )


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
