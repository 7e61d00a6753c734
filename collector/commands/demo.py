"""The command `tracegrade demo`: the real service as a process, real OTLP traffic, verdicts shown.

Nothing leaves the machine: the service listens on free ports of the loopback interface, the scripted agents
export to it with the stock OpenTelemetry SDK, and what is printed is what the service wrote.
"""

import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext
from collector.commands.output import OutputConsole
from collector.criteria import default_file
from collector.printing import RunPrintout, count_outcomes, counts_text
from collector.tools.child_service import ChildService
from collector.tools.demo import scripted_runs, send_scripted_runs
from collector.tools.running_service import ask
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


class DemoError(Exception):
    """The demonstration did not come to its end; the message says what was seen last."""


def _run(_: Namespace, __: CommandContext) -> int:
    try:
        _play(OutputConsole())
    except DemoError as error:
        print(f"the demonstration failed: {error}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _play(console: Console) -> None:
    """Play all scripted runs against a fresh service and print what it found."""
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
        with ChildService(
            Path(folder, "tracegrade.log"), "collector.cli", "run", "--config", str(configuration)
        ) as service:
            endpoints = service.endpoints(_PATIENCE_SECONDS)
            if not endpoints:
                raise DemoError(f"the service did not start:\n{service.log()}")
            console.print(
                f"tracegrade is running: OTLP/gRPC on {endpoints['grpc']}, OTLP/HTTP on {endpoints['http']}."
            )
            console.print(f"{len(scripted_runs())} scripted agent runs export their spans to it ...\n")
            send_scripted_runs(endpoints["grpc"])
            graded = _wait_for_results(results, service)
            _print_runs(console, graded)
            _print_metrics(console, endpoints["telemetry"])
            service.process.terminate()
            exit_code = service.process.wait(timeout=_PATIENCE_SECONDS)
        if exit_code != 0:
            raise DemoError(f"the service stopped with exit code {exit_code}:\n{service.log()}")
        console.print("The service took SIGTERM, delivered what it held and stopped with exit code 0.\n")
        _print_next_steps(console, criteria)


def _wait_for_results(path: Path, service: ChildService) -> Sequence[GradedRun]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    graded: list[GradedRun] = []
    while time.monotonic() < deadline and not service.has_ended:
        if path.exists():
            lines = path.read_bytes().splitlines(keepends=True)
            graded = [
                graded_run_from_json(decode_json(line), str(path)) for line in lines if line.endswith(b"\n")
            ]
            if len(graded) >= len(scripted_runs()):
                return graded
        time.sleep(0.1)
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
    lines = ask(endpoint, "/metrics")[1].decode().splitlines()
    wanted = [
        line
        for line in lines
        if line.startswith(("gen_ai_evaluation_results_total", "tracegrade_spans_received_total"))
        and not line.endswith(" 0.0")
    ]
    console.print("On /metrics, for Prometheus:", style="bold")
    for line in wanted[:12]:
        console.print(f"  {line}", markup=False, highlight=False)
    if len(wanted) > 12:
        console.print(f"  ... and {len(wanted) - 12} more", style="dim")
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
