"""Splitting and joining requests loses and changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.errors import MalformedRequest
from collector.otlp import EnvelopeRegistry, SplitRequest, codec, join_spans, split_request
from processors.spans import encode_field
from tests.support.corpus import recorded_requests

pytestmark = pytest.mark.usefixtures("each_reader")

_ids8 = st.binary(min_size=8, max_size=8).filter(any)
_ids16 = st.integers(1, 3).map(lambda number: bytes(15) + bytes([number]))
_texts = st.text(max_size=8)
_key_values = st.builds(
    KeyValue,
    key=_texts,
    value=st.one_of(
        st.builds(AnyValue, string_value=_texts), st.builds(AnyValue, int_value=st.integers(-5, 5))
    ),
)
_spans = st.builds(
    Span,
    trace_id=_ids16,
    span_id=_ids8,
    parent_span_id=st.one_of(st.just(b""), _ids8),
    trace_state=st.sampled_from(["", "a=1"]),
    name=_texts,
    flags=st.sampled_from([0, 0x100, 0x300]),
    start_time_unix_nano=st.integers(0, 2**63),
    attributes=st.lists(_key_values, max_size=3),
)
_resource_spans = st.builds(
    ResourceSpans,
    resource=st.builds(Resource, attributes=st.lists(_key_values, max_size=2)),
    scope_spans=st.lists(
        st.builds(
            ScopeSpans,
            scope=st.builds(InstrumentationScope, name=_texts, version=_texts),
            spans=st.lists(_spans, max_size=4),
            schema_url=_texts,
        ),
        max_size=3,
    ),
    schema_url=_texts,
)
_requests = st.builds(ExportTraceServiceRequest, resource_spans=st.lists(_resource_spans, max_size=3))


def _facts(request: ExportTraceServiceRequest) -> list[tuple[bytes, ...]]:
    """Every span with all that surrounds it, without regard to grouping."""
    return sorted(
        (
            resource_spans.resource.SerializeToString(),
            resource_spans.schema_url.encode(),
            scope_spans.scope.SerializeToString(),
            scope_spans.schema_url.encode(),
            span.SerializeToString(),
        )
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    )


def _rejoined(body: bytes) -> bytes:
    split = split_request(body)
    return join_spans(span for spans in split.traces.values() for span in spans)


@given(_requests)
def test_every_span_keeps_its_bytes_its_resource_and_its_scope(request: ExportTraceServiceRequest) -> None:
    joined = ExportTraceServiceRequest.FromString(_rejoined(request.SerializeToString()))

    assert _facts(request) == _facts(joined)


@given(_requests)
def test_spans_are_grouped_by_trace_in_the_order_of_the_request(request: ExportTraceServiceRequest) -> None:
    expected: dict[bytes, list[bytes]] = {}
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                expected.setdefault(span.trace_id, []).append(span.SerializeToString())

    split = split_request(request.SerializeToString())

    assert expected == {trace_id: [span[1] for span in spans] for trace_id, spans in split.traces.items()}
    assert sum(map(len, expected.values())) == split.accepted
    assert split.rejected == 0


def test_recorded_requests_come_out_as_they_went_in() -> None:
    bodies = recorded_requests()

    assert len(bodies) > 100
    for body in bodies:
        assert _facts(ExportTraceServiceRequest.FromString(body)) == _facts(
            ExportTraceServiceRequest.FromString(_rejoined(body))
        )


def test_unknown_fields_survive_at_every_level() -> None:
    unknown = encode_field(0x7A, b"from the future")  # field 15: unknown to requests, resources and scopes
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="n").SerializeToString() + b"\xa2\x06\x01x"
    scope_spans = encode_field(0x12, span) + unknown
    resource_spans = encode_field(0x12, scope_spans) + unknown

    joined = _rejoined(encode_field(0x0A, resource_spans))

    assert joined.count(b"from the future") == 2
    assert span in joined
    assert _facts(ExportTraceServiceRequest.FromString(joined))[0][-1] == span


def test_groups_are_merged_only_when_their_bytes_are_equal() -> None:
    def request(value: str, span_id: bytes) -> bytes:
        resource = Resource(attributes=[KeyValue(key="k", value=AnyValue(string_value=value))])
        span = Span(trace_id=b"t" * 16, span_id=span_id)
        return ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=[span])])]
        ).SerializeToString()

    spans = [
        span
        for body in (request("a", b"1" * 8), request("b", b"2" * 8), request("a", b"3" * 8))
        for spans in split_request(body).traces.values()
        for span in spans
    ]
    joined = ExportTraceServiceRequest.FromString(join_spans(spans))

    assert [[b"1" * 8, b"3" * 8], [b"2" * 8]] == [
        [span.span_id for span in resource_spans.scope_spans[0].spans]
        for resource_spans in joined.resource_spans
    ]


@pytest.mark.parametrize(
    ("trace_id", "span_id", "parent_span_id"),
    [
        (b"", b"s" * 8, b""),
        (bytes(16), b"s" * 8, b""),
        (b"t" * 15, b"s" * 8, b""),
        (b"t" * 24, b"s" * 8, b""),
        (b"t" * 16, b"", b""),
        (b"t" * 16, bytes(8), b""),
        (b"t" * 16, b"s" * 12, b""),
        (b"t" * 16, b"s" * 8, b"p" * 7),
    ],
)
def test_a_span_with_an_invalid_id_is_rejected_and_the_others_are_kept(
    trace_id: bytes, span_id: bytes, parent_span_id: bytes
) -> None:
    good = Span(trace_id=b"t" * 16, span_id=b"g" * 8)
    bad = Span(trace_id=trace_id, span_id=span_id, parent_span_id=parent_span_id)
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[bad, good])])]
    )

    split = split_request(request.SerializeToString())

    assert (1, 1) == (split.accepted, split.rejected)
    assert {b"t" * 16: [b"g" * 8]} == {
        key: [span[0] for span in spans] for key, spans in split.traces.items()
    }


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\x7f\x01", b"not protobuf", b"\x0a\x04\x12\x02\x12\x7f"])
def test_what_is_no_request_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="not a valid ExportTraceServiceRequest"):
        split_request(body)


def test_broken_content_deep_inside_a_span_is_malformed() -> None:
    attribute = encode_field(0x0A, b"key") + encode_field(0x12, encode_field(0x0A, b"\xff not UTF-8"))
    span = encode_field(0x0A, b"t" * 16) + encode_field(0x12, b"s" * 8) + encode_field(0x4A, attribute)

    with pytest.raises(MalformedRequest):
        split_request(encode_field(0x0A, encode_field(0x12, encode_field(0x12, span))))


def test_values_nested_beyond_the_limit_are_malformed() -> None:
    value = encode_field(0x0A, b"x")
    for _ in range(200):
        value = encode_field(0x2A, encode_field(0x0A, value))
    attribute = encode_field(0x0A, b"key") + encode_field(0x12, value)
    span = encode_field(0x0A, b"t" * 16) + encode_field(0x12, b"s" * 8) + encode_field(0x4A, attribute)

    with pytest.raises(MalformedRequest):
        split_request(encode_field(0x0A, encode_field(0x12, encode_field(0x12, span))))


def test_an_empty_request_holds_nothing() -> None:
    assert {} == split_request(b"").traces


def test_tags_written_longer_than_needed_are_understood() -> None:
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8).SerializeToString()
    scope_spans = b"\x92\x00" + bytes([len(span)]) + span  # tag 0x12 in two bytes

    split = split_request(encode_field(0x0A, encode_field(0x12, scope_spans)))

    assert 1 == split.accepted


_SHORT = b"\x12\x00"  # a scope without spans, or a span without ids
_GROUP = b"\x0b" + b"\x08\x00" * 10_001 + b"\x0c"


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\x00" * 10_001,
        encode_field(0x0A, _SHORT * 10_001),
        encode_field(0x0A, encode_field(0x12, _SHORT * 10_001)),
        encode_field(0x0A, encode_field(0x12, b"\x92\x00\x00" * 10_001)),
        encode_field(0x0A, _SHORT * 6_000) * 2,
        encode_field(0x0A, encode_field(0x12, b"\x1a\x00" * 10_009)),
        encode_field(0x0A, _GROUP),
        _GROUP,
    ],
    ids=[
        *("resources", "scopes", "spans", "long tags", "in all", "needless fields", "a group"),
        "a group outside",
    ],
)
def test_a_request_made_of_empty_messages_is_refused_before_it_takes_memory(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="more than 10000 empty"):
        split_request(body)


def test_some_empty_messages_are_left_out() -> None:
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8).SerializeToString()
    scope_spans = encode_field(0x12, encode_field(0x12, span) + _SHORT * 9_000)

    split = split_request(encode_field(0x0A, scope_spans + _SHORT * 900))

    assert (1, 9_000) == (split.accepted, split.rejected)


def test_bytes_of_resources_and_scopes_count_while_spans_with_them_are_held() -> None:
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8)
    resource = Resource(attributes=[KeyValue(key="k", value=AnyValue(string_value="x" * 50_000))])
    scope_spans = ScopeSpans(spans=[span, span])
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope_spans])] * 2
    )
    envelopes = EnvelopeRegistry()

    split = split_request(request.SerializeToString(), envelopes)
    held = envelopes.bytes_held()
    split.traces.clear()

    assert 50_000 < held < 52_000
    assert 0 == envelopes.bytes_held()


@given(st.binary(max_size=200))
def test_any_bytes_either_split_or_are_malformed(body: bytes) -> None:
    try:
        split_request(body)
    except MalformedRequest:
        with pytest.raises(Exception, match="pars"):
            ExportTraceServiceRequest.FromString(body)


def _split_in_parts(body: bytes, part_bytes: int) -> SplitRequest | None:
    """What comes of `body` if it is validated in parts of that size; None: it is malformed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_PART_BYTES", part_bytes)
        try:
            return split_request(body)
        except MalformedRequest:
            return None


@given(_requests, st.integers(0, 60), st.data())
def test_a_request_that_is_validated_in_parts_is_what_it_is_as_a_whole(
    request: ExportTraceServiceRequest, part_bytes: int, data: st.DataObject
) -> None:
    body = bytearray(request.SerializeToString())
    assert _split_in_parts(bytes(body), len(body)) == _split_in_parts(bytes(body), part_bytes) is not None

    for _ in range(data.draw(st.integers(1, 3)) if body else 0):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    assert _split_in_parts(bytes(body), len(body)) == _split_in_parts(bytes(body), part_bytes)


@pytest.mark.parametrize("depth", range(30, 36))
def test_values_may_be_nested_as_deep_in_a_part_as_in_the_whole(depth: int) -> None:
    value = b""
    for _ in range(depth):
        value = encode_field(0x0A, encode_field(0x2A, value))  # ArrayValue.values, AnyValue.array_value
    span = encode_field(0x0A, bytes([1]) * 16) + encode_field(0x12, bytes([1]) * 8)
    span += encode_field(0x4A, encode_field(0x12, encode_field(0x2A, value)))
    body = encode_field(0x0A, encode_field(0x12, encode_field(0x12, span)))

    assert _split_in_parts(body, len(body)) == _split_in_parts(body, 1)


def test_of_a_long_request_the_runtime_never_sees_much_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    class Recording:
        @staticmethod
        def FromString(body: bytes) -> ExportTraceServiceRequest:  # the runtime's name
            lengths.append(len(body))
            return ExportTraceServiceRequest.FromString(body)

    span = Span(trace_id=bytes([1]) * 16, span_id=bytes([2]) * 8, name="x" * 5000)
    spans = [ScopeSpans(spans=[span] * 1000)]
    body = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=spans)]).SerializeToString()
    monkeypatch.setattr(codec, "ExportTraceServiceRequest", Recording)
    monkeypatch.setattr(codec, "NATIVE", None)  # which needs no runtime

    assert 1000 == split_request(body).accepted
    assert len(body) <= sum(lengths) + 100
    assert max(lengths) < 1.1 * codec._PART_BYTES
