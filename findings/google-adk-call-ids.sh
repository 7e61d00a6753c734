#!/usr/bin/env bash
# google-adk 2.13.0: where the model gives its calls no id (Gemini's API gives none), the id of a call in
# gen_ai.output.messages (`temperature_0`, counted anew in every list) is never the gen_ai.tool.call.id of the
# span that executed it (`adk-<uuid>`), so that the conventions' own key does not join a request with its
# execution. A turn with two calls has a third execute_tool span, whose tool is named `(merged tools)`.
#
# Observed: two requested calls, three execute_tool spans, no id in common. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  google-adk==2.13.0 google-genai==2.34.0 opentelemetry-sdk==1.44.0

cat > "$folder/run.py" <<'PYTHON'
"""One run of an agent with a scripted model that requests two calls; prints the ids of calls by place."""

import asyncio
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        request = self.rfile.read(int(self.headers["content-length"])).decode()
        calls = [{"functionCall": {"name": "temperature", "args": {"city": city}}} for city in ("Tokyo", "Kyoto")]
        parts = [{"text": "Both have 19.5 degrees."}] if "functionResponse" in request else calls
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        body = json.dumps({"candidates": [candidate]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def temperature(city: str) -> str:
    """The temperature of a city."""
    return "19.5 degrees"


async def run():
    agent = LlmAgent(name="weather", model="gemini-2.5-flash", instruction="Answer.", tools=[temperature])
    runner = InMemoryRunner(agent=agent, app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="user")
    question = types.Content(role="user", parts=[types.Part(text="How warm are Tokyo and Kyoto?")])
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=question):
        pass


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(GOOGLE_API_KEY="unused", GOOGLE_GEMINI_BASE_URL=f"http://127.0.0.1:{server.server_port}")
spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(tracers)
asyncio.run(run())

attributes = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
requested = {
    part["id"]
    for span in attributes
    for message in json.loads(span.get("gen_ai.output.messages", "[]"))
    for part in message["parts"]
    if part["type"] == "tool_call"
}
executed = {
    span["gen_ai.tool.call.id"]: span["gen_ai.tool.name"]
    for span in attributes
    if span.get("gen_ai.operation.name") == "execute_tool"
}
print("requested", sorted(requested), "executed", sorted(executed.values()), "in common", len(requested & executed.keys()))
PYTHON

export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT
observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null | tail -1)"
echo "$observed"
[[ $observed == "requested ['temperature_0', 'temperature_1'] executed ['(merged tools)', 'temperature', 'temperature'] in common 0" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
