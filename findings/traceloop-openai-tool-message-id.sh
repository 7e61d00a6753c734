#!/usr/bin/env bash
# opentelemetry-instrumentation-openai 0.62.4 (OpenLLMetry), events instead of attributes
# (use_legacy_attributes=False): the gen_ai.tool.message event of a tool's result has no id, although
# the request has tool_call_id and the conventions for this event require `id`. With two calls of one turn, whose
# results the program gives in another order than the calls, nothing in the telemetry ties a result to its call.
# The span's gen_ai.response.finish_reasons says `tool_call`, the event of the same reply `tool_calls`.
#
# Observed: gen_ai.choice has the ids of both calls beside `message`, both gen_ai.tool.message bodies have
# `content` alone, and the two finish reasons differ. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  openai==2.54.0 opentelemetry-instrumentation-openai==0.62.4 opentelemetry-sdk==1.45.2

cat > "$folder/run.py" <<'PYTHON'
"""Two requests to a scripted model around two tool calls; prints the keys of the events and the finish reasons."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import openai
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

CALLS = [
    {"id": f"call_{city}", "type": "function", "function": {"name": "temperature", "arguments": json.dumps({"city": city})}}
    for city in ("Tokyo", "Kyoto")
]


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = any(message["role"] == "tool" for message in request["messages"])
        message = {"role": "assistant", "content": "Kyoto." if results else None}
        if not results:
            message["tool_calls"] = CALLS
        choice = {"index": 0, "finish_reason": "stop" if results else "tool_calls", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()
tracers, loggers = TracerProvider(), LoggerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
OpenAIInstrumentor(use_legacy_attributes=False).instrument(tracer_provider=tracers, logger_provider=loggers)

client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="unused", max_retries=0)
tools = [{"type": "function", "function": {"name": "temperature", "parameters": {"type": "object"}}}]
messages = [{"role": "user", "content": "Which is warmer, Tokyo or Kyoto?"}]
reply = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
messages.append(reply.model_dump(exclude_none=True))
for call, result in (("call_Kyoto", "21 degrees"), ("call_Tokyo", "19 degrees")):
    messages.append({"role": "tool", "tool_call_id": call, "content": result})
client.chat.completions.create(model="m", messages=messages, tools=tools)

written = [record.log_record for record in records.get_finished_logs()]
choice = next(record.body for record in written if record.event_name == "gen_ai.choice")
print("ids of calls", [call["id"] for call in choice["tool_calls"]], "keys of message", sorted(choice["message"]))
print("keys of tool messages", [sorted(record.body) for record in written if record.event_name == "gen_ai.tool.message"])
print("finish reasons", spans.get_finished_spans()[0].attributes["gen_ai.response.finish_reasons"][0], choice["finish_reason"])
PYTHON

observed="$("$folder/venv/bin/python" -W ignore "$folder/run.py" | tail -3)"
echo "$observed"
expected="ids of calls ['call_Tokyo', 'call_Kyoto'] keys of message ['content']
keys of tool messages [['content'], ['content']]
finish reasons tool_call tool_calls"
[[ $observed == "$expected" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
