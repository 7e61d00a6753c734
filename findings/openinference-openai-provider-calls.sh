#!/usr/bin/env bash
# openinference-instrumentation-openai 0.1.66 with openai 3.57.0, Responses API: a call of a hosted MCP server, of a
# shell and of a patch is in none of the flattened attributes `llm.output_messages.*`; only the provider's raw
# response in output.value has it, so that whoever reads messages sees an answer without a call, also where the call
# failed. A call of a computer is there, but as `message.tool_calls.0.message.tool_call_id`, without a name and
# without arguments: the keys of a tool's result in the place of those of a call.
#
# Observed: see the last lines. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  openai==3.57.0 openinference-instrumentation-openai==0.1.66 opentelemetry-sdk==1.45.2

cat > "$folder/run.py" <<'PYTHON'
"""One response for each kind of call; prints what the messages have of it, and whether the raw response has it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

CALLS = {
    "mcp_call": {"name": "read_page", "server_label": "wiki", "arguments": "{}", "output": None, "error": "no"},
    "shell_call": {"call_id": "c1", "status": "completed", "action": {"commands": ["ls"]}},
    "apply_patch_call": {
        "call_id": "c1", "status": "completed", "operation": {"type": "delete_file", "path": "a"},
    },
    "computer_call": {
        "call_id": "c1", "status": "completed", "pending_safety_checks": [], "action": {"type": "screenshot"},
    },
}
kind = ""


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        item = {"type": kind, "id": "i1", **CALLS[kind]}
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
for kind in CALLS:
    client.responses.create(model="m", input="Do it.")
    attributes = dict(spans.get_finished_spans()[-1].attributes)
    begin = "llm.output_messages.0.message."
    reported = sorted(key.removeprefix(begin) for key in attributes if key.startswith(begin + "tool_calls"))
    print(kind, reported, f'"{kind}"' in attributes["output.value"])
PYTHON

observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null)"
echo "$observed"
[[ $observed == "mcp_call [] True
shell_call [] True
apply_patch_call [] True
computer_call ['tool_calls.0.message.role', 'tool_calls.0.message.tool_call_id'] True" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
