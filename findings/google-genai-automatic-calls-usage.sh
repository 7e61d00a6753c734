#!/usr/bin/env bash
# opentelemetry-instrumentation-google-genai 1.3b0 with google-genai 2.34.0: with automatic function calling one
# `generate_content` span stands for all requests of the loop, and its gen_ai.usage.* are those of the last
# request only, as is its gen_ai.output.messages: tokens of every earlier turn are on no span, and the calls that
# the model requested are in no message. A budget or a cost that sums gen_ai.usage.* over spans is too low.
#
# Observed: two requests that use 100 + 200 input and 10 + 20 output tokens; the only model span says 200 and 20,
# and no message on any span has a part of type tool_call. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  google-genai==2.34.0 opentelemetry-instrumentation-google-genai==1.3b0 opentelemetry-util-genai==1.3b0 \
  opentelemetry-sdk==1.45.2

cat > "$folder/run.py" <<'PYTHON'
"""One question to a scripted model that calls one Python function; prints what the spans say of its tokens."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from google import genai
from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

USAGE = [
    {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
    {"promptTokenCount": 200, "candidatesTokenCount": 20, "totalTokenCount": 220},
]
PARTS = [{"functionCall": {"name": "temperature", "args": {"city": "Tokyo"}}}, {"text": "19.5 degrees."}]
requests = 0


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        global requests
        self.rfile.read(int(self.headers["content-length"]))
        content = {"role": "model", "parts": [PARTS[requests]]}
        answer = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": USAGE[requests]}
        requests += 1
        body = json.dumps(answer).encode()
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


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
GoogleGenAiSdkInstrumentor().instrument(tracer_provider=tracers)
client = genai.Client(api_key="unused", http_options={"base_url": f"http://127.0.0.1:{server.server_port}"})
client.models.generate_content(model="scripted", contents="How warm is Tokyo?", config={"tools": [temperature]})

attributes = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
usage = [
    (span["gen_ai.usage.input_tokens"], span["gen_ai.usage.output_tokens"])
    for span in attributes if "gen_ai.usage.input_tokens" in span
]
print(requests, "requests, usage on spans", usage, "messages with a call", sum("tool_call" in str(span) for span in attributes if "gen_ai.output.messages" in span))
PYTHON

export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY
observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null | tail -1)"
echo "$observed"
[[ $observed == "2 requests, usage on spans [(200, 20)] messages with a call 0" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
