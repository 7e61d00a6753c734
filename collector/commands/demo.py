"""The demonstration: the real service in a process of its own, real OTLP traffic, verdicts in the terminal.

Nothing leaves the machine: the service listens on free ports of the loopback interface, the scripted agents
export to it with the stock OpenTelemetry SDK, and what is printed is what the service wrote.
"""

import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue

import orjson
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from rich.console import Console
from rich.text import Text

from collector.commands.run_table import RunTable, outcome_counts
from collector.configuration.default_files import default_file
from collector.tools.demo.demo_agent import RUNS, SERVICE_NAME, perform
from processors.model.json_value import JsonObject

_PATIENCE_SECONDS = 45.0
_READY = re.compile(r"^tracegrade ready: (.*)$")

_CONFIGURATION = """\
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: 127.0.0.1:0}}
      http: {{endpoint: 127.0.0.1:0}}
processors:
  group_by_trace: {{root_grace: 500ms}}
  evaluation: {{criteria: [{criteria}]}}
exporters:
  results_file: {{path: {results}}}
  file: {{path: {spans}}}
service:
  telemetry: {{endpoint: 127.0.0.1:0, self_check: {{enabled: false}}}}
  shutdown_timeout: 10s
"""


class DemoError(Exception):
    """The demonstration did not come to its end; the message says what was seen last."""


def run_demo(console: Console) -> None:
    """Play all scripted runs against a fresh service and print what it found.

    Raises:
        DemoError: the service did not start, did not grade every run in time or did not stop cleanly.
    """
    with tempfile.TemporaryDirectory(prefix="tracegrade-demo-") as folder:
        results = Path(folder, "verdicts.runs.jsonl")
        configuration = Path(folder, "tracegrade.yaml")
        criteria = default_file("criteria/demo.yaml")
        configuration.write_text(
            _CONFIGURATION.format(
                criteria=_quoted(criteria),
                results=_quoted(results),
                spans=_quoted(Path(folder, "spans.jsonl")),
            )
        )
        with _Service(configuration) as service:
            endpoints = service.wait_until_ready()
            console.print(
                f"tracegrade is running: OTLP/gRPC on {endpoints['grpc']}, OTLP/HTTP on {endpoints['http']}."
            )
            console.print(f"{len(RUNS)} scripted agent runs export their spans to it ...\n")
            _send(endpoints["grpc"])
            graded = _wait_for_results(results, service)
            _print_runs(console, graded)
            _print_metrics(console, endpoints["telemetry"])
            exit_code = service.stop()
        if exit_code != 0:
            raise DemoError(f"the service stopped with exit code {exit_code}:\n{service.log()}")
        console.print("The service took SIGTERM, delivered what it held and stopped with exit code 0.\n")
        _print_next_steps(console, criteria)


class _Service:
    """`tracegrade run` as a child process whose log is kept."""

    def __init__(self, configuration: Path) -> None:
        self._lines: list[str] = []
        self._ready: Queue[Mapping[str, str]] = Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "collector.cli", "run", "--config", str(configuration)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def __enter__(self) -> "_Service":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def wait_until_ready(self) -> Mapping[str, str]:
        """The real endpoints by name."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                return self._ready.get(timeout=0.2)
            except Empty:
                if self._process.poll() is not None:
                    break
        raise DemoError(f"the service did not start:\n{self.log()}")

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> int:
        """Ask it to stop as an operator would; its exit code."""
        self._process.terminate()
        return self._process.wait(timeout=_PATIENCE_SECONDS)

    def log(self) -> str:
        return "".join(self._lines[-20:])

    def _read_log(self) -> None:
        for line in self._process.stderr or ():
            self._lines.append(line)
            ready = _READY.match(line)
            if ready:
                self._ready.put(dict(pair.split("=", 1) for pair in ready[1].split()))


def _send(endpoint: str) -> None:
    provider = TracerProvider(
        resource=Resource.create({"service.name": SERVICE_NAME}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    tracer = provider.get_tracer(SERVICE_NAME)
    for run in RUNS:
        perform(run, tracer)
    provider.shutdown()


def _wait_for_results(path: Path, service: _Service) -> Sequence[JsonObject]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    graded: list[JsonObject] = []
    while time.monotonic() < deadline and not service.has_ended:
        if path.exists():
            graded = [
                orjson.loads(line)
                for line in path.read_bytes().splitlines(keepends=True)
                if line.endswith(b"\n")
            ]
            if len(graded) >= len(RUNS):
                return graded
        time.sleep(0.1)
    raise DemoError(f"{len(graded)} of {len(RUNS)} runs were graded:\n{service.log()}")


def _print_runs(console: Console, graded: Sequence[JsonObject]) -> None:
    table = RunTable(console)
    by_script = {(run.agent, run.prompt, tuple(call.tool for call in run.calls)): run.about for run in RUNS}
    order = list(by_script)
    for line in sorted(
        graded, key=lambda line: order.index(key) if (key := _script_of(line)) in by_script else len(order)
    ):
        table.print(line, note=by_script.get(_script_of(line), ""))
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcome_counts(graded).items() if count)
    console.print(Text(f"{len(graded)} runs, evaluations: {counts}\n", style="bold"))


def _script_of(line: JsonObject) -> tuple[str, str, tuple[str, ...]]:
    agent, calls = line.get("agent"), line.get("tool_calls")
    return (
        str(agent.get("name")) if isinstance(agent, dict) else "",
        str(line.get("input")),
        tuple(str(call.get("name")) for call in calls if isinstance(call, dict))
        if isinstance(calls, list)
        else (),
    )


def _print_metrics(console: Console, endpoint: str) -> None:
    with urllib.request.urlopen(f"http://{endpoint}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    wanted = [
        line
        for line in lines
        if line.startswith(("gen_ai_evaluation_results_total", "tracegrade_spans_received_total"))
        and not line.endswith(" 0.0")
    ]
    console.print("On /metrics, for Prometheus:", style="bold")
    for line in wanted[:12]:
        console.print(f"  {line}", soft_wrap=True, markup=False, highlight=False)
    if len(wanted) > 12:
        console.print(f"  ... and {len(wanted) - 12} more", style="dim")
    console.print()


def _print_next_steps(console: Console, criteria: Path) -> None:
    console.print("Where to look next", style="bold")
    for text in (
        f"the criteria of these agents: {criteria}",
        "keep it running: `tracegrade run`, then point an agent's exporter at it: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317",
        "grade recorded traffic: `tracegrade replay --criteria FILE PATH`",
        "check what you wrote: `tracegrade validate --config FILE`",
    ):
        console.print(f"  - {text}", soft_wrap=True, markup=False, highlight=False)


def _quoted(path: Path) -> str:
    return orjson.dumps(str(path)).decode()
