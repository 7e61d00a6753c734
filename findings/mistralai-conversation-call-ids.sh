#!/usr/bin/env bash
# mistralai 2.3.0 (3.7.0 with telemetry switched on alike), a run of a conversation with one function: the
# execute_tool span of the SDK has the id of the conversation's entry as its gen_ai.tool.call.id (`fc_1`), while
# the result in the next request's gen_ai.input.messages has the id of the call (`call00001`). The conventions' own
# key joins no result with its execution. The invoke_agent span of the request that asked for the call has no
# gen_ai.output.messages at all, and every message that there is is a JSON text in an array.
#
# Observed: ids on spans {fc_1}, ids in messages {call00001}, no message that requests the call.
# Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  mistralai==2.3.0 mcp==1.30.0 griffe==2.4.1 authlib==1.9.10 opentelemetry-sdk==1.39.1

cat > "$folder/run.py" <<'PYTHON'
"""One run of a conversation against a scripted service; prints the ids of calls by place."""

import asyncio
import json
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(tracers)

from mistralai.client import Mistral
from mistralai.extra.run.context import RunContext

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
CALL = {
    "type": "function.call", "id": "fc_1", "tool_call_id": "call00001", "name": "humidity",
    "arguments": json.dumps({"city": "Oslo"}),
}
ANSWER = {"type": "message.output", "id": "msg_1", "role": "assistant", "content": "80 percent."}
requests = 0


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        global requests
        self.rfile.read(int(self.headers["content-length"]))
        now = datetime.now(timezone.utc).isoformat()
        entry = {**(CALL, ANSWER)[requests], "object": "entry", "created_at": now, "completed_at": now, "model": "m"}
        requests += 1
        body = json.dumps(
            {"object": "conversation.response", "conversation_id": "c1", "outputs": [entry], "usage": USAGE}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def humidity(city: str) -> int:
    """The humidity of a city.

    Args:
        city: The city.
    """
    return 80


async def run():
    async with RunContext(model="m") as context:
        context.register_func(humidity)
        await client.beta.conversations.run_async(run_ctx=context, inputs="How humid is Oslo?")


server = HTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = Mistral(api_key="unused", server_url=f"http://127.0.0.1:{server.server_port}")
asyncio.run(run())

attributes = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
on_spans = sorted(span["gen_ai.tool.call.id"] for span in attributes if "gen_ai.tool.call.id" in span)
messages = [
    json.loads(text)
    for span in attributes
    for key in ("gen_ai.input.messages", "gen_ai.output.messages")
    for text in span.get(key, ())
]
parts = [part for message in messages for part in message["parts"]]
print(
    "on spans", on_spans,
    "in messages", sorted(part["id"] for part in parts if "id" in part),
    "requests in messages", sum(part["type"] == "tool_call" for part in parts),
)
PYTHON

observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null | tail -1)"
echo "$observed"
[[ $observed == "on spans ['fc_1'] in messages ['call00001'] requests in messages 0" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
