"""One measurement: a fresh server, a load, and everything that must hold for its figures to be trusted."""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from sys import executable

from benchmarks.child_process import ChildProcess, MeasurementRefused
from benchmarks.load import Sent
from benchmarks.process_usage import cpu_seconds, peak_rss_mib
from benchmarks.servers import ServerUnderTest
from benchmarks.sink import SinkCounts
from benchmarks.workload import Shape

CONNECTIONS = 16
_WARM_UP_SECONDS = 1.0
_LOAD_TIMEOUT_SECONDS = 120.0
_DRAIN_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one server used for one load, from its first request until its last span was forwarded.

    CPU is of the whole server process; the latencies are those of acknowledgements, in seconds.
    """

    spans: int
    requests: int
    cpu_seconds: float
    load_seconds: float
    latency_median: float
    latency_p99: float
    peak_rss_mib: float

    @property
    def cpu_micros_per_span(self) -> float:
        """CPU-µs per span received, graded and forwarded."""
        return self.cpu_seconds * 1e6 / self.spans

    @property
    def cpu_micros_per_request(self) -> float:
        """CPU-µs per request received, with all that follows from it."""
        return self.cpu_seconds * 1e6 / self.requests

    @property
    def spans_per_second(self) -> float:
        """Spans acknowledged per second of wall time."""
        return self.spans / self.load_seconds


def measure(server: ServerUnderTest, shape: Shape, seconds: float) -> Measurement:
    """Start `server`, warm it up, load it for about `seconds` with requests of `shape`.

    Raises:
        MeasurementRefused: a request failed, a span was not forwarded exactly once, or the server's own
            word on what it graded differs from what was sent.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tracegrade-benchmark-") as folder,
        ChildProcess("sink", [executable, "-m", "benchmarks.sink"]) as sink,
    ):
        sink_endpoint = sink.ready()["grpc"]
        with server.start(sink_endpoint, Path(folder)) as process:
            ready = process.ready()
            command = [executable, "-m", "benchmarks.load", ready["grpc"], shape.name, str(CONNECTIONS)]
            with ChildProcess("load", command) as load:
                load.ready()
                total = _load(load, _WARM_UP_SECONDS, process)
                _wait_until_forwarded(sink, process, total.spans)
                before = cpu_seconds(process.pid)
                sent = _load(load, seconds, process)
                total.add(sent)
                _wait_until_forwarded(sink, process, total.spans)
                used = cpu_seconds(process.pid) - before
            rss = peak_rss_mib(process.pid)
            server.require_graded(ready, total.traces)
        # Only when the server has ended can nothing more come.
        require_exact(server, total, _counts(sink))
    return Measurement(
        spans=sent.spans,
        requests=sent.requests,
        cpu_seconds=used,
        load_seconds=sent.seconds,
        latency_median=median(sent.latencies),
        latency_p99=quantiles(sent.latencies, n=100)[-1],
        peak_rss_mib=rss,
    )


def require_exact(server: ServerUnderTest, sent: Sent, counts: SinkCounts) -> None:
    """Raise `MeasurementRefused` unless each span sent arrived once, with the events `server` promises."""
    if not sent.spans == counts.spans == counts.distinct_spans:
        raise MeasurementRefused(
            f"{server.name}: {sent.spans} spans were sent, {counts.spans} forwarded, "
            f"{counts.distinct_spans} of them different"
        )
    events = sent.traces * server.result_events_per_trace
    if counts.result_events != events:
        raise MeasurementRefused(
            f"{server.name}: {counts.result_events} evaluation events were forwarded, expected {events}"
        )


def _load(load: ChildProcess, seconds: float, server: ChildProcess) -> Sent:
    try:
        return Sent(**json.loads(load.ask(str(seconds), seconds + _LOAD_TIMEOUT_SECONDS)))
    except MeasurementRefused as refusal:
        raise MeasurementRefused(f"{refusal}\n{server.name} said last:\n{server.last_lines()}") from None


def _counts(sink: ChildProcess) -> SinkCounts:
    return SinkCounts(**json.loads(sink.ask("counts", 10)))


def _wait_until_forwarded(sink: ChildProcess, server: ChildProcess, spans: int) -> None:
    deadline = time.monotonic() + _DRAIN_TIMEOUT_SECONDS
    while True:
        counts = _counts(sink)
        if counts.spans >= spans:
            return
        server.require_alive()
        if time.monotonic() > deadline:
            raise MeasurementRefused(
                f"{server.name}: {counts.spans} of {spans} spans were forwarded "
                f"{_DRAIN_TIMEOUT_SECONDS:g} s after the last request"
            )
        time.sleep(_POLL_SECONDS)
