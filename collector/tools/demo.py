"""The agents of the demonstration: scripted, no model, traced with the stock OpenTelemetry SDK.

They emit what a real framework emits under the OpenTelemetry GenAI conventions: an `invoke_agent` span with
`chat` and `execute_tool` spans below it. Some of their runs are good, others fail in ways typical of agents.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import yaml
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from collector.criteria import default_file
from processors.model import JsonObject, JsonValue

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
    """One run of an agent: the prompt, the calls, the answer. `about` describes it to people."""

    agent: str
    about: str
    prompt: str
    calls: Sequence[ScriptedCall]
    answer: str


@cache
def scripted_runs() -> Sequence[ScriptedRun]:
    """The runs in `config/demo_agents.yaml`."""
    scripts = yaml.safe_load(default_file("demo_agents.yaml").read_text(encoding="utf-8"))
    return [
        ScriptedRun(**{**script, "calls": [ScriptedCall(**call) for call in script["calls"]]})
        for script in scripts
    ]


_CHARACTERS_OF_A_TOKEN = 4
"""As scripted models count."""


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
            "gen_ai.usage.input_tokens": len(json.dumps(history)) // _CHARACTERS_OF_A_TOKEN,
            "gen_ai.usage.output_tokens": len(json.dumps([answer])) // _CHARACTERS_OF_A_TOKEN,
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


def send_scripted_runs(endpoint: str) -> None:
    """Play all scripted runs against the OTLP/gRPC listener at `host:port`, without TLS, until sent."""
    provider = TracerProvider(
        resource=Resource.create({"service.name": SERVICE_NAME}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    tracer = provider.get_tracer(SERVICE_NAME)
    for run in scripted_runs():
        perform(run, tracer)
    provider.shutdown()
