#!/usr/bin/env bash
# openlit 1.45.0 with openai 2.54.0: the values that OpenTelemetry's GenAI instrumentations give
# OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT (SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT) turn capturing off,
# on spans as well as in log records: a program that sets the variable for those loses the content of OpenLIT.
# Left unset, or with `true`, OpenLIT sends content on spans and in records.
#
# Observed: unset and `true`: the answer is on the span and in the record; SPAN_ONLY, EVENT_ONLY and
# SPAN_AND_EVENT: in neither, while the record is still sent. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pins=(openlit==1.45.0 openai==2.54.0 anthropic==0.125.0 opentelemetry-sdk==1.45.1 opentelemetry-exporter-otlp==1.45.1)
for name in aiohttp-client asgi django falcon fastapi flask httpx pyramid requests starlette tornado urllib urllib3 wsgi; do
  pins+=("opentelemetry-instrumentation-$name==0.66b1")
done
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "${pins[@]}"

cat > "$folder/run.py" <<'PYTHON'
"""One request to a scripted model; prints whether its answer is on the span and in the log record."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ANSWER = "Nineteen degrees."


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": ANSWER}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        encoded = json.dumps({**body, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()
tracers, loggers = TracerProvider(), LoggerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
trace.set_tracer_provider(tracers)
set_logger_provider(loggers)

import openlit  # noqa: E402
from openai import OpenAI  # noqa: E402

openlit.init(pricing_json=os.devnull, disable_metrics=True)
client = OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")
client.chat.completions.create(model="m", messages=[{"role": "user", "content": "How warm is Tokyo?"}])
chats = [span for span in spans.get_finished_spans() if span.name.startswith("chat")]
sent = [record.log_record for record in records.get_finished_logs()]
assert len(chats) == len(sent) == 1, (chats, sent)
print("span" if ANSWER in str(chats[0].attributes) else "-", "record" if ANSWER in str(sent[0].attributes) else "-", flush=True)
os._exit(0)
PYTHON

for mode in "" true SPAN_ONLY EVENT_ONLY SPAN_AND_EVENT; do
  seen="$(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="$mode" "$folder/venv/bin/python" "$folder/run.py" 2>/dev/null)"
  printf '%-16s %s\n' "${mode:-(unset)}" "$seen"
  case "$mode" in
    "" | true) [ "$seen" = "span record" ] ;;
    *) [ "$seen" = "- -" ] ;;
  esac
done
