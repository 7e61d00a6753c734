"""A bench from start to end: a scratch service, its load in steps, and the figures.

A low rate says about what a span costs. From there the rate rises until the service no longer holds it, that
is refuses or falls behind; then what lies between is tried. The figures are those of the largest rate held.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from collector.errors import TracegradeError
from collector.tools.bench.load import Load, Sink
from collector.tools.bench.process_usage import can_measure, cpu_seconds, memory_bytes, process_count
from collector.tools.bench.traffic import Traffic

LEAST_SECONDS, MOST_SECONDS = 10.0, 600.0
_START_SECONDS = 60.0
_WARM_UP_SHARE, _COST_SHARE, _STEP_SHARE = 0.1, 0.1, 0.1
_COST_RATE = 2000.0
_FIRST_STEP, _STEP_FACTOR = 0.6, 1.4
_POLL_SECONDS = 0.25
_DRAIN_SECONDS = 15.0
"""After a refusal the clock that finishes traces stands still for 10 s."""
_LAG_SECONDS = 1.5
"""Spans of so long may be under way while a rate is held: the grace of the scratch service, and a flush."""
_LEAST_SHARE = 0.95
_READY = re.compile(r"^ready: (.*)$", re.MULTILINE)
_FORWARDED = "tracegrade_spans_forwarded_total"
_SAMPLE = re.compile(r"^(\w+)(?:\{.*\})? (\S+)$", re.MULTILINE)


class BenchError(TracegradeError):
    """Nothing could be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was found. Memory is of all processes of the service; `cores` is what the machine has."""

    cpu_micros_a_span: float
    spans_a_trace: float
    bytes_a_span: float
    spans_a_second: float
    """The largest rate that was held."""
    is_limit: bool
    """Whether a larger one was tried and not held."""
    cpu_at_rate: float
    """Cores in use at that rate."""
    processes: int
    cores: int
    resident_bytes: int
    """Before the first span."""
    peak_bytes: int
    seconds: float

    def to_json(self) -> str:
        """As `tracegrade bench --json` prints them."""
        return json.dumps(asdict(self), indent=2)


class Bench:
    """Measures the configuration in `file` with `traffic`; `tell` hears how far it is.

    `traffic` is made when the service is ready: a trace that began before is not graded as a whole one.
    """

    def __init__(
        self, file: Path | None, traffic: Callable[[], Traffic], seconds: float, tell: Callable[[str], None]
    ) -> None:
        self._file = file
        self._traffic = traffic
        self._seconds = seconds
        self._tell = tell

    def run(self) -> Figures:
        """Measure, for about `seconds`.

        Raises:
            BenchError: the service did not start, or nothing came through.
        """
        if not can_measure():
            raise BenchError("this system does not tell what processes use: a bench needs /proc of Linux")
        with (
            tempfile.TemporaryDirectory(prefix="tracegrade-bench-") as folder,
            Sink() as sink,
            self._service(sink.endpoint, folder) as service,
        ):
            return self._measure(service)

    def _measure(self, service: "_Service") -> Figures:
        started = time.monotonic()
        traffic = self._traffic()
        if not traffic.spans:
            raise BenchError("there are no spans to send")
        resident, _ = memory_bytes(service.pid)
        load = Load(service.grpc, traffic)
        try:
            self._tell(f"warming up for {self._seconds * _WARM_UP_SHARE:.0f} s")
            load.send(self._seconds * _WARM_UP_SHARE, _COST_RATE)
            self._settle(service, load, _DRAIN_SECONDS)
            cost = self._cost(service, load)
            held, cores, missed = 0.0, 0.0, 0.0
            rate = _FIRST_STEP / cost
            while time.monotonic() - started < self._seconds * (1 - _STEP_SHARE):
                seconds = self._seconds * _STEP_SHARE
                left = self._seconds - (time.monotonic() - started)
                self._tell(f"{rate:,.0f} spans/s for {seconds:.0f} s, {left:.0f} s left")
                before, refusals = cpu_seconds(service.pid), load.refusals
                sent = load.send(seconds, rate)
                used = (cpu_seconds(service.pid) - before) / seconds
                behind = load.spans - service.forwarded()
                if load.refusals > refusals or sent < _LEAST_SHARE * rate or behind > _LAG_SECONDS * rate:
                    missed = rate
                    if not self._settle(service, load, left - 2 * seconds):
                        break
                else:
                    held, cores = sent, used
                rate = (held + missed) / 2 if missed else rate * _STEP_FACTOR
            _, peak = memory_bytes(service.pid)
            return Figures(
                cpu_micros_a_span=(cores / held if held else cost) * 1e6,
                spans_a_trace=traffic.spans / traffic.traces,
                bytes_a_span=traffic.bytes / traffic.spans,
                spans_a_second=held,
                is_limit=missed > 0,
                cpu_at_rate=cores,
                processes=process_count(service.pid),
                cores=os.cpu_count() or 1,
                resident_bytes=resident,
                peak_bytes=peak,
                seconds=time.monotonic() - started,
            )
        finally:
            load.close()

    def _cost(self, service: "_Service", load: Load) -> float:
        """CPU seconds a span, of receiving, grading and forwarding."""
        seconds = self._seconds * _COST_SHARE
        self._tell(f"measuring the cost of a span for {seconds:.0f} s")
        before, spans = cpu_seconds(service.pid), load.spans
        load.send(seconds, _COST_RATE)
        if not self._settle(service, load, _DRAIN_SECONDS):
            raise BenchError(
                f"of {load.spans} spans {service.forwarded():.0f} came through: the machine is too busy, or the "
                "traffic does not finish"
            )
        return max(cpu_seconds(service.pid) - before, 1e-2) / max(load.spans - spans, 1)

    def _settle(self, service: "_Service", load: Load, seconds: float) -> bool:
        """Wait until all is forwarded, for so long at most; whether it is."""
        deadline = time.monotonic() + seconds
        while service.forwarded() < load.spans:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    @contextmanager
    def _service(self, sink: str, folder: str) -> Iterator["_Service"]:
        self._tell("starting the scratch service")
        command: Sequence[str] = (
            *(sys.executable, "-m", "collector.tools.bench.scratch_service", sink, folder),
            *([] if self._file is None else [str(self._file)]),
        )
        log = Path(folder, "log")
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while (ready := _READY.search(log.read_text(errors="replace"))) is None:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise BenchError(
                        f"the scratch service did not start: {log.read_text(errors='replace')[-2000:]}"
                    )
                time.sleep(0.05)
            endpoints = dict(pair.split("=", 1) for pair in ready[1].split())
            yield _Service(process.pid, endpoints["grpc"], endpoints["telemetry"])
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True)
class _Service:
    pid: int
    grpc: str
    telemetry: str

    def forwarded(self) -> float:
        """Spans that left so far."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.telemetry}/metrics", timeout=30) as response:
            text = response.read().decode()
        return sum(
            float(value)
            for name, value in _SAMPLE.findall(text)
            if name == "tracegrade_spans_forwarded_total"
        )
