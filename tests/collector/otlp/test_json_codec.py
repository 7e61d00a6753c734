import base64
import json
import math
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from collector.errors import MalformedRequest
from collector.otlp import json_to_request, request_to_json, split_request
from tests.support.corpus import recorded_requests

TRACE_ID = "5B8EFFF798038103D269B633813FC60C"
SPAN_ID = "EEE19B7EC3C1B174"


def _span_json(**fields: object) -> bytes:
    span = {"traceId": TRACE_ID, "spanId": SPAN_ID, "name": "s", **fields}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def _span(body: bytes) -> Span:
    return (
        ExportTraceServiceRequest.FromString(json_to_request(body)).resource_spans[0].scope_spans[0].spans[0]
    )


def _request(span: Span) -> bytes:
    scope = ScopeSpans(spans=[span])
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[scope])]).SerializeToString()


def test_a_span_with_every_kind_of_field_is_read() -> None:
    span = _span(
        _span_json(
            parentSpanId="eee19b7ec3c1b173",
            traceState="a=b",
            flags=257,
            kind=2,
            startTimeUnixNano="1544712660000000000",
            endTimeUnixNano=1544712661000000000,
            droppedAttributesCount=3,
            attributes=[
                {"key": "text", "value": {"stringValue": "ü"}},
                {"key": "flag", "value": {"boolValue": False}},
                {"key": "int", "value": {"intValue": "-9223372036854775808"}},
                {"key": "int-as-number", "value": {"intValue": 7}},
                {"key": "double", "value": {"doubleValue": 1.5}},
                {"key": "list", "value": {"arrayValue": {"values": [{"intValue": "1"}, {}]}}},
                {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {}}]}}},
                {"key": "bytes", "value": {"bytesValue": "AAH/"}},
                {"key": "nothing"},
            ],
            events=[{"timeUnixNano": "5", "name": "e", "attributes": []}],
            links=[{"traceId": TRACE_ID, "spanId": SPAN_ID, "flags": 1}],
            status={"message": "bad", "code": 2},
        )
    )

    expected = Span(
        trace_id=bytes.fromhex(TRACE_ID),
        span_id=bytes.fromhex(SPAN_ID),
        parent_span_id=bytes.fromhex("eee19b7ec3c1b173"),
        trace_state="a=b",
        name="s",
        flags=257,
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=1544712660000000000,
        end_time_unix_nano=1544712661000000000,
        dropped_attributes_count=3,
        attributes=[
            KeyValue(key="text", value=AnyValue(string_value="ü")),
            KeyValue(key="flag", value=AnyValue(bool_value=False)),
            KeyValue(key="int", value=AnyValue(int_value=-(1 << 63))),
            KeyValue(key="int-as-number", value=AnyValue(int_value=7)),
            KeyValue(key="double", value=AnyValue(double_value=1.5)),
            KeyValue(
                key="list", value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue()]))
            ),
            KeyValue(
                key="map",
                value=AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=AnyValue())])),
            ),
            KeyValue(key="bytes", value=AnyValue(bytes_value=b"\x00\x01\xff")),
            KeyValue(key="nothing"),
        ],
        events=[Span.Event(time_unix_nano=5, name="e")],
        links=[Span.Link(trace_id=bytes.fromhex(TRACE_ID), span_id=bytes.fromhex(SPAN_ID), flags=1)],
        status=Status(message="bad", code=Status.STATUS_CODE_ERROR),
    )
    assert expected == span


def test_unknown_keys_and_nulls_are_left_out() -> None:
    body = json.dumps(
        {
            "newField": {"a": [1]},
            "resourceSpans": [
                {"resource": None, "scopeSpans": [{"spans": [{"name": "s", "kind": None, "shiny": 1}]}]}
            ],
        }
    ).encode()

    assert Span(name="s") == _span(body)


def test_keys_in_snake_case_are_taken_as_well() -> None:
    body = b'{"resource_spans":[{"scope_spans":[{"spans":[{"span_id":"eee19b7ec3c1b174"}]}]}]}'

    assert Span(span_id=bytes.fromhex(SPAN_ID)) == _span(body)


def test_of_equal_keys_the_last_counts() -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a","name":"b"}]}]}]}'

    assert Span(name="b") == _span(body)


def test_defaults_are_not_written_where_absence_means_the_same() -> None:
    body = _span_json(name="", kind=0, flags=0, startTimeUnixNano="0", parentSpanId="")

    expected = _request(Span(trace_id=bytes.fromhex(TRACE_ID), span_id=bytes.fromhex(SPAN_ID)))
    assert expected == json_to_request(body)


@pytest.mark.parametrize("body", [b"{}", b'{"resourceSpans":[]}', b'{"resourceSpans":null}', b" {} \n"])
def test_an_empty_request_is_valid(body: bytes) -> None:
    assert json_to_request(body) == b""


@pytest.mark.parametrize(
    "invalid",
    [
        {"traceId": base64.b64encode(bytes.fromhex(TRACE_ID)).decode()},
        {"traceId": TRACE_ID[:-1]},
        {"traceId": TRACE_ID[:-2]},
        {"traceId": "not hex at all!!"},
        {"traceId": "0" * 32},
        {"traceId": ""},
        {"traceId": None},
        {"traceId": 5},
        {"traceId": ["5B"]},
        {"spanId": "zz"},
        {"spanId": "0" * 16},
        {"spanId": "é" * 16},
        {"parentSpanId": "zz"},
        {"parentSpanId": 5},
        {"parentSpanId": SPAN_ID[:-2]},
    ],
)
def test_an_invalid_id_costs_only_its_span(invalid: dict[str, object]) -> None:
    good = json.loads(_span_json())
    bad = json.loads(_span_json(**invalid))
    body = json.dumps({"resourceSpans": good["resourceSpans"] + bad["resourceSpans"]}).encode()

    split = split_request(json_to_request(body))

    assert (1, 1) == (split.accepted, split.rejected)
    assert [bytes.fromhex(TRACE_ID)] == list(split.traces)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": 5}, "name: expected a text, found a number"),
        (
            {"kind": "SPAN_KIND_SERVER"},
            "kind: expected an integer (names of enum values are not allowed), found a text",
        ),
        ({"kind": "2"}, "kind: expected an integer (names of enum values are not allowed), found a text"),
        ({"kind": True}, "kind: expected an integer (names of enum values are not allowed), found true"),
        ({"kind": 1.5}, "kind: expected an integer (names of enum values are not allowed), found a number"),
        ({"kind": 2**31}, "kind: expected an integer from -2147483648 to 2147483647, found a number"),
        ({"flags": -1}, "flags: expected an integer from 0 to 4294967295, found a number"),
        (
            {"startTimeUnixNano": str(2**64)},
            "startTimeUnixNano: expected an integer from 0 to 18446744073709551615, found a text",
        ),
        ({"startTimeUnixNano": "soon"}, "startTimeUnixNano: expected an integer, found a text"),
        ({"attributes": {}}, "attributes: expected an array, found an object"),
        ({"attributes": [None]}, "attributes[0]: expected an object, found null"),
        (
            {"attributes": [{"key": "a"}, {"key": "b", "value": {"intValue": int("9" * 40)}}]},
            "attributes[1].value.intValue: expected an integer from -9223372036854775808 to "
            "9223372036854775807, found a number",
        ),
        (
            {"attributes": [{"key": "a", "value": {"boolValue": "true"}}]},
            "attributes[0].value.boolValue: expected true or false, found a text",
        ),
        (
            {"attributes": [{"key": "a", "value": {"doubleValue": "1_0"}}]},
            "attributes[0].value.doubleValue: expected a number, found a text",
        ),
        (
            {"attributes": [{"key": "a", "value": {"bytesValue": "%%"}}]},
            "attributes[0].value.bytesValue: expected a base64 text, found a text",
        ),
        ({"status": []}, "status: expected an object, found an array"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_its_place(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        json_to_request(_span_json(**fields))

    where = "The request is not valid OTLP/JSON: resourceSpans[0].scopeSpans[0].spans[0]."
    assert f"{where}{problem}." == str(refusal.value)


@pytest.mark.parametrize("body", [b"[]", b"null", b"5", b'"x"'])
def test_a_document_that_is_no_object_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match=r"^The request is not valid OTLP/JSON: expected an object"):
        json_to_request(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"{'a': 1}",
        b'{"a": NaN}',
        b'{"a": 1e400}',
        b'{"a": "\xed\xa0\x80"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_what_is_not_json_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match=r"^The request is not valid JSON: "):
        json_to_request(body)


@pytest.mark.parametrize("body", [b'{"resourceLogs": []}', b'{"resource_span": []}', b'{"batches": null}'])
def test_an_object_with_no_key_of_the_protocol_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="expected the key resourceSpans, found others"):
        json_to_request(body)


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\uDE00\ud83d\ude00\uD83D\n", "\ufffd\U0001f600\ufffd\n"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud83d \\\ud83d", "\\ud83d \\\ufffd"),
    ],
)
def test_half_a_surrogate_pair_costs_one_character(escaped: str, text: str) -> None:
    body = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"NAME"}]}]}]}'.replace("NAME", escaped)

    request = ExportTraceServiceRequest.FromString(json_to_request(body.encode()))

    assert text == request.resource_spans[0].scope_spans[0].spans[0].name


def test_values_nested_too_deep_are_malformed() -> None:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(120):
        value = {"arrayValue": {"values": [value]}}

    with pytest.raises(
        MalformedRequest, match="expected at most 100 objects within each other, found an object"
    ):
        json_to_request(_span_json(attributes=[{"key": "a", "value": value}]))


def test_the_deepest_request_that_protobuf_takes_becomes_json_and_back() -> None:
    value = AnyValue(string_value="x")
    for _ in range(46):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    body = _request(Span(attributes=[KeyValue(key="a", value=value)]))

    assert body == json_to_request(request_to_json(body))


@pytest.mark.parametrize("text", ["AAH_", "AAH/", "AAE", "AAE="])
def test_base64_is_taken_in_either_alphabet_padded_or_not(text: str) -> None:
    span = _span(_span_json(attributes=[{"key": "a", "value": {"bytesValue": text}}]))

    assert span.attributes[0].value.bytes_value in (b"\x00\x01\xff", b"\x00\x01")


@pytest.mark.parametrize(
    ("written", "value"),
    [("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf), ("1e3", 1000.0)],
)
def test_doubles_that_json_has_no_number_for_are_texts(written: str, value: float) -> None:
    span = _span(_span_json(attributes=[{"key": "a", "value": {"doubleValue": written}}]))

    assert repr(value) == repr(span.attributes[0].value.double_value)


def test_infinite_doubles_are_written_as_texts() -> None:
    values = [AnyValue(double_value=value) for value in (math.nan, math.inf, -math.inf, -0.0)]
    body = _request(Span(attributes=[KeyValue(key="a", value=value) for value in values]))

    text = request_to_json(body)

    assert [b'"NaN"', b'"Infinity"', b'"-Infinity"', b"-0.0"] == [
        part.split(b"}")[0] for part in text.split(b'"doubleValue":')[1:]
    ]
    assert body == json_to_request(text)


def test_json_is_written_on_one_line_with_hex_ids_enum_numbers_and_long_integers_as_texts() -> None:
    span = Span(
        trace_id=bytes.fromhex(TRACE_ID),
        span_id=bytes.fromhex(SPAN_ID),
        name="line\nbreak",
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=1 << 63,
        flags=1,
        attributes=[KeyValue(key="i", value=AnyValue(int_value=0))],
    )

    text = request_to_json(_request(span))

    assert text == (
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c",'
        b'"spanId":"eee19b7ec3c1b174","name":"line\\nbreak","kind":3,"startTimeUnixNano":"9223372036854775808",'
        b'"attributes":[{"key":"i","value":{"intValue":"0"}}],"flags":1}]}]}]}'
    )


def test_bytes_that_are_no_request_are_malformed() -> None:
    with pytest.raises(MalformedRequest):
        request_to_json(b"\xff\xff")


def test_every_recorded_request_survives_the_way_to_json_and_back() -> None:
    bodies = recorded_requests()

    assert bodies
    for body in bodies:
        request = ExportTraceServiceRequest.FromString(body)
        text = request_to_json(body)
        assert request == ExportTraceServiceRequest.FromString(json_to_request(text))
        assert _canonical(request) == json.loads(text)


def _canonical(request: ExportTraceServiceRequest) -> object:
    """What the protobuf library writes, with the ids in hex."""
    return _with_hex_ids(json_format.MessageToDict(request, use_integers_for_enums=True))


def _with_hex_ids(value: object) -> object:
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex()
            if key in ("traceId", "spanId", "parentSpanId")
            else _with_hex_ids(item)
            for key, item in value.items()
        }
    return value


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_int64 = st.integers(-(1 << 63), (1 << 63) - 1)
_uint64 = st.integers(0, (1 << 64) - 1)
_uint32 = st.integers(0, (1 << 32) - 1)

_any_values: st.SearchStrategy[AnyValue] = st.recursive(
    st.one_of(
        st.builds(AnyValue),
        st.builds(AnyValue, string_value=_texts),
        st.builds(AnyValue, bool_value=st.booleans()),
        st.builds(AnyValue, int_value=_int64),
        st.builds(AnyValue, double_value=st.floats(allow_nan=False)),
        st.builds(AnyValue, bytes_value=st.binary(max_size=8)),
        st.builds(AnyValue, string_value_strindex=st.integers(-(1 << 31), (1 << 31) - 1)),
    ),
    lambda values: st.one_of(
        st.builds(AnyValue, array_value=st.builds(ArrayValue, values=st.lists(values, max_size=3))),
        st.builds(
            AnyValue,
            kvlist_value=st.builds(
                KeyValueList, values=st.lists(st.builds(KeyValue, key=_texts, value=values), max_size=3)
            ),
        ),
    ),
    max_leaves=6,
)
_attributes = st.lists(st.builds(KeyValue, key=_texts, value=_any_values), max_size=3)
_spans = st.builds(
    Span,
    trace_id=st.binary(max_size=16),
    span_id=st.binary(max_size=8),
    parent_span_id=st.binary(max_size=8),
    trace_state=_texts,
    name=_texts,
    kind=st.integers(-(1 << 31), (1 << 31) - 1),
    flags=_uint32,
    start_time_unix_nano=_uint64,
    end_time_unix_nano=_uint64,
    attributes=_attributes,
    dropped_attributes_count=_uint32,
    events=st.lists(
        st.builds(Span.Event, time_unix_nano=_uint64, name=_texts, attributes=_attributes), max_size=2
    ),
    links=st.lists(
        st.builds(Span.Link, trace_id=st.binary(max_size=16), flags=_uint32, attributes=_attributes),
        max_size=2,
    ),
    status=st.none() | st.builds(Status, message=_texts, code=st.integers(0, 5)),
)


@settings(max_examples=200)
@given(_spans)
def test_any_span_survives_the_way_to_json_and_back(span: Span) -> None:
    body = _request(span)

    assert body == json_to_request(request_to_json(body))


_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts,
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "resourceSpans",
                    "scopeSpans",
                    "spans",
                    "traceId",
                    "attributes",
                    "key",
                    "value",
                    "intValue",
                    "x",
                ]
            ),
            values,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=40), _json_values.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_become_a_valid_request_or_are_refused(body: bytes) -> None:
    try:
        request = json_to_request(body)
    except MalformedRequest:
        return
    ExportTraceServiceRequest.FromString(request)
