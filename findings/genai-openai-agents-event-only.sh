#!/usr/bin/env bash
# opentelemetry-instrumentation-genai-openai-agents 1.3b0 with openai-agents 0.24.0:
# OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=EVENT_ONLY takes the content of a run off its spans and
# sends no log record at all, so that what the tool was given and returned is nowhere. With SPAN_ONLY the spans
# have it. Other instrumentations of the same family send one record for each request to a model.
#
# Observed: with SPAN_ONLY the tool's span has arguments and result and no record is sent; with EVENT_ONLY the
# same span has neither, and still no record is sent. Fails if that is no longer so.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  openai-agents==0.24.0 openai==3.57.0 opentelemetry-instrumentation-genai-openai-agents==1.3b0 \
  opentelemetry-sdk==1.45.2

cat > "$folder/run.py" <<'PYTHON'
"""One run of an agent with a scripted model and one tool; prints what its telemetry has of the content."""

import asyncio
import json

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_trace_processors
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from opentelemetry._logs import set_logger_provider
from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()
tracers, loggers = TracerProvider(), LoggerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
set_logger_provider(loggers)
set_trace_processors([])
OpenAIAgentsInstrumentor().instrument(tracer_provider=tracers, logger_provider=loggers)


@function_tool
def temperature(city: str) -> str:
    """The temperature of a city."""
    return "19.5 degrees"


class Scripted(Model):
    """Requests the tool, then answers."""

    turns = 0

    async def get_response(self, *args, **kwargs):
        self.turns += 1
        call = ResponseFunctionToolCall(
            arguments=json.dumps({"city": "Tokyo"}), call_id="call_1", name="temperature", type="function_call"
        )
        text = ResponseOutputText(text="It has 19.5 degrees.", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[call if self.turns == 1 else message], usage=Usage(), response_id=None)

    async def stream_response(self, *args, **kwargs):
        raise NotImplementedError
        yield


agent = Agent(name="weather", instructions="Answer.", tools=[temperature], model=Scripted())
asyncio.run(Runner.run(agent, "How warm is Tokyo?"))
written = [json.dumps(dict(span.attributes or {}), default=str) for span in spans.get_finished_spans()]
print(
    len(written), "spans,",
    sum("Tokyo" in text for text in written), "with the argument,",
    sum("19.5 degrees" in text for text in written), "with the result,",
    len(records.get_finished_logs()), "log records",
)
PYTHON

export OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental
for mode in SPAN_ONLY EVENT_ONLY; do
  observed="$(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=$mode "$folder/venv/bin/python" "$folder/run.py" | tail -1)"
  echo "$mode: $observed"
  case "$mode" in
    SPAN_ONLY) [[ $observed != *" 0 with the argument"* && $observed == *" 0 log records" ]] ;;
    EVENT_ONLY) [[ $observed == *" 0 with the argument, 0 with the result, 0 log records" ]] ;;
  esac || { echo "This is not what was observed." >&2; exit 1; }
done
