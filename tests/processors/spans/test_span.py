"""The span view reads what the protobuf runtime reads, the one by the reader in Rust as well."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from processors.spans import LogRecord
from processors.spans.attributes import AttributeValue
from processors.spans.envelope import NO_ENVELOPE, Envelope
from processors.spans.span import Span, SpanEvent
from processors.spans.span_tree import SpanTree
from tests.support.corpus import recorded_requests

_scalars = st.one_of(
    st.builds(AnyValue, string_value=st.text(max_size=200)),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, double_value=st.floats(allow_nan=False)),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, bytes_value=st.binary(max_size=10)),
    st.builds(AnyValue),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: AnyValue(array_value=ArrayValue(values=items))),
        st.dictionaries(st.text(max_size=5), inner, max_size=3).map(
            lambda items: AnyValue(
                kvlist_value=KeyValueList(
                    values=[KeyValue(key=key, value=value) for key, value in items.items()]
                )
            )
        ),
    ),
    max_leaves=8,
)
_attributes = st.dictionaries(st.text(max_size=150), _values, max_size=5).map(
    lambda items: [KeyValue(key=key, value=value) for key, value in items.items()]
)
_uint32 = st.integers(0, 2**32 - 1)
_uint64 = st.integers(0, 2**64 - 1)
_spans = st.builds(
    trace_pb2.Span,
    trace_id=st.binary(min_size=16, max_size=16),
    span_id=st.binary(min_size=8, max_size=8),
    trace_state=st.text(max_size=5),
    parent_span_id=st.sampled_from([b"", b"p" * 8]),
    flags=_uint32,
    name=st.text(max_size=300),
    kind=st.integers(0, 5),
    start_time_unix_nano=_uint64,
    end_time_unix_nano=_uint64,
    attributes=_attributes,
    dropped_attributes_count=_uint32,
    events=st.lists(
        st.builds(
            trace_pb2.Span.Event, time_unix_nano=_uint64, name=st.text(max_size=5), attributes=_attributes
        ),
        max_size=2,
    ),
    links=st.lists(st.builds(trace_pb2.Span.Link, trace_id=st.binary(max_size=16)), max_size=2),
    status=st.builds(trace_pb2.Status, message=st.text(max_size=20), code=st.integers(0, 2)),
)


pytestmark = pytest.mark.usefixtures("each_reader")


def _view(raw: bytes) -> Span:
    return SpanTree([(bytes(8), raw, NO_ENVELOPE)]).views[0]


def _python(value: AnyValue) -> AttributeValue:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_python(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _python(item.value) for item in value.kvlist_value.values}
    found: AttributeValue = getattr(value, kind)
    return found


def _assert_equal(message: trace_pb2.Span, view: Span) -> None:
    assert message.trace_id == view.trace_id
    assert message.span_id == view.span_id
    assert message.parent_span_id == view.parent_span_id
    assert message.name == view.name
    assert message.kind == view.kind
    assert message.flags == view.flags
    assert message.start_time_unix_nano == view.start_unix_nano
    assert message.end_time_unix_nano == view.end_unix_nano
    assert message.dropped_attributes_count == view.dropped_attributes_count
    assert (message.status.code, message.status.message) == (view.status_code, view.status_message)
    assert {item.key: _python(item.value) for item in message.attributes} == dict(view.attributes)
    assert [
        (event.name, event.time_unix_nano, {item.key: _python(item.value) for item in event.attributes})
        for event in message.events
    ] == [_event(event) for event in view.events]


def _event(event: SpanEvent) -> tuple[str, int, dict[str, AttributeValue]]:
    return event.name, event.time_unix_nano, dict(event.attributes)


@given(_spans)
def test_every_field_reads_as_the_protobuf_runtime_reads_it(message: trace_pb2.Span) -> None:
    _assert_equal(message, _view(message.SerializeToString()))


def test_recorded_spans_read_as_the_protobuf_runtime_reads_them() -> None:
    for body in recorded_requests():
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for message in scope_spans.spans:
                    _assert_equal(message, _view(message.SerializeToString()))


def test_fields_in_any_order_and_repeated_take_the_last_value() -> None:
    server, client = trace_pb2.Span.SPAN_KIND_SERVER, trace_pb2.Span.SPAN_KIND_CLIENT
    first = trace_pb2.Span(name="first", flags=1, kind=server).SerializeToString()
    second = trace_pb2.Span(name="second", trace_id=b"t" * 16, kind=client).SerializeToString()

    view = _view(first + second)

    assert ("second", b"t" * 16, 3, 1) == (view.name, view.trace_id, view.kind, view.flags)


def test_a_value_before_its_key_is_read() -> None:
    message = trace_pb2.Span(attributes=[KeyValue(key="k", value=AnyValue(string_value="v"))])
    key_first = message.attributes[0].SerializeToString()
    value_first = key_first[3:] + key_first[:3]

    view = _view(b"\x4a" + bytes([len(value_first)]) + value_first)

    assert {"k": "v"} == dict(view.attributes)


def test_the_parent_is_remote_only_when_the_sender_said_so() -> None:
    assert [False, False, True] == [
        _view(trace_pb2.Span(flags=flags).SerializeToString()).parent_is_remote
        for flags in (0x200, 0x100, 0x300)
    ]


def test_attributes_with_fields_that_otlp_does_not_know_are_read() -> None:
    odd = KeyValue(key="odd", value=AnyValue(string_value="seen")).SerializeToString() + b"\x18\x05"
    usual = KeyValue(key="usual", value=AnyValue(int_value=1)).SerializeToString()

    def with_attributes(tag: int) -> bytes:
        return b"".join(bytes([tag, len(each)]) + each for each in (odd, usual))

    resource = with_attributes(0x0A)
    envelope = Envelope(bytes([0x0A, len(resource)]) + resource, b"")
    raw = trace_pb2.Span(trace_id=b"t" * 16, span_id=b"s" * 8).SerializeToString() + with_attributes(0x4A)
    view = SpanTree([(b"s" * 8, raw, envelope)]).views[0]
    event = with_attributes(0x1A)
    eventful = trace_pb2.Span(span_id=b"s" * 8).SerializeToString() + bytes([0x5A, len(event)]) + event
    record = LogRecord(logs_pb2.LogRecord(time_unix_nano=1).SerializeToString() + with_attributes(0x32))

    expected = {"odd": "seen", "usual": 1}
    read = (
        Span(raw).attributes,
        view.attributes,
        Span(eventful).events[0].attributes,
        record.attributes,
        envelope.resource_attributes,
    )
    assert [expected] * len(read) == [dict(attributes) for attributes in read]
