"""A bench from start to end: a scratch service, its load in steps, and the figures.

A low rate says about what a span costs. From there the rate rises until the service no longer holds it, that
is refuses or falls behind; then what lies between is tried. The figures are those of the largest rate held.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from collector.errors import TracegradeError
from collector.tools.bench.load import Load, Sink
from collector.tools.bench.traffic import Traffic
from collector.tools.child_service import ChildService
from collector.tools.running_service import RunningService

LEAST_SECONDS, MOST_SECONDS = 10.0, 600.0
_START_SECONDS = 60.0
_WARM_UP_SHARE, _STEP_SHARE = 0.1, 0.1
_LOW_RATE = 2000.0
_TICK_SECONDS = 0.01
_FIRST_STEP, _STEP_FACTOR = 0.6, 1.4
_POLL_SECONDS = 0.25
_DRAIN_SECONDS = 25.0
"""After a refusal the clock that finishes traces stands still for 10 s."""
_LAG_SECONDS = 2.0
"""From the last span of a step until all are forwarded: the grace of the scratch service, a flush, a poll."""
_LEAST_SHARE = 0.95
_SCRATCH_SERVICE = "collector.tools.bench.scratch_service"
_FORWARDED = "tracegrade_spans_forwarded_total"
_PROC = Path("/proc")
_UTIME = 11  # fields of /proc/PID/stat behind the name: utime, stime


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
        if not (_PROC / "self" / "stat").exists():
            raise BenchError("this system does not tell what processes use: a bench needs /proc of Linux")
        self._tell("starting the scratch service")
        file = () if self._file is None else (str(self._file),)
        with (
            tempfile.TemporaryDirectory(prefix="tracegrade-bench-") as folder,
            Sink() as sink,
            ChildService(Path(folder, "log"), _SCRATCH_SERVICE, sink.endpoint, folder, *file) as child,
        ):
            endpoints = child.endpoints(_START_SECONDS)
            if not endpoints:
                raise BenchError(f"the scratch service did not start: {child.log()}")
            return self._measure(_Service(child.process.pid, endpoints["grpc"], endpoints["telemetry"]))

    def _measure(self, service: "_Service") -> Figures:
        started = time.monotonic()
        traffic = self._traffic()
        if not traffic.spans:
            raise BenchError("there are no spans to send")
        resident, _ = _memory_bytes(service.pid)
        load = Load(service.grpc, traffic)
        try:
            self._tell(f"warming up for {self._seconds * _WARM_UP_SHARE:.0f} s")
            self._step(service, load, _LOW_RATE, self._seconds * _WARM_UP_SHARE)
            seconds = self._seconds * _STEP_SHARE
            self._tell(f"measuring the cost of a span for {seconds:.0f} s")
            step = self._step(service, load, _LOW_RATE, seconds)
            cost, held, missed = step.cpu_seconds_a_span, 0.0, 0.0
            rate = _FIRST_STEP / cost
            while not (held or missed) or time.monotonic() - started < self._seconds - seconds:
                left = max(self._seconds - (time.monotonic() - started), seconds)
                self._tell(f"{rate:,.0f} spans/s for {seconds:.0f} s, {left:.0f} s left")
                step = self._step(service, load, rate, seconds)
                if step.is_held:
                    held, cost = step.rate, step.cpu_seconds_a_span
                else:
                    missed = rate
                rate = (held + missed) / 2 if missed else rate * _STEP_FACTOR
            _, peak = _memory_bytes(service.pid)
            return Figures(
                cpu_micros_a_span=cost * 1e6,
                spans_a_trace=traffic.spans / traffic.traces,
                bytes_a_span=traffic.bytes / traffic.spans,
                spans_a_second=held,
                is_limit=missed > 0,
                cpu_at_rate=cost * held,
                processes=sum(1 for _ in _tree(service.pid)),
                cores=os.cpu_count() or 1,
                resident_bytes=resident,
                peak_bytes=peak,
                seconds=time.monotonic() - started,
            )
        finally:
            load.close()

    def _step(self, service: "_Service", load: Load, rate: float, seconds: float) -> "_Step":
        """Send at `rate` and wait until all is forwarded."""
        before, spans, refusals = _cpu_seconds(service.pid), load.spans, load.refusals
        sent = load.send(seconds, rate)
        stopped = time.monotonic()
        while (forwarded := service.forwarded()) < load.spans:
            if time.monotonic() - stopped > _DRAIN_SECONDS:
                raise BenchError(
                    f"{load.spans - forwarded:.0f} of {load.spans} spans did not come through within "
                    f"{_DRAIN_SECONDS:g} s: the traffic does not finish, or the machine is too busy"
                )
            time.sleep(_POLL_SECONDS)
        lag = time.monotonic() - stopped
        is_held = load.refusals == refusals and sent >= _LEAST_SHARE * rate and lag <= _LAG_SECONDS
        used = max(_cpu_seconds(service.pid) - before, _TICK_SECONDS)
        return _Step(sent, used / max(load.spans - spans, 1), is_held)


@dataclass(frozen=True, slots=True)
class _Step:
    rate: float
    cpu_seconds_a_span: float
    is_held: bool


@dataclass(frozen=True, slots=True)
class _Service:
    pid: int
    grpc: str
    telemetry: str

    def forwarded(self) -> float:
        """Spans that left so far."""
        samples = RunningService(self.telemetry).samples()
        return sum(value for _, value in samples.get(_FORWARDED, ()))


def _cpu_seconds(pid: int) -> float:
    """CPU time of the process and its children so far."""
    ticks = 0
    for each in _tree(pid):
        fields = (_PROC / str(each) / "stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[_UTIME]) + int(fields[_UTIME + 1])
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> tuple[int, int]:
    """What the process and its children have resident now, and the sum of the most each ever had."""
    now = most = 0
    for each in _tree(pid):
        for line in (_PROC / str(each) / "status").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == "VmRSS":
                now += int(value.split()[0]) * 1024
            elif key == "VmHWM":
                most += int(value.split()[0]) * 1024
    return now, most


def _tree(pid: int) -> Iterator[int]:
    """The process and its children."""
    yield pid
    for children in (_PROC / str(pid) / "task").glob("*/children"):
        for child in children.read_text().split():
            yield from _tree(int(child))
