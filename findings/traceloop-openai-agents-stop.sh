#!/usr/bin/env bash
# opentelemetry-instrumentation-openai-agents (OpenLLMetry) 0.62.4 with openai-agents 0.24.0: a turn that calls a local
# shell ends with gen_ai.response.finish_reasons `stop` and has no gen_ai.output.messages; the command has no span, and
# the next turn's gen_ai.input.messages leave call and result out. A call of a hosted MCP server that failed is left
# out next to the answer in the same way. By its telemetry neither run called anything.
#
# Observed: for both, no part but text in any message, no span of a call, reasons stop. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  openai-agents==0.24.0 openai==3.57.0 opentelemetry-instrumentation-openai-agents==0.62.4 opentelemetry-sdk==1.45.2

cat > "$folder/run.py" <<'PYTHON'
"""A run with a local shell and one with a hosted MCP server, by a scripted model; prints what spans show of calls."""

import asyncio
import json

from agents import Agent, HostedMCPTool, LocalShellTool, Model, ModelResponse, Runner, Usage, set_trace_processors
from agents.tracing import response_span
from openai.types.responses import Response
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ANSWER = {
    "type": "message", "id": "m1", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}
SHELL = {
    "type": "local_shell_call", "id": "i1", "call_id": "c1", "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
HOSTED = {
    "type": "mcp_call", "id": "i2", "name": "read", "server_label": "wiki", "arguments": "{}", "output": None, "error": {"type": "http_error", "code": 404, "message": "no"},
}
SERVER = {"type": "mcp", "server_label": "wiki", "server_url": "https://example.com", "require_approval": "never"}


class Scripted(Model):
    """Answers turn by turn, and reports each as the SDK's own model for the Responses API does."""

    def __init__(self, *turns):
        self.turns = iter(turns)

    async def get_response(self, system_instructions, input, *args, **kwargs):
        fields = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
        fields |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        with response_span() as span:
            response = Response.model_validate({**fields, "output": next(self.turns)})
            span.span_data.response, span.span_data.input = response, input
        return ModelResponse(output=response.output, usage=Usage(), response_id=None)

    async def stream_response(self, *args, **kwargs):
        raise NotImplementedError
        yield


spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
set_trace_processors([])
OpenAIAgentsInstrumentor().instrument(tracer_provider=tracers)
for tool, turns in (
    (LocalShellTool(executor=lambda request: "denied"), ([SHELL], [ANSWER])),
    (HostedMCPTool(tool_config=SERVER), ([HOSTED, ANSWER],)),
):
    spans.clear()
    asyncio.run(Runner.run(Agent(name="a", model=Scripted(*turns), tools=[tool]), "Do it."))
    finished = [(span.name, dict(span.attributes or {})) for span in spans.get_finished_spans()]
    reported = [
        part["type"]
        for _, span in finished
        for key in ("gen_ai.input.messages", "gen_ai.output.messages")
        for message in json.loads(span.get(key, "[]"))
        for part in message["parts"]
    ]
    reasons = [list(span["gen_ai.response.finish_reasons"]) for _, span in finished if "gen_ai.response.finish_reasons" in span]
    tools = sum(span.get("traceloop.span.kind") == "tool" for _, span in finished)
    print(type(tool).__name__, "parts", sorted(set(reported)), "spans of calls", tools, "reasons", reasons)
PYTHON

export OPENAI_API_KEY=unused
observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null)"
echo "$observed"
[[ $observed == "LocalShellTool parts ['text'] spans of calls 0 reasons [['stop'], ['stop']]
HostedMCPTool parts ['text'] spans of calls 0 reasons [['stop']]" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
