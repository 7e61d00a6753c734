"""The attributes of the span that carries a run, as `when` reads them."""

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from processors.model.finish_reason import FinishReason
from processors.reconstruction.passes import reconstruct
from processors.shapes.attribute_reading import span_attributes
from processors.spans import Envelope, Span

_SPAN = trace_pb2.Span(
    trace_id=bytes(range(16)),
    span_id=bytes(range(1, 9)),
    name="invoke_agent weather",
    start_time_unix_nano=1,
    end_time_unix_nano=2,
    attributes=[
        KeyValue(key="gen_ai.operation.name", value=AnyValue(string_value="invoke_agent")),
        KeyValue(key="gen_ai.agent.name", value=AnyValue(string_value="weather")),
        KeyValue(key="user.tier", value=AnyValue(string_value="gold")),
        KeyValue(key="user.age", value=AnyValue(int_value=7)),
        KeyValue(key="blob", value=AnyValue(bytes_value=b"\x01\xff")),
    ],
)


def test_attributes_are_json_values_by_name() -> None:
    attributes = span_attributes(Span(_SPAN.SerializeToString()))

    assert {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "weather",
        "user.tier": "gold",
        "user.age": 7,
        "blob": "01ff",
    } == attributes


def test_a_run_has_those_of_the_span_that_carries_it() -> None:
    (run,) = reconstruct(
        [(_SPAN.span_id, _SPAN.SerializeToString(), Envelope(b"", b""))],
        trace_id=_SPAN.trace_id,
        reason=FinishReason.ROOT,
    )

    assert "gold" == run.span_attributes["user.tier"]
