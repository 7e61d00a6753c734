"""The agents of the demonstration: scripted, no model, traced with the stock OpenTelemetry SDK.

They emit what a real framework emits under the OpenTelemetry GenAI conventions: an `invoke_agent` span with
`chat` and `execute_tool` spans below it. Some of their runs go well, some go wrong in ways that agents do.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from processors.model.json_value import JsonObject, JsonValue

SERVICE_NAME = "tracegrade-demo"


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call of a script; `error` is the message of an exception that the tool raises."""

    tool: str
    arguments: Mapping[str, JsonValue]
    result: JsonValue = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedRun:
    """One run of an agent: what it is asked, what it does, what it answers. `about` is for people."""

    agent: str
    about: str
    prompt: str
    calls: Sequence[ScriptedCall]
    answer: str


def _temperature(city: str) -> ScriptedCall:
    return ScriptedCall("get_temperature", {"city": city}, {"temperature": 25.0, "unit": "fahrenheit"})


def _condition(city: str) -> ScriptedCall:
    return ScriptedCall("get_weather_condition", {"city": city}, {"condition": "rainy"})


def _humidity(city: str) -> ScriptedCall:
    return ScriptedCall("get_humidity", {"city": city}, {"humidity": 90})


def _forecast(city: str) -> ScriptedCall:
    return ScriptedCall("get_forecast", {"city": city}, {"tomorrow": "rain", "chance": 0.8})


def _lookup(order: str) -> ScriptedCall:
    return ScriptedCall(
        "lookup_order", {"order_id": order}, {"order_id": order, "total": 42.5, "status": "delivered"}
    )


def _refund(order: str) -> ScriptedCall:
    return ScriptedCall("refund_payment", {"order_id": order, "amount": 42.5}, {"refunded": True})


_WEATHER_ANSWER = "London: 25 degrees, rainy, 90% humidity; rain tomorrow."

RUNS: Sequence[ScriptedRun] = (
    ScriptedRun(
        "weather_agent",
        "does it right",
        "What is the forecast for London?",
        (_temperature("London"), _condition("London"), _humidity("London"), _forecast("London")),
        _WEATHER_ANSWER,
    ),
    ScriptedRun(
        "weather_agent",
        "forecasts before it has looked",
        "What is the forecast for London?",
        (_forecast("London"), _temperature("London"), _condition("London"), _humidity("London")),
        _WEATHER_ANSWER,
    ),
    ScriptedRun(
        "weather_agent",
        "asks about the wrong city and skips a step",
        "What is the forecast for London?",
        (_temperature("Kyoto"), _condition("London"), _forecast("London")),
        _WEATHER_ANSWER,
    ),
    ScriptedRun(
        "weather_agent",
        "a tool fails, the agent tries again",
        "What is the forecast for London?",
        (
            _temperature("London"),
            _condition("London"),
            ScriptedCall("get_humidity", {"city": "London"}, error="weather station timeout (503)"),
            _humidity("London"),
            _forecast("London"),
        ),
        _WEATHER_ANSWER,
    ),
    ScriptedRun(
        "support_agent",
        "looks the order up, then refunds it",
        "Please refund order A-17.",
        (_lookup("A-17"), _refund("A-17")),
        "Order A-17 is refunded: 42.50.",
    ),
    ScriptedRun(
        "support_agent",
        "refunds twice",
        "Please refund order A-18.",
        (_refund("A-18"), _lookup("A-18"), _refund("A-18")),
        "Order A-18 is refunded.",
    ),
    ScriptedRun(
        "support_agent",
        "turns in a circle",
        "Where is order A-19?",
        tuple(_lookup("A-19") for _ in range(6)),
        "I could not find out where it is.",
    ),
    ScriptedRun(
        "support_agent",
        "gives up on an error and claims success",
        "Please refund order A-20.",
        (
            _lookup("A-20"),
            ScriptedCall(
                "refund_payment", {"order_id": "A-20", "amount": 42.5}, error="payment gateway unavailable"
            ),
        ),
        "Order A-20 is refunded.",
    ),
)


def perform(run: ScriptedRun, tracer: Tracer) -> None:
    """Play one run, emitting its spans through `tracer` as one trace."""
    with tracer.start_as_current_span(
        f"invoke_agent {run.agent}",
        kind=SpanKind.INTERNAL,
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.agent,
            "gen_ai.input.messages": json.dumps([_message("user", run.prompt)]),
        },
    ) as agent:
        history: list[JsonValue] = [_message("user", run.prompt)]
        for index, call in enumerate(run.calls):
            call_id = f"call_{index + 1}"
            request: JsonObject = {
                "type": "tool_call",
                "id": call_id,
                "name": call.tool,
                "arguments": dict(call.arguments),
            }
            _chat(tracer, history, {"role": "assistant", "parts": [request], "finish_reason": "tool_call"})
            answer = _execute(tracer, call, call_id)
            history.append(
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": answer}]}
            )
        _chat(tracer, history, _message("assistant", run.answer))
        agent.set_attribute("gen_ai.output.messages", json.dumps([_message("assistant", run.answer)]))


def _message(role: str, text: str) -> JsonObject:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _chat(tracer: Tracer, history: list[JsonValue], answer: JsonObject) -> None:
    with tracer.start_as_current_span(
        "chat scripted",
        kind=SpanKind.CLIENT,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "scripted",
            "gen_ai.request.model": "scripted",
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps([answer]),
        },
    ):
        history.append(answer)


def _execute(tracer: Tracer, call: ScriptedCall, call_id: str) -> JsonValue:
    with tracer.start_as_current_span(
        f"execute_tool {call.tool}",
        kind=SpanKind.INTERNAL,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": json.dumps(dict(call.arguments)),
        },
    ) as span:
        if call.error is not None:
            span.set_attribute("error.type", "ToolError")
            span.set_status(Status(StatusCode.ERROR, call.error))
            return {"error": call.error}
        span.set_attribute("gen_ai.tool.call.result", json.dumps(call.result))
        return call.result
