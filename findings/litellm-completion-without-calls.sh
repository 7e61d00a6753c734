#!/usr/bin/env bash
# litellm 1.110.2, OpenTelemetry callback with events: the gen_ai.content.completion record of a reply that
# requests tools has the role and finish_reason `tool_calls` but not the calls. They are in the records of the next
# request alone, whose history repeats them, and so nowhere for a last reply: an agent that stops at a request,
# waits for an approval, or crashes before the next request shows a turn that requested nothing. The records'
# name is in the attribute `event_name`; the field of that name of OpenTelemetry's log records is empty.
#
# Observed: two calls in the reply, none in its record, both in the prompt records of the following request.
# Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  litellm==1.110.2 openai==3.57.0 opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp==1.45.2

cat > "$folder/run.py" <<'PYTHON'
"""Two requests around two tool calls; prints how many calls the reply has, and its record, and the next ones."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

records, loggers = InMemoryLogRecordExporter(), LoggerProvider()
loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
set_logger_provider(loggers)

import litellm
from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig

CALLS = [
    {"id": f"call_{city}", "type": "function", "function": {"name": "temperature", "arguments": json.dumps({"city": city})}}
    for city in ("Tokyo", "Kyoto")
]


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        done = any(message["role"] == "tool" for message in request["messages"])
        message = {"role": "assistant", "content": "Kyoto."} if done else {"role": "assistant", "content": None, "tool_calls": CALLS}
        choice = {"index": 0, "finish_reason": "stop" if done else "tool_calls", "message": message}
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
litellm.callbacks = [OpenTelemetry(config=OpenTelemetryConfig(exporter=InMemorySpanExporter(), enable_events=True))]


def request(messages):
    answer = litellm.completion(
        model="openai/m", messages=messages, api_base=f"http://127.0.0.1:{server.server_port}/v1", api_key="unused",
        tools=[{"type": "function", "function": {"name": "temperature", "parameters": {"type": "object"}}}],
    )
    return answer.choices[0].message


def written(count):
    """The records, once there are so many: they are written after the answer was returned."""
    for _ in range(100):
        if len(records.get_finished_logs()) >= count:
            break
        time.sleep(0.1)
    return [record.log_record for record in records.get_finished_logs()]


messages = [{"role": "user", "content": "Which is warmer, Tokyo or Kyoto?"}]
reply = request(messages)
of_first = written(2)
completion = next(record for record in of_first if record.attributes["event_name"] == "gen_ai.content.completion")
messages.append(reply.model_dump(exclude_none=True))
messages += [{"role": "tool", "tool_call_id": call.id, "content": "21 degrees"} for call in reply.tool_calls]
request(messages)
of_second = written(len(of_first) + 5)[len(of_first):]
print(
    "calls in the reply", len(reply.tool_calls), "in its record", str(completion.body).count("call_"),
    "finish reason", completion.body["finish_reason"], "in the next prompt",
    sum(len(record.body.get("tool_calls") or ()) for record in of_second), "field", completion.event_name,
)
PYTHON

export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true LITELLM_LOCAL_MODEL_COST_MAP=True
observed="$("$folder/venv/bin/python" "$folder/run.py" 2>/dev/null | tail -1)"
echo "$observed"
[[ $observed == "calls in the reply 2 in its record 0 finish reason tool_calls in the next prompt 2 field None" ]] || {
  echo "This is not what was observed." >&2
  exit 1
}
