"""The spans that hostile traces are made of; values of any type may stand in any place."""

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from processors.model import JsonValue
from processors.spans import Envelope, RawSpan

TRACE_ID: Final = bytes(range(16))

SpanAttribute: TypeAlias = str | int | float | bytes
Milliseconds: TypeAlias = tuple[int, int]
"""Start and end."""

_MILLISECOND = 1_000_000
_START = 1_700_000_000_000_000_000


def agent_span(
    number: int,
    parent: int,
    name: SpanAttribute,
    at: Milliseconds,
    *,
    given: str | None = None,
    made: str | None = None,
    answer: str | None = None,
) -> RawSpan:
    attributes: dict[str, SpanAttribute] = {"gen_ai.operation.name": "invoke_agent"}
    if name != "":
        attributes["gen_ai.agent.name"] = name
    if given is not None:
        attributes["gen_ai.input.messages"] = given
    if made is not None:
        attributes["gen_ai.output.messages"] = made
    if answer is not None:
        attributes["gen_ai.input.messages"] = json.dumps(
            [message("user", {"type": "text", "content": "Which city is it?"})]
        )
        attributes["gen_ai.output.messages"] = json.dumps(
            [message("assistant", {"type": "text", "content": answer})]
        )
    return _span(number, parent, "invoke_agent", attributes, at)


def model_span(
    number: int,
    parent: int,
    at: Milliseconds,
    *,
    output: str = "",
    given: str = "",
    tools: str = "",
    of: Envelope | None = None,
) -> RawSpan:
    attributes: dict[str, SpanAttribute] = {"gen_ai.operation.name": "chat"}
    for key, value in (("output.messages", output), ("input.messages", given), ("tool.definitions", tools)):
        if value:
            attributes[f"gen_ai.{key}"] = value
    return _span(number, parent, "chat", attributes, at, of)


def tool_span(
    number: int,
    parent: int,
    name: SpanAttribute,
    at: Milliseconds,
    *,
    call_id: SpanAttribute = "",
    arguments: SpanAttribute | None = '{"city": "Oslo"}',
    result: SpanAttribute | None = '{"ok": true}',
    error: str = "",
    of: Envelope | None = None,
) -> RawSpan:
    attributes: dict[str, SpanAttribute] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if call_id != "":
        attributes["gen_ai.tool.call.id"] = call_id
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = arguments
    if result is not None:
        attributes["gen_ai.tool.call.result"] = result
    if error:
        attributes["error.type"] = error
    return _span(number, parent, "execute_tool", attributes, at, of)


def plain_span(
    number: int, parent: int, at: Milliseconds, attributes: Mapping[str, SpanAttribute] | None = None
) -> RawSpan:
    return _span(number, parent, "step", attributes or {"http.request.method": "GET"}, at)


def _span(
    number: int,
    parent: int,
    name: str,
    attributes: Mapping[str, SpanAttribute],
    at: Milliseconds,
    of: Envelope | None = None,
) -> RawSpan:
    span_id = number.to_bytes(8, "big")
    payload = Span(
        trace_id=TRACE_ID,
        span_id=span_id,
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=name,
        start_time_unix_nano=_START + at[0] * _MILLISECOND,
        end_time_unix_nano=_START + at[1] * _MILLISECOND,
        attributes=[KeyValue(key=key, value=_any_value(value)) for key, value in attributes.items()],
    )
    return span_id, payload.SerializeToString(), of or ENVELOPES[0]


def _any_value(value: SpanAttribute) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(double_value=value)


def message(role: str, part: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {"role": role, "parts": [part]}


def call_request(name: str, call_id: str) -> dict[str, JsonValue]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": {"city": "Oslo"}}


def call_result(call_id: str, result: JsonValue) -> dict[str, JsonValue]:
    return {"type": "tool_call_response", "id": call_id, "response": result}


def _envelope(scope: str) -> Envelope:
    service = KeyValue(key="service.name", value=AnyValue(string_value="hostile"))
    return Envelope(
        ResourceSpans(resource=Resource(attributes=[service])).SerializeToString(),
        ScopeSpans(scope=InstrumentationScope(name=scope)).SerializeToString(),
    )


ENVELOPES: Final = (_envelope("first"), _envelope("second"))
