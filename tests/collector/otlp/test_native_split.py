"""The reader in Rust splits what the Python code splits, validates what the protobuf runtime validates, and
leaves everything else to them."""

from collections.abc import Callable, Iterator
from typing import cast

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.otlp import count_records, join_spans, split_records, split_request
from processors.spans import NATIVE, Envelope, encode_field
from tests.support.corpus import recorded_requests
from tests.support.otlp_senders import logs_request
from tests.support.readers import reader

_IDS = encode_field(0x0A, b"t" * 16) + encode_field(0x12, b"s" * 8)
_TIME = b"\x09" + b"t" * 8


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    with reader("native"):
        yield


def _spans(body: bytes) -> object:
    assert NATIVE is not None
    split = NATIVE.split_spans(body, Envelope)
    return split and [(trace_id, [span[:2] for span in spans]) for trace_id, spans in split[0].items()]


def _records(body: bytes) -> object:
    assert NATIVE is not None
    records = NATIVE.split_records(body, Envelope)
    assert NATIVE.count_records(body) == (None if records is None else len(records))
    return records and [payload for _, payload, _ in records]


_READS: dict[type[Message], tuple[Callable[[bytes], object], bytes]] = {
    ExportTraceServiceRequest: (_spans, _IDS),
    ExportLogsServiceRequest: (_records, _TIME),
}


def _texts(
    message: Descriptor, above: tuple[FieldDescriptor, ...] = ()
) -> Iterator[tuple[FieldDescriptor, ...]]:
    """The way from `message` to each field that holds text, through each kind of message twice at most."""
    for field in message.fields:
        if field.type == field.TYPE_STRING:
            yield *above, field
        elif field.message_type and [way.message_type for way in above].count(field.message_type) < 2:
            yield from _texts(field.message_type, (*above, field))


def _request_with(way: tuple[FieldDescriptor, ...], text: bytes, item: bytes) -> bytes:
    body = text
    for field in reversed(way):
        body = encode_field(field.number << 3 | 2, body)
        if field.full_name.rpartition(".")[0].endswith((".Span", ".LogRecord")):
            body = item + body
    return body


@pytest.mark.parametrize("kind", _READS, ids=lambda kind: kind.DESCRIPTOR.name)
def test_every_text_that_the_runtime_validates_is_validated(kind: type[Message]) -> None:
    read, item = _READS[kind]
    ways = list(_texts(cast(Descriptor, kind.DESCRIPTOR)))

    assert len(ways) > 20
    for way in ways:
        assert read(_request_with(way, "ü".encode(), item)) is not None, [field.full_name for field in way]
        assert read(_request_with(way, b"\xff", item)) is None, [field.full_name for field in way]
        assert read(_request_with(way, b"\xed\xa0\x80", item)) is None, "a surrogate"


@pytest.mark.parametrize(
    "field",
    [
        b"\x00\x00",
        b"\x0b\x0c",
        b"\x0c",
        b"\x0e",
        b"\x7d\x00\x00\x00",
        b"\x79" + bytes(7),
        b"\x7a\x01",
        b"\x78\x80\x00",
        b"\x78" + b"\xff" * 9 + b"\x02",
        b"\x78" + b"\xff" * 10,
        b"\xfa\x80\x80\x80\x80\x01\x00",
        b"\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x78",
        b"\x4a\x03\x12\x04\x00",
        encode_field(0x0A, b"t" * 16),
        encode_field(0x12, b"s" * 8),
        b"\x08\x01",
        encode_field(0x22, b"p" * 7),
        encode_field(0x22, b"p" * 8) * 2,
    ],
    ids=[
        *("number 0", "group", "end of a group", "wire type", "cut number", "cut double", "cut bytes"),
        *("needless byte", "more than 64 bits", "endless", "tag too high", "length too high", "no value"),
        *(
            "beyond the value",
            "trace id twice",
            "span id twice",
            "trace id as number",
            "parent id",
            "parent twice",
        ),
    ],
)
def test_a_span_with_an_unusual_or_invalid_field_is_left_to_python(field: bytes) -> None:
    assert _spans(_around(_IDS)) is not None
    assert _spans(_around(_IDS + field)) is None


@pytest.mark.parametrize("ids", [b"", bytes(16), b"t" * 15])
def test_a_span_with_an_invalid_id_is_left_to_python(ids: bytes) -> None:
    assert _spans(_around(encode_field(0x0A, ids) + encode_field(0x12, b"s" * 8) + bytes(2))) is None


def _around(item: bytes) -> bytes:
    return encode_field(0x0A, encode_field(0x12, encode_field(0x12, item)))


@pytest.mark.parametrize(("depth", "is_read"), [(10, True), (200, False), (20_000, False)])
def test_values_nested_deeper_than_usual_are_left_to_python(depth: int, is_read: bool) -> None:
    value = b""
    for _ in range(depth):
        value = encode_field(0x2A, encode_field(0x0A, value))
    span = _IDS + encode_field(0x4A, encode_field(0x12, value))

    assert is_read is (_spans(_around(span)) is not None)


def test_what_is_mostly_needless_is_left_to_python() -> None:
    assert (
        _spans(encode_field(0x0A, encode_field(0x12, encode_field(0x12, _IDS) + b"\x1a\x00" * 900)))
        is not None
    )
    assert (
        _spans(encode_field(0x0A, encode_field(0x12, encode_field(0x12, _IDS) + b"\x1a\x00" * 1100))) is None
    )
    assert _spans(encode_field(0x0A, b"\x12\x00" * 1100)) is None


def test_recorded_requests_are_split_natively_as_by_python() -> None:
    for body in recorded_requests():
        split = split_request(body)
        assert _spans(body) is not None
        with reader("python"):
            again = split_request(body)
        assert split == again
        assert list(split.traces) == list(again.traces)
        joined = join_spans(span for spans in split.traces.values() for span in spans)
        with reader("python"):
            assert joined == join_spans(span for spans in split.traces.values() for span in spans)


def test_a_long_request_is_split_natively_too() -> None:
    spans = [
        Span(trace_id=bytes([number % 7 + 1]) * 16, span_id=b"s" * 8, name="x" * 300)
        for number in range(5000)
    ]
    scopes = [ScopeSpans(spans=spans[:4000]), ScopeSpans(spans=spans[4000:])]
    body = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=scopes)]).SerializeToString()

    split = split_request(body)

    assert _spans(body) is not None
    assert (5000, 0) == (split.accepted, split.rejected)
    with reader("python"):
        assert split_request(body) == split


def test_records_are_split_and_counted_natively_as_by_python() -> None:
    body = logs_request(3000, padding=500)

    records = split_records(body).records

    assert _records(body) == [payload for _, payload, _ in records]
    assert 3000 == len(count_records(body).records)
    with reader("python"):
        assert records == split_records(body).records
