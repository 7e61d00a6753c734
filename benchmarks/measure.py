"""One measurement: a fresh server, a load, and everything that must hold for its figures to be trusted."""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from sys import executable

from benchmarks.child_process import (
    ChildProcess,
    MeasurementRefused,
    cpu_seconds,
    peak_rss_mib,
    thread_seconds,
)
from benchmarks.load import Order, Sent
from benchmarks.servers import ServerUnderTest
from benchmarks.sink import SinkCounts
from benchmarks.workload import Shape

CONNECTIONS = 16
_START_SECONDS = 600.0  # reading the criteria of 10,000 agents
_WARM_UP = Order(seconds=1.0)
_LOAD_TIMEOUT_SECONDS = 120.0
_DRAIN_TIMEOUT_SECONDS = 180.0
_POLL_SECONDS = 0.05
_SETTLE_SECONDS = 1.0  # for a server that forwards nothing


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


class RunningServer:
    """A server with a load before it and a sink behind it."""

    def __init__(
        self,
        server: ServerUnderTest,
        process: ChildProcess,
        load: ChildProcess,
        sink: ChildProcess,
        endpoints: Mapping[str, str],
    ) -> None:
        self._server, self._process, self._load, self._sink = server, process, load, sink
        self.endpoints = endpoints
        self.total = Sent()

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the server process so far."""
        return cpu_seconds(self._process.pid)

    @property
    def thread_seconds(self) -> float:
        """The same of its threads, for short work."""
        return thread_seconds(self._process.pid)

    def send(self, order: Order) -> Measurement:
        """Send what is ordered and wait until all of it has left the server."""
        before = self.cpu_seconds
        try:
            answer = self._load.ask(json.dumps(asdict(order)), order.seconds + _LOAD_TIMEOUT_SECONDS)
        except MeasurementRefused as refusal:
            said = f"{self._process.name} said last:\n{self._process.last_lines()}"
            raise MeasurementRefused(f"{refusal}\n{said}") from None
        sent = Sent(**json.loads(answer))
        self.total.add(sent)
        self._wait_until_forwarded()
        return Measurement(
            spans=sent.spans,
            requests=sent.requests,
            cpu_seconds=self.cpu_seconds - before,
            load_seconds=sent.seconds,
            latency_median=median(sent.latencies),
            latency_p99=quantiles(sent.latencies, n=100)[-1],
            peak_rss_mib=peak_rss_mib(self._process.pid),
        )

    def _wait_until_forwarded(self) -> None:
        self._process.require_alive()
        if not self._server.forwards:
            time.sleep(_SETTLE_SECONDS)
            return
        deadline = time.monotonic() + _DRAIN_TIMEOUT_SECONDS
        while (spans := _counts(self._sink).spans) < self.total.spans:
            self._process.require_alive()
            if time.monotonic() > deadline:
                raise MeasurementRefused(
                    f"{self._server.name}: {spans} of {self.total.spans} spans were forwarded "
                    f"{_DRAIN_TIMEOUT_SECONDS:g} s after the last request"
                )
            time.sleep(_POLL_SECONDS)


@contextmanager
def running(
    server: ServerUnderTest, shape: Shape, *, connections: int = CONNECTIONS, agents: int = 0
) -> Iterator[RunningServer]:
    """A fresh `server` to send requests of `shape` to; on leaving, its accounts are checked.

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
            ready = process.ready(_START_SECONDS)
            command = [executable, "-m", "benchmarks.load", server.protocol, ready[server.protocol]]
            command += [shape.name, str(connections), str(agents)]
            with ChildProcess("load", command) as load:
                load.ready()
                run = RunningServer(server, process, load, sink, ready)
                yield run
            server.require_graded(ready, run.total.traces)
        # Only when the server has ended can nothing more come.
        require_exact(server, run.total, _counts(sink))


def measure(server: ServerUnderTest, shape: Shape, order: Order) -> Measurement:
    """Start `server`, warm it up for a second, and send it `order` in requests of `shape`.

    Raises:
        MeasurementRefused: as of `running`.
    """
    with running(server, shape) as run:
        run.send(_WARM_UP)
        return run.send(order)


def require_exact(server: ServerUnderTest, sent: Sent, counts: SinkCounts) -> None:
    """Raise `MeasurementRefused` unless each span sent arrived once, with the events `server` promises."""
    spans = sent.spans if server.forwards else 0
    if not spans == counts.spans == counts.distinct_spans:
        raise MeasurementRefused(
            f"{server.name}: {sent.spans} spans were sent, {counts.spans} forwarded, "
            f"{counts.distinct_spans} of them different"
        )
    events = sent.traces * server.result_events_per_trace
    if counts.result_events != events:
        raise MeasurementRefused(
            f"{server.name}: {counts.result_events} evaluation events were forwarded, expected {events}"
        )


def _counts(sink: ChildProcess) -> SinkCounts:
    return SinkCounts(**json.loads(sink.ask("counts", 10)))
