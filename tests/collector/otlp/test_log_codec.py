"""Requests of log records as bytes: split, joined again, refused; what is true of spans is true of these."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from collector.errors import MalformedRequest
from collector.otlp import count_records, join_spans, logs_json_to_request, split_records
from processors.spans import encode_field
from tests.support.otlp_senders import logs_request

pytestmark = pytest.mark.usefixtures("each_reader")

_records = st.builds(
    LogRecord,
    time_unix_nano=st.integers(0, 2**64 - 1),
    observed_time_unix_nano=st.integers(1, 2**64 - 1),
    body=st.builds(AnyValue, string_value=st.text(max_size=20)),
    trace_id=st.sampled_from([b"", bytes(16), bytes([7]) * 16]),
    span_id=st.sampled_from([b"", bytes([7]) * 8]),
    event_name=st.sampled_from(["", "gen_ai.client.inference.operation.details"]),
)
_scopes = st.builds(
    ScopeLogs,
    scope=st.builds(InstrumentationScope, name=st.sampled_from(["", "app"])),
    log_records=st.lists(_records, max_size=4),
)
_resources = st.builds(
    ResourceLogs,
    resource=st.builds(
        Resource,
        attributes=st.just([KeyValue(key="service.name", value=AnyValue(string_value="shop"))]),
    ),
    scope_logs=st.lists(_scopes, max_size=3),
    schema_url=st.sampled_from(["", "https://opentelemetry.io/schemas/1.40.0"]),
)
_requests = st.builds(ExportLogsServiceRequest, resource_logs=st.lists(_resources, max_size=3))


def _payloads(request: ExportLogsServiceRequest) -> list[bytes]:
    return [
        record.SerializeToString()
        for resource_logs in request.resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
    ]


@given(_requests)
def test_records_are_split_in_order_and_keep_their_bytes(request: ExportLogsServiceRequest) -> None:
    split = split_records(request.SerializeToString())

    assert _payloads(request) == [payload for _, payload, _ in split.records]
    assert split.rejected == 0
    assert split.rejection() == ""


@given(_requests)
def test_joined_again_every_record_is_in_its_scope(request: ExportLogsServiceRequest) -> None:
    split = split_records(request.SerializeToString())

    again = ExportLogsServiceRequest.FromString(join_spans(split.records))

    expected = sorted(
        (resource_logs.schema_url, scope_logs.scope.name, record.SerializeToString())
        for resource_logs in request.resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
    )
    assert expected == sorted(
        (resource_logs.schema_url, scope_logs.scope.name, record.SerializeToString())
        for resource_logs in again.resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
    )


def test_unknown_fields_stay() -> None:
    record = LogRecord(time_unix_nano=1).SerializeToString() + encode_field(0x7A, b"of a later version")
    body = encode_field(0x0A, encode_field(0x12, encode_field(0x12, record)))

    assert [record] == [payload for _, payload, _ in split_records(body).records]
    assert body == join_spans(split_records(body).records)


def test_only_records_whose_id_is_not_hex_are_rejected() -> None:
    lines = [
        b'{"traceId":"AAAAAAAAAAAAAAAAAAAAAQ==","body":{"stringValue":"base64"}}',
        b'{"spanId":"not hex","body":{"stringValue":"no hex"}}',
        b'{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708"}',
        b'{"body":{"stringValue":"without ids"}}',
    ]
    document = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[' + b",".join(lines) + b"]}]}]}"

    split = split_records(logs_json_to_request(document))

    assert (2, 2) == (len(split.records), split.rejected)
    assert split.rejection() == (
        "2 of 4 log records rejected: in OTLP/JSON a trace id and a span id must be hex, not base64."
    )


@pytest.mark.parametrize("body", [b"\xff\xff", logs_request(3)[:-1], b"\x0a\x05\x12\x03\x12\x01\x0a"])
def test_other_bytes_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="not a valid ExportLogsServiceRequest"):
        split_records(body)


def test_a_flood_of_empty_records_is_refused() -> None:
    body = encode_field(0x0A, encode_field(0x12, b"\x12\x00" * 10_100))

    with pytest.raises(MalformedRequest, match="more than 10000 empty"):
        split_records(body)


def test_a_long_request_is_validated_in_parts() -> None:
    body = logs_request(4000, padding=500)
    broken = body.replace(b"line 3999", b"line \xff\xff\xff\xff")

    assert len(split_records(body).records) == 4000
    with pytest.raises(MalformedRequest):
        split_records(broken)


@given(_requests)
def test_a_counted_request_has_the_records_of_a_split_one(request: ExportLogsServiceRequest) -> None:
    body = request.SerializeToString()

    counted, split = count_records(body), split_records(body)

    assert len(split.records) == len(counted.records)
    assert list(split.records) == list(counted.records)
    assert list(split.records)[:1] == list(counted.records[:1])


@pytest.mark.parametrize("body", [b"\xff\xff", logs_request(3)[:-1]])
def test_other_bytes_are_not_counted(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="not a valid ExportLogsServiceRequest"):
        count_records(body)


@pytest.mark.parametrize(
    "body",
    [
        encode_field(0x0A, encode_field(0x12, b"\x12\x00" * 10_100)),
        encode_field(0x0A, b"\x12\x00" * 10_100),
        b"\x0a\x00" * 10_100,
    ],
)
def test_floods_of_empty_messages_are_not_counted(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="more than 10000 empty"):
        count_records(body)
