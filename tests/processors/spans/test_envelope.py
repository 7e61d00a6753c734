"""Resources and scopes are read as the protocol says, whatever their bytes look like."""

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from processors.spans.attributes import NO_ATTRIBUTES
from processors.spans.envelope import NO_ENVELOPE, Envelope


def resource_spans(**attributes: str) -> bytes:
    key_values = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in attributes.items()]
    return ResourceSpans(resource=Resource(attributes=key_values), schema_url="u").SerializeToString()


def scope_spans(name: str = "", version: str = "") -> bytes:
    return ScopeSpans(scope=InstrumentationScope(name=name, version=version)).SerializeToString()


def test_attributes_of_the_resource_and_name_and_version_of_the_scope_are_read() -> None:
    envelope = Envelope(resource_spans(**{"service.name": "s", "k": "v"}), scope_spans(name="n", version="1"))

    assert {"service.name": "s", "k": "v"} == dict(envelope.resource_attributes)
    assert ("s", "n") == (envelope.service_name, envelope.scope_name)


def test_what_is_not_there_is_empty() -> None:
    assert NO_ATTRIBUTES is NO_ENVELOPE.resource_attributes
    assert ("", "") == (NO_ENVELOPE.service_name, NO_ENVELOPE.scope_name)


def test_a_resource_or_scope_in_two_parts_is_one() -> None:
    envelope = Envelope(
        resource_spans(**{"service.name": "s"}) + resource_spans(k="v"),
        scope_spans(name="n") + scope_spans(version="1"),
    )

    assert {"service.name": "s", "k": "v"} == dict(envelope.resource_attributes)
    assert "n" == envelope.scope_name


def test_of_two_attributes_with_one_key_the_last_counts() -> None:
    twice = [KeyValue(key="service.name", value=AnyValue(string_value=name)) for name in ("one", "two")]

    envelope = Envelope(ResourceSpans(resource=Resource(attributes=twice)).SerializeToString(), b"")

    assert "two" == envelope.service_name
