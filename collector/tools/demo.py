"""The agents of the demonstration: scripted, no model, traced with the stock OpenTelemetry SDK.

They emit what a real framework emits under the OpenTelemetry GenAI conventions: an `invoke_agent` span with
`chat` and `execute_tool` spans below it, the content on these or in a log record of each `chat`. Some of
their runs are good, others fail in ways typical of agents.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import yaml
from opentelemetry._logs import Logger
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
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
    content_in: Literal["spans", "logs"] = "spans"


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


def perform(run: ScriptedRun, tracer: Tracer, logger: Logger | None = None) -> None:
    """Play one run, emitting its spans through `tracer` as one trace.

    `logger` gets the content where the run has it in log records; without one it is on the spans.
    """
    records = logger if run.content_in == "logs" else None
    with tracer.start_as_current_span(
        f"invoke_agent {run.agent}",
        kind=SpanKind.INTERNAL,
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": run.agent},
    ) as agent:
        history: list[JsonValue] = [_message("user", run.prompt)]
        if records is None:
            agent.set_attribute("gen_ai.input.messages", json.dumps(history))
        for index, call in enumerate(run.calls):
            call_id = f"call_{index + 1}"
            request: JsonObject = {
                "type": "tool_call",
                "id": call_id,
                "name": call.tool,
                "arguments": dict(call.arguments),
            }
            requesting: JsonObject = {"role": "assistant", "parts": [request], "finish_reason": "tool_call"}
            _chat(tracer, records, history, requesting)
            answer = _execute(tracer, call, call_id, shows_content=records is None)
            history.append(
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": answer}]}
            )
        _chat(tracer, records, history, _message("assistant", run.answer))
        if records is None:
            agent.set_attribute("gen_ai.output.messages", json.dumps([_message("assistant", run.answer)]))


def _message(role: str, text: str) -> JsonObject:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _chat(tracer: Tracer, records: Logger | None, history: list[JsonValue], answer: JsonObject) -> None:
    with tracer.start_as_current_span(
        "chat scripted",
        kind=SpanKind.CLIENT,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "scripted",
            "gen_ai.request.model": "scripted",
            "gen_ai.usage.input_tokens": len(json.dumps(history)) // _CHARACTERS_OF_A_TOKEN,
            "gen_ai.usage.output_tokens": len(json.dumps([answer])) // _CHARACTERS_OF_A_TOKEN,
        },
    ) as span:
        messages: dict[str, Any] = {
            "gen_ai.input.messages": [*history],
            "gen_ai.output.messages": [answer],
        }
        if records is None:
            span.set_attributes({key: json.dumps(listed) for key, listed in messages.items()})
        else:
            records.emit(event_name="gen_ai.client.inference.operation.details", attributes=messages)
        history.append(answer)


def _execute(tracer: Tracer, call: ScriptedCall, call_id: str, *, shows_content: bool) -> JsonValue:
    with tracer.start_as_current_span(
        f"execute_tool {call.tool}",
        kind=SpanKind.INTERNAL,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
        },
    ) as span:
        if shows_content:
            span.set_attribute("gen_ai.tool.call.arguments", json.dumps(dict(call.arguments)))
        if call.error is not None:
            span.set_attribute("error.type", "ToolError")
            span.set_status(Status(StatusCode.ERROR, call.error))
            return {"error": call.error}
        if shows_content:
            span.set_attribute("gen_ai.tool.call.result", json.dumps(call.result))
        return call.result


def send_scripted_runs(endpoint: str) -> None:
    """Play all scripted runs against the OTLP/gRPC listener at `host:port`, without TLS, until sent."""
    resource = Resource.create({"service.name": SERVICE_NAME})
    spans = TracerProvider(resource=resource, shutdown_on_exit=False)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    records = LoggerProvider(resource=resource, shutdown_on_exit=False)
    records.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(endpoint=endpoint, insecure=True))
    )
    for run in scripted_runs():
        perform(run, spans.get_tracer(SERVICE_NAME), records.get_logger(SERVICE_NAME))
    records.shutdown()
    spans.shutdown()
