from random import Random

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from collector.otlp.codec import split_request
from processors.spans.protobuf_wire import fields
from processors.spans.span import Span
from processors.spans.span_head import parent_is_remote, read_span_head
from tests.support.corpus import recorded_requests

spans = st.builds(
    SpanMessage,
    trace_id=st.binary(min_size=16, max_size=16),
    span_id=st.binary(min_size=8, max_size=8),
    trace_state=st.sampled_from(["", "vendor=1"]),
    parent_span_id=st.sampled_from([b"", b"\x01" * 8, b'"\x08*0A9\x00\x01']),
    name=st.text(max_size=200),
    kind=st.sampled_from(SpanMessage.SpanKind.values()),
    start_time_unix_nano=st.integers(0, 2**64 - 1),
    end_time_unix_nano=st.integers(0, 2**64 - 1),
    attributes=st.lists(
        st.builds(KeyValue, key=st.text(max_size=5), value=st.builds(AnyValue, string_value=st.text())),
        max_size=3,
    ),
    flags=st.sampled_from([0, 0x1, 0x100, 0x200, 0x300, 0x301]),
)


def head_of_view(payload: bytes) -> tuple[bytes, int, int, int]:
    view = Span(payload)
    return view.parent_span_id, view.kind, view.start_unix_nano, view.end_unix_nano


@given(spans, st.randoms(use_true_random=False))
def test_head_equals_the_whole_view_in_any_field_order(message: SpanMessage, random: Random) -> None:
    payload = message.SerializeToString()
    pieces = [payload[start:stop] for _, start, _, stop in fields(payload, 0, len(payload))]
    random.shuffle(pieces)
    shuffled = b"".join(pieces)

    heads = [read_span_head(payload), read_span_head(shuffled)]

    assert [head_of_view(payload)] * 2 == heads
    assert Span(payload).parent_is_remote is parent_is_remote(payload) is parent_is_remote(shuffled)


def test_heads_of_recorded_spans_equal_their_whole_views() -> None:
    payloads = [
        span[1]
        for body in recorded_requests()
        for spans_of_trace in split_request(body).traces.values()
        for span in spans_of_trace
    ]

    heads = [read_span_head(payload) for payload in payloads]

    assert len(payloads) > 100
    assert [head_of_view(payload) for payload in payloads] == heads


def test_a_parent_id_of_zeros_is_no_parent() -> None:
    payload = SpanMessage(
        trace_id=b"\x01" * 16,
        span_id=b"\x02" * 8,
        parent_span_id=bytes(8),
        name="n",
        kind=SpanMessage.SPAN_KIND_CLIENT,
        start_time_unix_nano=1,
        end_time_unix_nano=2,
    ).SerializeToString()

    assert (b"", 3, 1, 2) == read_span_head(payload)


def test_a_parent_written_empty_is_no_parent() -> None:
    payload = b"\x0a\x10" + b"\x01" * 16 + b"\x12\x08" + b"\x02" * 8 + b"\x22\x00" + b"\x30\x02"

    assert (b"", 2, 0, 0) == read_span_head(payload)


def test_a_span_cut_off_inside_the_usual_layout_is_walked() -> None:
    payload = SpanMessage(
        trace_id=b"\x01" * 16, span_id=b"\x02" * 8, parent_span_id=b"\x03" * 8, name="name"
    ).SerializeToString()

    assert (b"\x03" * 8, 0, 0, 0) == read_span_head(payload)
