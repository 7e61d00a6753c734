from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs

from processors.records import RecordHead, read_record_head
from processors.spans import Envelope, read_varint, skip_field

TRACE_ID, SPAN_ID = b"t" * 16, b"s" * 8
DETAILS = "gen_ai.client.inference.operation.details"


def scope(name: str = "opentelemetry.instrumentation.genai.openai") -> Envelope:
    return Envelope(b"", ScopeLogs(scope=InstrumentationScope(name=name)).SerializeToString())


def text(value: str) -> AnyValue:
    return AnyValue(string_value=value)


def named(name: str, key: str = "", body: AnyValue | None = None) -> LogRecord:
    record = LogRecord(trace_id=TRACE_ID, span_id=SPAN_ID, observed_time_unix_nano=1, body=body)
    if key:
        record.attributes.append(KeyValue(key=key, value=text(name)))
    else:
        record.event_name = name
    return record


def moved(*keys: str) -> AnyValue:
    return AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key=key, value=AnyValue()) for key in keys]))


@pytest.mark.parametrize("key", ["", "event.name", "event_name"])
def test_a_name_of_the_conventions_counts_in_each_of_its_places(key: str) -> None:
    head = read_record_head(named("gen_ai.choice", key).SerializeToString(), scope())

    assert head == RecordHead(TRACE_ID, SPAN_ID, "gen_ai.choice")


def test_the_attribute_takes_precedence_over_the_field() -> None:
    record = named("gen_ai.choice", "event.name")
    record.event_name = "event otel/src/tool_result.rs:54"

    head = read_record_head(record.SerializeToString(), scope())

    assert head is not None
    assert head.name == "gen_ai.choice"


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(body=text("HTTP Request: POST"), trace_id=TRACE_ID, span_id=SPAN_ID),
        LogRecord(body=text("event.name gen_ai.choice"), trace_id=TRACE_ID, span_id=SPAN_ID),
        LogRecord(body=text("ERROR"), severity_text="ERROR"),
        LogRecord(),
        named("gen_ai.evaluation.result"),
        named("device.app.lifecycle", "event.name"),
        named("", "event.name"),
    ],
)
def test_other_records_are_none_of_an_agents(record: LogRecord) -> None:
    assert read_record_head(record.SerializeToString(), scope()) is None


def test_short_names_count_in_the_scope_of_their_emitter_alone() -> None:
    record = named("tool_result", "event.name").SerializeToString()

    assert read_record_head(record, scope("com.anthropic.claude_code.events")) is not None
    assert read_record_head(record, scope("com.example.pipeline")) is None


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("strands.telemetry.tracer", moved("input", "output"), True),
        ("strands.telemetry.tracer", moved("output"), True),
        ("strands.telemetry.tracer", moved("message"), False),
        ("strands.telemetry.tracer", text("input"), False),
        ("another.scope", moved("input", "output"), False),
    ],
)
def test_content_that_adot_moved_is_named_after_the_scope(name: str, body: AnyValue, expected: bool) -> None:
    record = named(name, "event.name", body=body).SerializeToString()

    assert (read_record_head(record, scope("strands.telemetry.tracer")) is not None) is expected


@pytest.mark.parametrize("trace_id", [b"", bytes(16), b"short"])
@pytest.mark.parametrize("span_id", [b"", bytes(8), b"short"])
def test_invalid_ids_are_no_ids(trace_id: bytes, span_id: bytes) -> None:
    record = LogRecord(trace_id=trace_id, span_id=span_id, event_name=DETAILS)

    assert read_record_head(record.SerializeToString(), scope()) == RecordHead(b"", b"", DETAILS)


records = st.builds(
    LogRecord,
    time_unix_nano=st.integers(0, 2**64 - 1),
    observed_time_unix_nano=st.sampled_from([0, 1, int.from_bytes(b"gen_ai.c")]),
    severity_text=st.text(max_size=3),
    body=st.builds(AnyValue, string_value=st.text()),
    attributes=st.lists(
        st.builds(
            KeyValue,
            key=st.sampled_from(["event.name", "event_name", "a"]),
            value=st.sampled_from([text(DETAILS), text("other"), AnyValue(int_value=1)]),
        ),
        max_size=2,
    ),
    trace_id=st.just(TRACE_ID),
    span_id=st.just(SPAN_ID),
    event_name=st.sampled_from(["", "gen_ai.choice", "other"]),
)


def fields(payload: bytes) -> list[tuple[int, bytes]]:
    """The tags and the bytes of the fields of a message."""
    parts: list[tuple[int, bytes]] = []
    position = 0
    while position < len(payload):
        tag, value = read_varint(payload, position)
        stop = skip_field(payload, value, tag & 7)
        parts.append((tag, payload[position:stop]))
        position = stop
    return parts


@given(records, st.randoms(use_true_random=False))
def test_the_head_does_not_depend_on_the_order_of_fields(record: LogRecord, random: Random) -> None:
    payload = record.SerializeToString()
    # Attributes with one key keep their order: the last of them counts.
    others = [field for tag, field in fields(payload) if tag != 0x32]
    attributes = [field for tag, field in fields(payload) if tag == 0x32]
    random.shuffle(others)
    place = random.randint(0, len(others))
    shuffled = b"".join([*others[:place], *attributes, *others[place:]])
    values = {attribute.key: attribute.value.string_value for attribute in record.attributes}
    name = values.get("event.name") or values.get("event_name") or record.event_name

    heads = [read_record_head(payload, scope()), read_record_head(shuffled, scope())]

    expected = RecordHead(TRACE_ID, SPAN_ID, name) if name in (DETAILS, "gen_ai.choice") else None
    assert heads == [expected, expected]
