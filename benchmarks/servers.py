"""The servers under test, each started for one measurement: how, with what settings, and what must hold."""

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Protocol

from benchmarks.agent_criteria import CRITERIA_TEXT, EVALUATIONS_PER_TRACE
from benchmarks.child_process import ChildProcess, MeasurementRefused
from benchmarks.naive_peer import QUIET_SECONDS

_RESULTS = "gen_ai_evaluation_results_total{"
_ACCOUNTING_ERROR = "tracegrade_accounting_error_spans{"
_METRICS_TIMEOUT_SECONDS = 30.0  # a series may wait 15 s for its first increment


class ServerUnderTest(Protocol):
    """A server that groups spans by trace and forwards them to a sink."""

    name: str
    result_events_per_trace: int
    """Evaluation events that it adds to the spans of every trace."""

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink` (host:port); files of its own go to `folder`."""
        ...

    def require_graded(self, ready: dict[str, str], traces: int) -> None:
        """Raise `MeasurementRefused` unless it says itself that it did its work on `traces` traces."""
        ...


class NaivePeer:
    """The naive peer: forwards, evaluates nothing."""

    name = "naive-peer"
    result_events_per_trace = 0

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink`."""
        return ChildProcess(self.name, [sys.executable, "-m", "benchmarks.naive_peer", sink])

    def require_graded(self, ready: dict[str, str], traces: int) -> None:
        """It claims nothing."""


class Tracegrade:
    """The service as a user runs it: gRPC in, six evaluations of every trace, gRPC out."""

    name = "tracegrade"
    result_events_per_trace = EVALUATIONS_PER_TRACE

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink`."""
        criteria, configuration = folder / "criteria.yaml", folder / "tracegrade.yaml"
        criteria.write_text(CRITERIA_TEXT)
        configuration.write_text(json.dumps(_configuration(sink, criteria)))
        executable = Path(sys.executable).with_name("tracegrade")
        return ChildProcess(self.name, [str(executable), "run", "--config", str(configuration)])

    def require_graded(self, ready: dict[str, str], traces: int) -> None:
        """The results counter must show every evaluation of every trace as passed or failed."""
        expected = {"graded": traces * EVALUATIONS_PER_TRACE, "other": 0}
        deadline = time.monotonic() + _METRICS_TIMEOUT_SECONDS
        while True:
            text = _scrape(ready["telemetry"])
            counted = _results(text)
            if counted == expected and not any(value for _, value in _series(text, _ACCOUNTING_ERROR)):
                return
            if time.monotonic() > deadline:
                raise MeasurementRefused(
                    f"{self.name}: gen_ai_evaluation_results_total shows {counted}, expected {expected} "
                    f"after {traces} traces; accounting errors {_series(text, _ACCOUNTING_ERROR)}"
                )
            time.sleep(0.2)


SERVERS: tuple[ServerUnderTest, ...] = (Tracegrade(), NaivePeer())


def _configuration(sink: str, criteria: Path) -> dict[str, object]:
    return {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "processors": {
            "group_by_trace": {"root_grace": f"{round(QUIET_SECONDS * 1000)}ms"},
            "evaluation": {"criteria": [str(criteria)]},
        },
        "exporters": {"otlp": {"endpoint": sink, "tls": {"insecure": True}}},
        "service": {"telemetry": {"endpoint": "127.0.0.1:0"}},
    }


def _scrape(endpoint: str) -> str:
    with urllib.request.urlopen(f"http://{endpoint}/metrics", timeout=10) as response:
        text: str = response.read().decode()
    return text


def _results(text: str) -> dict[str, int]:
    counted = {"graded": 0, "other": 0}
    for labels, value in _series(text, _RESULTS):
        verdict = 'score_label="pass"' in labels or 'score_label="fail"' in labels
        counted["graded" if verdict else "other"] += round(value)
    return counted


def _series(text: str, prefix: str) -> list[tuple[str, float]]:
    return [
        (line.rpartition(" ")[0], float(line.rpartition(" ")[2]))
        for line in text.splitlines()
        if line.startswith(prefix)
    ]
