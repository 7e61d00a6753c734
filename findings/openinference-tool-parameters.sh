#!/usr/bin/env bash
# OpenInference's attribute `tool.parameters` is documented as the parameters that a tool was invoked with. Three of
# its own instrumentations, current versions, write three different things into it on the span of a call:
# openinference-instrumentation-agno 1.0.15 the arguments of this call, -openai-agents 2.6.0 the JSON schema of the
# tool's parameters, -smolagents 0.1.43 a table of name, type and description that is no JSON schema. A reader cannot
# take the attribute for arguments without knowing the instrumentation.
# Further: -openai-agents numbers the flattened messages of an agent without instructions from 1, so that a reader
# that counts llm.input_messages up from 0 reads none; -smolagents names each tool's span `SimpleTool` and puts
# the arguments in an object below `kwargs`, beside arguments of its own that no model gave.
#
# Observed: the keys below. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  openai==3.57.0 opentelemetry-sdk==1.45.2 agno==3.1.10 openinference-instrumentation-agno==1.0.15 \
  openai-agents==0.24.0 openinference-instrumentation-openai-agents==2.6.0 \
  smolagents==1.26.0 openinference-instrumentation-smolagents==0.1.43

cat > "$folder/scripted.py" <<'PYTHON'
"""A model that requests one call of `temperature` and then answers, over both of OpenAI's APIs; and the spans."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ARGUMENTS = json.dumps({"city": "Tokyo"})


def chat(request, done):
    message = {"role": "assistant", "content": "19.5 degrees." if done else None}
    if not done:
        function = {"name": "temperature", "arguments": ARGUMENTS}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "finish_reason": "stop" if done else "tool_calls", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def response(request, done):
    call = {"type": "function_call", "id": "f", "call_id": "call_1", "name": "temperature", "arguments": ARGUMENTS}
    text = {"type": "output_text", "text": "19.5 degrees.", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage["input_tokens_details"] = {"cached_tokens": 0}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    answer = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "usage": usage}
    answer.update(output=[message if done else call], parallel_tool_calls=True, tool_choice="auto", tools=[])
    answer["instructions"] = request.get("instructions")
    return answer


class Model(BaseHTTPRequestHandler):
    requests = 0

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        done, Model.requests = Model.requests > 0, Model.requests + 1
        body = json.dumps((response if self.path.endswith("/responses") else chat)(request, done)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(tracers)


def report():
    finished = spans.get_finished_spans()
    call = next(span for span in finished if span.attributes.get("openinference.span.kind") == "TOOL")
    print(
        call.name, "tool.parameters", sorted(json.loads(call.attributes["tool.parameters"])),
        "input.value", sorted(json.loads(call.attributes["input.value"])),
        "first message", min(
            key.split(".")[2] for span in finished for key in span.attributes if key.startswith("llm.input_messages.")
        ),
    )
PYTHON
cat > "$folder/agno_run.py" <<'PYTHON'
from scripted import report, tracers, url
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from openinference.instrumentation.agno import AgnoInstrumentor


def temperature(city: str) -> str:
    """The temperature of a city."""
    return "19.5 degrees"


AgnoInstrumentor().instrument(tracer_provider=tracers)
model = OpenAIChat(id="m", base_url=url, api_key="unused")
Agent(name="weather", model=model, tools=[temperature], telemetry=False).run("How warm is Tokyo?")
report()
PYTHON
cat > "$folder/openai_agents_run.py" <<'PYTHON'
import asyncio

from scripted import report, tracers, url
from agents import Agent, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor


@function_tool
def temperature(city: str) -> str:
    """The temperature of a city."""
    return "19.5 degrees"


OpenAIAgentsInstrumentor().instrument(tracer_provider=tracers)
model = OpenAIResponsesModel("m", AsyncOpenAI(base_url=url, api_key="unused"))
asyncio.run(Runner.run(Agent(name="weather", model=model, tools=[temperature]), "How warm is Tokyo?"))
report()
PYTHON
cat > "$folder/smolagents_run.py" <<'PYTHON'
from scripted import report, tracers, url
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def temperature(city: str) -> str:
    """The temperature of a city.

    Args:
        city: The city.
    """
    return "19.5 degrees"


SmolagentsInstrumentor().instrument(tracer_provider=tracers)
model = OpenAIServerModel("m", api_base=url, api_key="unused")
ToolCallingAgent(tools=[temperature], model=model, max_steps=1).run("How warm is Tokyo?")
report()
PYTHON

while IFS='|' read -r run expected; do
  observed="$(cd "$folder" && venv/bin/python "${run}_run.py" 2>/dev/null | tail -1)"
  echo "$run: $observed"
  [[ $observed == "$expected" ]] || {
    echo "This is not what was observed: $expected" >&2
    exit 1
  }
done <<'EXPECTED'
agno|temperature tool.parameters ['city'] input.value ['city'] first message 0
openai_agents|temperature tool.parameters ['additionalProperties', 'properties', 'required', 'title', 'type'] input.value ['city'] first message 1
smolagents|SimpleTool tool.parameters ['city'] input.value ['args', 'kwargs', 'sanitize_inputs_outputs'] first message 0
EXPECTED
