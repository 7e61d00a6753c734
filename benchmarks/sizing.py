"""What a configuration costs on this machine: a scratch service of it under a load that rises in steps.

A low rate gives a first estimate of what a span costs. From there the rate rises until the service no longer
holds it, that is, refuses or falls behind; then the rates in between are tried. The figures are those of the
largest rate held.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.child_process import (
    ChildProcess,
    MeasurementRefused,
    cpu_seconds,
    peak_rss_mib,
    process_count,
    rss_mib,
)
from benchmarks.sizing_load import Load, Sink
from benchmarks.sizing_traffic import Traffic, recorded_traffic, scripted_traffic
from collector.configuration import load_configuration
from collector.criteria import load_criteria
from collector.tools.running_service import RunningService
from collector.workers.custom_evaluators import load_custom_evaluators

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
_FORWARDED = "tracegrade_spans_forwarded_total"
_ANY_AGENT = "order_support_agent"
"""An agent that only patterns apply to, where criteria name none."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The result. Memory is that of all processes of the service."""

    cpu_micros_per_span: float
    spans_per_trace: float
    bytes_per_span: float
    spans_per_second: float
    """The largest rate that was held."""
    is_limit: bool
    """Whether a larger one was tried and not held."""
    processes: int
    start_mib: float
    """Before the first span."""
    peak_mib: float

    def lines(self) -> Iterator[str]:
        """The figures as they are printed."""
        cost, rate = self.cpu_micros_per_span, self.spans_per_second
        yield (
            f"CPU        {cost:.0f} µs a span, {cost * self.spans_per_trace / 1000:.2f} ms a trace of "
            f"{self.spans_per_trace:.0f} spans of {self.bytes_per_span:.0f} bytes; "
            f"a whole core is {1e6 / cost:,.0f} spans/s"
        )
        if rate:
            limit = "" if self.is_limit else ", and there was no time to try more"
            yield (
                f"Rate held  {rate:,.0f} spans/s, {rate / self.spans_per_trace:,.0f} traces/s{limit}; "
                f"{cost * rate / 1e6:.2f} cores of {os.cpu_count()} in use, {self.processes} processes"
            )
        else:
            yield (
                "Rate held  none that was tried: the machine is too busy for a figure, or --seconds too short"
            )
        yield f"Memory     {self.start_mib:.0f} MiB at the start, at most {self.peak_mib:.0f} MiB"


def sizing_lines(config: Path | None, recorded: Sequence[Path], seconds: float) -> Iterator[str]:
    """The figures of the service file `config`, with the traffic in `recorded`, or else scripted runs."""
    if recorded:
        traffic = partial(recorded_traffic, recorded)
    else:
        settings = load_configuration(config, os.environ)
        criteria = load_criteria(
            settings.criteria_patterns(),
            environment=os.environ,
            evaluators=load_custom_evaluators(settings.processors.evaluation).known,
        )
        traffic = partial(scripted_traffic, criteria.exact_names() or (_ANY_AGENT,))
    yield from size(config, traffic, seconds, partial(print, file=sys.stderr, flush=True)).lines()


def size(
    config: Path | None, traffic: Callable[[], Traffic], seconds: float, report: Callable[[str], None]
) -> Figures:
    """Measure the configuration in the file `config` for about `seconds`; `report` is called at each step.

    `traffic` is called when the service is ready: a trace that began before is not graded as a whole one.

    Raises:
        MeasurementRefused: the service did not start, or spans were not forwarded.
    """
    report("starting the scratch service")
    with tempfile.TemporaryDirectory(prefix="tracegrade-sizing-") as folder, Sink() as sink:
        command = [sys.executable, "-m", "benchmarks.scratch_service", sink.endpoint, folder]
        command += [] if config is None else [str(config.absolute())]
        with ChildProcess("the scratch service", command) as process:
            endpoints = process.ready(_START_SECONDS)
            requests = traffic()
            if not requests.spans:
                raise MeasurementRefused("there are no spans to send")
            load = Load(endpoints["grpc"], requests)
            try:
                return _Sizing(process.pid, endpoints["telemetry"], load, requests, report).run(seconds)
            finally:
                load.close()


@dataclass(frozen=True, slots=True)
class _Step:
    rate: float
    cpu_seconds_per_span: float
    is_held: bool


class _Sizing:
    def __init__(
        self, pid: int, telemetry: str, load: Load, traffic: Traffic, report: Callable[[str], None]
    ) -> None:
        self._pid = pid
        self._service = RunningService(telemetry)
        self._load = load
        self._traffic = traffic
        self._report = report

    def run(self, seconds: float) -> Figures:
        started = time.monotonic()
        start_mib = rss_mib(self._pid)
        self._report(f"warming up for {seconds * _WARM_UP_SHARE:.0f} s")
        self._step(_LOW_RATE, seconds * _WARM_UP_SHARE)
        step_seconds = seconds * _STEP_SHARE
        self._report(f"measuring the cost of a span for {step_seconds:.0f} s")
        cost = self._step(_LOW_RATE, step_seconds).cpu_seconds_per_span
        held = missed = 0.0
        rate = _FIRST_STEP / cost
        while not (held or missed) or time.monotonic() - started < seconds - step_seconds:
            left = max(seconds - (time.monotonic() - started), step_seconds)
            self._report(f"{rate:,.0f} spans/s for {step_seconds:.0f} s, {left:.0f} s left")
            step = self._step(rate, step_seconds)
            if step.is_held:
                held, cost = step.rate, step.cpu_seconds_per_span
            else:
                missed = rate
            rate = (held + missed) / 2 if missed else rate * _STEP_FACTOR
        return Figures(
            cpu_micros_per_span=cost * 1e6,
            spans_per_trace=self._traffic.spans / self._traffic.traces,
            bytes_per_span=self._traffic.bytes / self._traffic.spans,
            spans_per_second=held,
            is_limit=missed > 0,
            processes=process_count(self._pid),
            start_mib=start_mib,
            peak_mib=peak_rss_mib(self._pid),
        )

    def _step(self, rate: float, seconds: float) -> _Step:
        """Send at `rate` and wait until all is forwarded."""
        load = self._load
        before, spans, refusals = cpu_seconds(self._pid), load.spans, load.refusals
        sent = load.send(seconds, rate)
        stopped = time.monotonic()
        while (forwarded := self._forwarded()) < load.spans:
            if time.monotonic() - stopped > _DRAIN_SECONDS:
                raise MeasurementRefused(
                    f"{load.spans - forwarded:.0f} of {load.spans} spans were not forwarded within "
                    f"{_DRAIN_SECONDS:g} s: their traces do not finish, or the machine is too busy"
                )
            time.sleep(_POLL_SECONDS)
        lag = time.monotonic() - stopped
        is_held = load.refusals == refusals and sent >= _LEAST_SHARE * rate and lag <= _LAG_SECONDS
        used = max(cpu_seconds(self._pid) - before, _TICK_SECONDS)
        return _Step(sent, used / max(load.spans - spans, 1), is_held)

    def _forwarded(self) -> float:
        return sum(value for _, value in self._service.samples().get(_FORWARDED, ()))
