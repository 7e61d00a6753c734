"""The command `tracegrade demo`: the real service as a process, real OTLP traffic, and its verdicts.

Nothing leaves the machine: the service listens on free ports of the loopback interface, the scripted agents
export to it with the stock OpenTelemetry SDK, and the output is what the service wrote.
"""

import re
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.text import Text

from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext
from collector.commands.output import OutputConsole
from collector.criteria import default_file
from collector.printing import RunPrintout, count_outcomes, counts_text
from collector.tools.demo import scripted_runs, send_scripted_runs
from collector.tools.http_client import query
from processors.annotation import graded_run_from_json
from processors.model import AgentRun, GradedRun, decode_json, encode_json

_PATIENCE_SECONDS = 45.0

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


_READY = re.compile(r"^tracegrade ready: (.*)\n", re.MULTILINE)
_SHOWN_LINES = 20


class DemoError(Exception):
    """The demonstration failed; the message is the last known state."""


class _Service:
    """A service as a child process, which is killed at the end of the context if it has not ended."""

    def __init__(self, folder: Path, configuration: Path) -> None:
        self._log = folder / "tracegrade.log"
        command = [sys.executable, "-m", "collector.cli", "run", "--config", str(configuration)]
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def endpoints(self) -> Mapping[str, str]:
        """Its endpoints by name, once it is ready."""
        for _ in _polls(self.process, 0.05):
            if ready := _READY.search(self._log.read_text(errors="replace")):
                return dict(pair.split("=", 1) for pair in ready[1].split())
        raise DemoError(f"the service did not start:\n{self.log()}")

    def log(self) -> str:
        """The last lines that it printed."""
        return "".join(self._log.read_text(errors="replace").splitlines(keepends=True)[-_SHOWN_LINES:])


def _polls(process: subprocess.Popen[bytes], interval_seconds: float) -> Iterator[None]:
    """One item each interval, as long as the process runs and the demonstration may wait."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        yield
        time.sleep(interval_seconds)


def _run(_: Namespace, __: CommandContext) -> int:
    try:
        _play(OutputConsole())
    except DemoError as error:
        print(f"the demonstration failed: {error}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _play(console: Console) -> None:
    """Play all scripted runs against a new service and print their verdicts."""
    with tempfile.TemporaryDirectory(prefix="tracegrade-demo-") as folder:
        results = Path(folder, "verdicts.runs.jsonl")
        configuration = Path(folder, "tracegrade.yaml")
        criteria = default_file("criteria/demo.yaml")
        configuration.write_text(
            _CONFIGURATION.format(
                criteria=encode_json(str(criteria)).decode(),
                results=encode_json(str(results)).decode(),
                spans=encode_json(str(Path(folder, "spans.jsonl"))).decode(),
            )
        )
        with _Service(Path(folder), configuration) as service:
            endpoints = service.endpoints()
            console.print(
                f"tracegrade is running: OTLP/gRPC on {endpoints['grpc']}, OTLP/HTTP on {endpoints['http']}."
            )
            console.print(
                f"{len(scripted_runs())} scripted agent runs export their spans and log records to it ...\n"
            )
            send_scripted_runs(endpoints["grpc"])
            graded = _wait_for_results(results, service)
            _print_runs(console, graded)
            _print_metrics(console, endpoints["telemetry"])
            service.process.terminate()
            exit_code = service.process.wait(timeout=_PATIENCE_SECONDS)
        if exit_code != 0:
            raise DemoError(f"the service stopped with exit code {exit_code}:\n{service.log()}")
        console.print("On SIGTERM the service delivered what it held and stopped with exit code 0.\n")
        _print_next_steps(console, criteria)


def _wait_for_results(path: Path, service: _Service) -> Sequence[GradedRun]:
    graded: list[GradedRun] = []
    for _ in _polls(service.process, 0.1):
        if path.exists():
            lines = path.read_bytes().splitlines(keepends=True)
            graded = [
                graded_run_from_json(decode_json(line), str(path)) for line in lines if line.endswith(b"\n")
            ]
            if len(graded) >= len(scripted_runs()):
                return graded
    raise DemoError(f"{len(graded)} of {len(scripted_runs())} runs were graded:\n{service.log()}")


def _print_runs(console: Console, graded: Sequence[GradedRun]) -> None:
    printout = RunPrintout.for_console(console)
    scripts = {
        (run.agent, run.prompt, tuple(call.tool for call in run.calls)): run.about for run in scripted_runs()
    }
    order = {script: number for number, script in enumerate(scripts)}
    for run in sorted(graded, key=lambda run: order.get(_script_of(run.run), len(order))):
        console.print(printout.block(run, scripts.get(_script_of(run.run), "")))
    counts = counts_text(sum(map(count_outcomes, graded), Counter[str]()))
    console.print(Text(f"{len(graded)} runs, evaluations: {counts}\n", style="bold"))


def _script_of(run: AgentRun) -> tuple[str, str, tuple[str, ...]]:
    return run.agent.name, str(run.input), tuple(call.name for call in run.tool_calls)


def _print_metrics(console: Console, endpoint: str) -> None:
    lines = query(endpoint, "/metrics")[1].decode().splitlines()
    shown = [
        line
        for line in lines
        if line.startswith(("gen_ai_evaluation_results_total", "tracegrade_spans_received_total"))
        and not line.endswith(" 0.0")
    ]
    console.print("On /metrics, for Prometheus:", style="bold")
    for line in shown[:12]:
        console.print(f"  {line}", markup=False, highlight=False)
    if len(shown) > 12:
        console.print(f"  ... and {len(shown) - 12} more", style="dim")
    console.print()


def _print_next_steps(console: Console, criteria: Path) -> None:
    console.print("Where to look next", style="bold")
    for text in (
        f"the criteria of these agents: {criteria}",
        "keep it running: `tracegrade run`, then point an agent's exporter at it: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317",
        "its page with agents, runs and verdicts is then at http://127.0.0.1:9465",
        "with these runs on the page: `tracegrade run --demo`",
        "grade recorded traffic: `tracegrade replay --criteria FILE PATH`",
        "check what you wrote: `tracegrade validate --config FILE`",
    ):
        console.print(f"  - {text}", markup=False, highlight=False)


DEMO = Command(lambda parser: None, _run)
