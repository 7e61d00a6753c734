#!/usr/bin/env bash
# opentelemetry-instrumentation-genai-openai 1.3b0 with openai 3.57.0, Responses API, content on spans: a turn that
# calls a shell has no gen_ai.output.messages, and the next turn's gen_ai.input.messages leave out the call and its
# result, although a custom tool in the same place is captured whole. The turn looks like one that was not captured,
# and the next one like the same question asked again; nothing in the trace says that a command was executed.
#
# Observed: a custom tool's call and result in the messages; of the shell's neither. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  openai==3.57.0 opentelemetry-instrumentation-genai-openai==1.3b0 opentelemetry-sdk==1.45.2

cat > "$folder/run.py" <<'PYTHON'
"""Two requests around one call, for two kinds of tools; prints the types of the parts that the spans have."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from openai import OpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

CALLS = {
    "custom_tool": {"type": "custom_tool_call", "id": "i1", "call_id": "c1", "name": "run", "input": "ls"},
    "shell": {"type": "shell_call", "id": "i1", "call_id": "c1", "status": "completed", "action": {"commands": ["ls"]}},
}
RESULTS = {
    "custom_tool": {"type": "custom_tool_call_output", "call_id": "c1", "output": "denied"},
    "shell": {
        "type": "shell_call_output", "call_id": "c1",
        "output": [{"stdout": "", "stderr": "denied", "outcome": {"type": "exit", "exit_code": 1}}],
    },
}
ANSWER = {
    "type": "message", "id": "m1", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}
tool = ""


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        item = ANSWER if len(request["input"]) > 1 else CALLS[tool]
        body = json.dumps(
            {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [item],
             "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
OpenAIInstrumentor().instrument(tracer_provider=tracers)
client = OpenAI(api_key="unused", base_url=f"http://127.0.0.1:{server.server_port}/v1")


def parts(span, key):
    messages = json.loads((span.attributes or {}).get(key, "[]"))
    return [part["type"] for message in messages for part in message["parts"]]


for tool in CALLS:
    spans.clear()
    question = {"role": "user", "content": "Do it."}
    client.responses.create(model="m", input=[question])
    client.responses.create(model="m", input=[question, CALLS[tool], RESULTS[tool]])
    first, second = spans.get_finished_spans()
    print(tool, parts(first, "gen_ai.output.messages"), parts(second, "gen_ai.input.messages"))
PYTHON

export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental
observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null)"
echo "$observed"
[[ $observed == "custom_tool ['tool_call'] ['text', 'tool_call', 'tool_call_response']
shell [] ['text']" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
