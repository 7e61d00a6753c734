"""A sample agent for a first look at tracegrade: it tells the weather, and turns bad on demand.

A scripted model asks for tools, the tools are functions, and the stock OpenTelemetry SDK exports what happens
as the GenAI conventions say: `invoke_agent`, `chat` and `execute_tool` spans. Where to, is told by the SDK's
own environment variables, for example `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317`. The agent's name
and tools are those of the criteria in `config/criteria/demo.yaml`.

    curl -X POST http://127.0.0.1:8080/bad              # every run goes wrong from now on
    curl -X POST 'http://127.0.0.1:8080/bad?share=0.4'  # four runs out of ten
    curl -X POST http://127.0.0.1:8080/good             # it has recovered
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Tracer

AGENT = "weather_agent"
QUESTION = "What is the forecast for London?"
ANSWER = "London: 25 degrees, rainy, 90% humidity; rain tomorrow."

TOOLS: Mapping[str, Callable[[str], Mapping[str, object]]] = {
    "get_temperature": lambda city: {"temperature": 25.0 if city == "London" else 12.0},
    "get_weather_condition": lambda city: {"condition": "rainy" if city == "London" else "sunny"},
    "get_humidity": lambda city: {"humidity": 90 if city == "London" else 40},
    "get_forecast": lambda city: {"tomorrow": "rain" if city == "London" else "sun", "chance": 0.8},
}

CAREFUL = (
    ("get_temperature", "London"),
    ("get_weather_condition", "London"),
    ("get_humidity", "London"),
    ("get_forecast", "London"),
)
"""Looks at today's weather in the city it was asked about, then at the forecast."""

CARELESS = (
    ("get_forecast", "Kyoto"),
    ("get_weather_condition", "London"),
    ("get_temperature", "Kyoto"),
)
"""Forecasts first, for the wrong city, and never looks at the humidity."""


class Behaviour:
    """What share of the runs goes wrong; may be changed from another thread at any time."""

    def __init__(self) -> None:
        self.bad_share = 0.0
        self.runs = 0
        self._carry = 0.0

    def next_script(self) -> Sequence[tuple[str, str]]:
        """The calls of the next run: careless ones come as evenly as the share allows."""
        self.runs += 1
        self._carry += self.bad_share
        if self._carry < 1:
            return CAREFUL
        self._carry -= 1
        return CARELESS

    def become(self, bad_share: float) -> None:
        """Let this share of the runs, from 0 to 1, go wrong from now on."""
        self.bad_share, self._carry = bad_share, 0.0


@dataclass(frozen=True)
class ScriptedModel:
    """Stands where a language model would: asks for the calls of its script, then answers."""

    script: Sequence[tuple[str, str]]

    def respond(self, history: Sequence[Mapping[str, object]]) -> dict[str, object]:
        """The next message of the assistant, after the tools' messages in `history`."""
        step = sum(message["role"] == "tool" for message in history)
        if step == len(self.script):
            return text_message("assistant", ANSWER)
        tool, city = self.script[step]
        call = {"type": "tool_call", "id": f"call_{step}", "name": tool, "arguments": {"city": city}}
        return {"role": "assistant", "parts": [call], "finish_reason": "tool_call"}


def answer(tracer: Tracer, model: ScriptedModel, version: str) -> None:
    """One run of the agent: ask the model, run the tool it wants, until it answers."""
    history: list[Mapping[str, object]] = [text_message("user", QUESTION)]
    with tracer.start_as_current_span(
        f"invoke_agent {AGENT}",
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": AGENT,
            "gen_ai.agent.version": version,
            "gen_ai.input.messages": json.dumps(history),
        },
    ) as run:
        while True:
            message = ask(tracer, model, history)
            history.append(message)
            parts = message["parts"]
            assert isinstance(parts, list)
            if parts[0]["type"] != "tool_call":
                run.set_attribute("gen_ai.output.messages", json.dumps([message]))
                return
            history.append(execute(tracer, parts[0]))


def ask(tracer: Tracer, model: ScriptedModel, history: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """One turn of the model."""
    with tracer.start_as_current_span(
        "chat scripted",
        kind=SpanKind.CLIENT,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "scripted",
            "gen_ai.request.model": "scripted",
            "gen_ai.input.messages": json.dumps(history),
        },
    ) as turn:
        message = model.respond(history)
        turn.set_attribute("gen_ai.output.messages", json.dumps([message]))
        return message


def execute(tracer: Tracer, call: Mapping[str, object]) -> dict[str, object]:
    """Run the tool that the model asked for; the message with its result."""
    name, call_id, arguments = str(call["name"]), str(call["id"]), call["arguments"]
    assert isinstance(arguments, dict)
    with tracer.start_as_current_span(
        f"execute_tool {name}",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        },
    ) as span:
        result = TOOLS[name](arguments["city"])
        span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
        return {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": call_id, "response": result}],
        }


def text_message(role: str, text: str) -> dict[str, object]:
    """A message that is only text, as the GenAI conventions write it."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def control_server(address: str, behaviour: Behaviour) -> ThreadingHTTPServer:
    """A bound server that takes `POST /good` and `POST /bad` and tells the state on GET, once it serves."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"bad_share": behaviour.bad_share, "runs": behaviour.runs}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            url = urlsplit(self.path)
            try:
                share = float(parse_qs(url.query).get("share", ["1"])[0])
            except ValueError:
                share = -1.0
            if url.path not in ("/good", "/bad") or not 0 <= share <= 1:
                self.send_error(400, "expected POST /good, POST /bad or POST /bad?share=0.4")
                return
            behaviour.become(0.0 if url.path == "/good" else share)
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            print(f"control: {format % args}", file=sys.stderr, flush=True)

    host, _, port = address.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Handler)
    server.daemon_threads = True
    return server


def main() -> None:
    """Answer the same question again and again until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--control", default="127.0.0.1:8080", metavar="HOST:PORT", help="port 0: a free one")
    parser.add_argument("--runs-per-second", type=float, default=1.0, metavar="N")
    parser.add_argument("--version", default="1.0.0", help="the agent's version on its spans")
    options = parser.parse_args()

    provider = TracerProvider(resource=Resource.create({"service.version": options.version}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=3), schedule_delay_millis=200))
    tracer = provider.get_tracer("sample_agent")
    behaviour, stopping = Behaviour(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    server = control_server(options.control, behaviour)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    host, port = server.server_address[:2]
    print(f"sample agent ready: control={host!s}:{port}", file=sys.stderr, flush=True)

    while not stopping.wait(1 / options.runs_per_second):
        answer(tracer, ScriptedModel(behaviour.next_script()), options.version)

    server.shutdown()
    server.server_close()
    serving.join()
    provider.shutdown()


if __name__ == "__main__":
    main()
