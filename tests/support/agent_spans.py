"""Spans of agents, models and tools, written as their instrumentations would."""

from collections.abc import Mapping, Sequence

from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from processors.model import AgentRun, FinishReason, JsonValue
from processors.reconstruction import reconstruct
from processors.spans import Envelope, RawSpan

TRACE_ID = bytes(range(1, 17))
MILLISECOND = 1_000_000
REMOTE_PARENT = 0x300


def span_id(number: int) -> bytes:
    return number.to_bytes(8, "big")


def envelope(service: str = "demo", scope: str = "test") -> Envelope:
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value=service))])
    return Envelope(
        ResourceSpans(resource=resource).SerializeToString(),
        ScopeSpans(scope=InstrumentationScope(name=scope)).SerializeToString(),
    )


DEMO = envelope()


def any_value(value: JsonValue) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=key_values(value)))
    return AnyValue()


def key_values(attributes: Mapping[str, JsonValue]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def span(
    number: int,
    parent: int | None,
    name: str,
    attributes: Mapping[str, JsonValue] | None = None,
    *,
    at: tuple[int, int] = (0, 100),
    events: Sequence[tuple[str, Mapping[str, JsonValue]]] = (),
    status: tuple[int, str] = (0, ""),
    kind: Span.SpanKind.ValueType = Span.SPAN_KIND_INTERNAL,
    flags: int = 0,
    of: Envelope = DEMO,
    dropped: int = 0,
) -> RawSpan:
    """One span; `at` is its start and end in milliseconds."""
    payload = Span(
        trace_id=TRACE_ID,
        span_id=span_id(number),
        parent_span_id=b"" if parent is None else span_id(parent),
        name=name,
        kind=kind,
        flags=flags,
        start_time_unix_nano=at[0] * MILLISECOND,
        end_time_unix_nano=at[1] * MILLISECOND,
        attributes=key_values(attributes or {}),
        events=[Span.Event(name=event, attributes=key_values(fields)) for event, fields in events],
        dropped_attributes_count=dropped,
    )
    if status[0]:
        payload.status.code = Status.StatusCode.ValueType(status[0])
        payload.status.message = status[1]
    return span_id(number), payload.SerializeToString(), of


def agent(
    number: int, parent: int | None, name: str, at: tuple[int, int] = (0, 100), **more: JsonValue
) -> RawSpan:
    fields = {
        "gen_ai.operation.name": "invoke_agent",
        **({"gen_ai.agent.name": name} if name else {}),
        **more,
    }
    return span(number, parent, f"invoke_agent {name}", fields, at=at)


def model(number: int, parent: int | None, at: tuple[int, int], **more: JsonValue) -> RawSpan:
    return span(number, parent, "chat m", {"gen_ai.operation.name": "chat", **more}, at=at)


def tool(
    number: int,
    parent: int | None,
    name: str,
    at: tuple[int, int] = (10, 20),
    call_id: str = "",
    arguments: JsonValue = '{"city": "Oslo"}',
    result: JsonValue = '{"ok": true}',
    **more: JsonValue,
) -> RawSpan:
    fields: dict[str, JsonValue] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}
    if call_id:
        fields["gen_ai.tool.call.id"] = call_id
    if arguments is not None:
        fields["gen_ai.tool.call.arguments"] = arguments
    if result is not None:
        fields["gen_ai.tool.call.result"] = result
    return span(number, parent, f"execute_tool {name}", fields, at=at)


def runs_of(spans: Sequence[RawSpan], reason: FinishReason = FinishReason.ROOT) -> list[AgentRun]:
    return reconstruct(spans, trace_id=TRACE_ID, reason=reason)
