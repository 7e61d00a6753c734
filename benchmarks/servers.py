"""The servers under test, each started for one measurement: how, with what settings, and what must hold."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.agent_criteria import CRITERIA_TEXT, EVALUATIONS_PER_TRACE
from benchmarks.child_process import REPOSITORY, ChildProcess, MeasurementRefused, free_endpoint
from benchmarks.load import Protocol
from processors.spans import NATIVE, NATIVE_REASON
from processors.spans.native import SWITCH

QUIET_SECONDS = 1.0
"""How long every server that groups spans by trace waits for more of them."""

BENCH_ENVIRONMENT: Final = REPOSITORY / ".venv-bench"
"""Where `make bench-install` puts the packages that are compared with."""
OTELCOL: Final = REPOSITORY / "benchmarks" / "otelcol" / "build" / "otelcol"
"""Where `make bench-install` puts the Collector."""

_NOT_INSTALLED = "not installed (make bench-install)"
_METRICS_TIMEOUT_SECONDS = 30.0  # a series may wait 15 s for its first increment


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUnderTest(ABC):
    """A server that takes spans in, and most often groups them by trace and forwards them to a sink.

    `forwards`: each span has to reach the sink; otherwise none may. `result_events_per_trace`: evaluation
    events that it adds to the spans of every trace.
    """

    name: str
    protocol: Protocol = "grpc"
    forwards: bool = True
    result_events_per_trace: int = 0

    def missing(self) -> str:
        """Why it cannot be measured here; empty where it can."""
        return ""

    @abstractmethod
    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink` (host:port); files of its own go to `folder`."""

    def require_graded(self, ready: dict[str, str], traces: int) -> None:  # noqa: B027  # most claim nothing
        """Raise `MeasurementRefused` unless it says itself that it did its work on `traces` traces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracegrade(ServerUnderTest):
    """The service as a user runs it: OTLP in, every trace graded, OTLP/gRPC out.

    `is_native` uses the reader in Rust where there is one. `listener` is the library that serves gRPC, where
    it is not the default one. `has_journal` keeps what is acknowledged on disk, with a sync before every
    acknowledgement. `has_store` keeps the runs in a file and
    serves the page over them.
    """

    name: str = "tracegrade"
    result_events_per_trace: int = EVALUATIONS_PER_TRACE
    is_native: bool = True
    listener: str = ""
    has_journal: bool = False
    has_store: bool = False
    criteria: str = CRITERIA_TEXT
    memory_limit_mib: int = 2048

    def missing(self) -> str:
        """A listener that the configuration does not know, or a reader that could be switched off."""
        if not self.is_native and NATIVE is None:
            return f"it is the same as tracegrade, {NATIVE_REASON}"
        if not self.listener:
            return ""
        command = [_tracegrade(), "validate", "--config", "/dev/stdin"]
        settings = json.dumps({"receivers": self._receivers()})
        valid = subprocess.run(command, input=settings, text=True, capture_output=True, check=False)
        return "" if valid.returncode == 0 else f"this version knows no listener {self.listener!r}"

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink`."""
        criteria, configuration = folder / "criteria.yaml", folder / "tracegrade.yaml"
        criteria.write_text(self.criteria)
        settings: dict[str, object] = {
            "receivers": self._receivers(),
            "processors": {
                "memory_limiter": {"limit_mib": self.memory_limit_mib},
                "group_by_trace": {"root_grace": f"{round(QUIET_SECONDS * 1000)}ms"},
                "evaluation": {"criteria": [str(criteria)]},
            },
            "exporters": {"otlp": {"endpoint": sink, "tls": {"insecure": True}}},
            "service": {"telemetry": {"endpoint": "127.0.0.1:0"}},
        }
        if self.has_journal:
            settings["journal"] = {"directory": str(folder / "journal")}
        if self.has_store:
            settings |= {"store": {"path": str(folder / "runs.db")}, "page": {"endpoint": "127.0.0.1:0"}}
        configuration.write_text(json.dumps(settings))
        switch = f"{SWITCH}={os.environ.get(SWITCH, '') if self.is_native else 'off'}"
        return ChildProcess(self.name, ["env", switch, _tracegrade(), "run", "--config", str(configuration)])

    def require_graded(self, ready: dict[str, str], traces: int) -> None:
        """Every evaluation of every trace is counted as passed or failed, and the accounts add up."""
        expected = {"graded": traces * self.result_events_per_trace, "other": 0}
        deadline = time.monotonic() + _METRICS_TIMEOUT_SECONDS
        while True:
            text = scrape(ready["telemetry"])
            counted = _results(text)
            errors = _series(text, "tracegrade_accounting_error_spans{")
            if counted == expected and not any(value for _, value in errors):
                return
            if time.monotonic() > deadline:
                raise MeasurementRefused(
                    f"{self.name}: gen_ai_evaluation_results_total shows {counted}, expected {expected} "
                    f"after {traces} traces; accounting errors {errors}"
                )
            time.sleep(0.2)

    def _receivers(self) -> dict[str, object]:
        settings = {"endpoint": "127.0.0.1:0"} | ({"server": self.listener} if self.listener else {})
        return {"otlp": {"protocols": {self.protocol: settings}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Naive(ServerUnderTest):
    """The naive peer: groups and forwards, evaluates nothing."""

    name: str = "naive"

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink`."""
        command = [sys.executable, "-m", "benchmarks.naive_peer", sink, str(QUIET_SECONDS)]
        return ChildProcess(self.name, command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled(ServerUnderTest):
    """What a user would assemble of packages: it does the whole job, with the four evaluators there are."""

    name: str = "assembled"
    result_events_per_trace: int = 4

    def missing(self) -> str:
        """Its packages."""
        return "" if (BENCH_ENVIRONMENT / ".installed").exists() else _NOT_INSTALLED

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink`."""
        criteria = folder / "criteria.json"
        criteria.write_text(CRITERIA_TEXT)
        script = REPOSITORY / "benchmarks" / "assembled_peer.py"
        command = [str(BENCH_ENVIRONMENT / "bin" / "python"), str(script), sink, str(QUIET_SECONDS)]
        return ChildProcess(self.name, [*command, str(criteria)])

    def require_graded(self, ready: dict[str, str], traces: int) -> None:
        """Its counter shows every evaluation."""
        counted = sum(value for _, value in _series(scrape(ready["metrics"]), "evaluation_results_total{"))
        if counted != traces * self.result_events_per_trace:
            raise MeasurementRefused(f"{self.name}: it counted {counted:g} evaluations of {traces} traces")


@dataclass(frozen=True, slots=True, kw_only=True)
class Otelcol(ServerUnderTest):
    """The OpenTelemetry Collector: groups by trace, batches, forwards; grades nothing."""

    name: str = "otelcol"

    def missing(self) -> str:
        """The built program."""
        return "" if OTELCOL.exists() else f"{_NOT_INSTALLED}, which takes Go"

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process forwarding to `sink`, its queue long enough to lose nothing."""
        configuration, endpoint = folder / "otelcol.yaml", free_endpoint()
        largest = {"max_recv_msg_size_mib": 64} if self.protocol == "grpc" else {}
        settings = {
            "receivers": {"otlp": {"protocols": {self.protocol: {"endpoint": endpoint} | largest}}},
            "processors": {
                "groupbytrace": {"wait_duration": f"{QUIET_SECONDS:g}s", "num_traces": 1_000_000},
                "batch": {},
            },
            "exporters": {
                "otlp": {
                    "endpoint": sink,
                    "tls": {"insecure": True},
                    "compression": "none",
                    "sending_queue": {"queue_size": 100_000},
                }
            },
            "service": {
                "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "warn"}},
                "pipelines": {
                    "traces": {
                        "receivers": ["otlp"],
                        "processors": ["groupbytrace", "batch"],
                        "exporters": ["otlp"],
                    }
                },
            },
        }
        configuration.write_text(json.dumps(settings))
        command = [str(OTELCOL), "--config", str(configuration)]
        return ChildProcess(self.name, command, listens={self.protocol: endpoint})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotel(ServerUnderTest):
    """rotel, a collector in Rust: receives, decodes and drops."""

    name: str = "rotel"
    forwards: bool = False

    def missing(self) -> str:
        """Its package."""
        return "" if self._agent() else _NOT_INSTALLED

    def start(self, sink: str, folder: Path) -> ChildProcess:
        """A new process; `sink` gets nothing."""
        listens: dict[str, str] = {"grpc": free_endpoint(), "http": free_endpoint()}
        command = [str(self._agent()), "start", "--exporter", "blackhole"]
        command += ["--otlp-grpc-max-recv-msg-size-mib", "64", "--pid-file", str(folder / "rotel.pid")]
        for protocol, endpoint in listens.items():
            command += [f"--otlp-{protocol}-endpoint", endpoint]
        return ChildProcess(self.name, command, listens=listens)

    def _agent(self) -> Path | None:
        return next(BENCH_ENVIRONMENT.glob("lib/python*/site-packages/rotel/rotel-agent"), None)


TRACEGRADE: tuple[Tracegrade, ...] = (
    Tracegrade(),
    Tracegrade(name="tracegrade-python", is_native=False),
    Tracegrade(name="tracegrade-uvicorn", listener="uvicorn"),
    Tracegrade(name="tracegrade-http", protocol="http"),
    Tracegrade(name="tracegrade-journal", has_journal=True),
    Tracegrade(name="tracegrade-store", has_store=True),
)
PEERS: tuple[ServerUnderTest, ...] = (
    Otelcol(),
    Otelcol(name="otelcol-http", protocol="http"),
    Rotel(),
    Rotel(name="rotel-http", protocol="http"),
    Naive(),
    Assembled(),
)


def scrape(endpoint: str) -> str:
    """The metrics that are served at `endpoint`."""
    with urllib.request.urlopen(f"http://{endpoint}/metrics", timeout=30) as response:
        text: str = response.read().decode()
    return text


def _tracegrade() -> str:
    return str(Path(sys.executable).with_name("tracegrade"))


def _results(text: str) -> dict[str, int]:
    counted = {"graded": 0, "other": 0}
    for labels, value in _series(text, "gen_ai_evaluation_results_total{"):
        verdict = 'score_label="pass"' in labels or 'score_label="fail"' in labels
        counted["graded" if verdict else "other"] += round(value)
    return counted


def _series(text: str, prefix: str) -> list[tuple[str, float]]:
    return [
        (line.rpartition(" ")[0], float(line.rpartition(" ")[2]))
        for line in text.splitlines()
        if line.startswith(prefix)
    ]
