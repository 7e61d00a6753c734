"""What a big scrape takes, and what it costs those who send meanwhile.

The server is the real one, with 500 agents named in criteria and 10 evaluations each: about 95,000 samples.
Scrapes ask as Prometheus does, for OpenMetrics and gzip. First they are timed one by one, after every series
changed, after few did, and after nothing did. Then senders keep a steady pace, in turn without scrapes and
with one each second, and the times of their acknowledgements are compared.
`python -m benchmarks.scrape URL` is the one that scrapes each second, until it is ended.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from benchmarks.child_process import REPOSITORY, ChildProcess, MeasurementRefused
from benchmarks.sink import EXPORT_METHOD

AGENTS, EVALUATIONS = 500, 10
_HEADERS = {
    "accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2",
    "accept-encoding": "gzip",
}
_GRACE_SECONDS = 0.2
_SCRAPES = 5
_ROUNDS, _ROUND_SECONDS = 4, 8.0
_SENDERS, _REQUESTS_PER_SECOND, _TRACES_PER_REQUEST = 4, 20.0, 2


def scrape_lines() -> Iterator[str]:
    """Measure scrapes, then acknowledgements with and without them, one line each."""
    with tempfile.TemporaryDirectory(prefix="tracegrade-benchmark-") as folder:
        command = [str(Path(sys.executable).with_name("tracegrade")), "run", "--config"]
        with ChildProcess("tracegrade", [*command, str(_configuration(Path(folder)))]) as server:
            ready = server.ready(60)
            url = f"http://{ready['telemetry']}/metrics"
            senders = [_Sender(ready["grpc"], number) for number in range(_SENDERS)]
            yield from _timed_lines(url, senders[0])
            yield from _acknowledgement_lines(url, senders)
            server.require_alive()


def _timed_lines(url: str, sender: "_Sender") -> Iterator[str]:
    samples = sum(1 for line in scrape(url).splitlines() if not line.startswith(b"#"))
    yield f"scrape      {samples} samples"
    for changed, agents in (("every series", AGENTS), ("1 agent in 100", AGENTS // 100), ("nothing", 0)):
        seconds = []
        for _ in range(_SCRAPES):
            for first in range(0, agents, 50):
                sender.send(range(first, min(first + 50, agents)))
            time.sleep(_GRACE_SECONDS + 1.5 if agents else 0.2)
            asked = time.perf_counter()
            with urllib.request.urlopen(urllib.request.Request(url, headers=_HEADERS), timeout=30) as answer:
                body = answer.read()
            seconds.append(time.perf_counter() - asked)
        yield (
            f"scrape      {changed + ' changed':<24}{median(seconds) * 1e3:6.0f} ms "
            f"[{min(seconds) * 1e3:.0f}-{max(seconds) * 1e3:.0f}]  {len(body) >> 10} KiB gzip"
        )


def _acknowledgement_lines(url: str, senders: "Sequence[_Sender]") -> Iterator[str]:
    latencies: dict[str, list[float]] = {"without scrapes": [], "a scrape a second": []}
    for number in range(2 * _ROUNDS):
        kind = list(latencies)[(number + number // 2) % 2]
        if kind == "without scrapes":
            latencies[kind] += _paced(senders)
        else:
            command = [sys.executable, "-m", "benchmarks.scrape", url]
            scraper = subprocess.Popen(command, cwd=REPOSITORY)
            try:
                latencies[kind] += _paced(senders)
                if scraper.poll() is not None:
                    raise MeasurementRefused("the scraper has ended")
            finally:
                scraper.terminate()
                scraper.wait()
    for kind, found in latencies.items():
        in_hundreds = quantiles(found, n=100)
        yield (
            f"acks        {kind:<24}{median(found) * 1e3:6.1f} ms  p95 {in_hundreds[94] * 1e3:.1f} ms  "
            f"p99 {in_hundreds[98] * 1e3:.1f} ms  worst {max(found) * 1e3:.1f} ms  ({len(found)} requests)"
        )


class _Sender:
    """One connection that sends traces of agents, each with a trace id of its own."""

    def __init__(self, target: str, number: int) -> None:
        channel = grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
        self._export = channel.unary_unary(EXPORT_METHOD)
        self._next_trace = (number + 1) << 40
        self._next_agent = number * AGENTS // _SENDERS

    def send(self, agents: Sequence[int]) -> float:
        """Send one trace of each of `agents`; the seconds until they were acknowledged."""
        body = self._request(agents)
        asked = time.perf_counter()
        self._export(body, timeout=30, wait_for_ready=True)
        return time.perf_counter() - asked

    def keep_sending(self, seconds: float) -> list[float]:
        """Send at a steady pace for `seconds`, the agents in turn; the times of the acknowledgements."""
        latencies: list[float] = []
        started = time.perf_counter()
        while (next_at := len(latencies) / _REQUESTS_PER_SECOND) < seconds:
            time.sleep(max(0.0, started + next_at - time.perf_counter()))
            first = self._next_agent
            self._next_agent += _TRACES_PER_REQUEST
            latencies.append(self.send([(first + number) % AGENTS for number in range(_TRACES_PER_REQUEST)]))
        return latencies

    def _request(self, agents: Sequence[int]) -> bytes:
        now = time.time_ns()
        spans: list[Span] = []
        for agent in agents:
            self._next_trace += 1
            trace_id = self._next_trace.to_bytes(16)
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            invocation = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": f"agent-{agent}",
                "gen_ai.output.messages": json.dumps(
                    [{"role": "assistant", "parts": [{"type": "text", "content": "done"}]}]
                ),
            }
            spans += [
                _span(trace_id, b"the-tool", b"an-agent", now, tool),
                _span(trace_id, b"an-agent", b"", now, invocation),
            ]
        resource = ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])
        return ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString()


def scrape(url: str) -> bytes:
    """The text of one scrape, asked for as Prometheus does."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=_HEADERS), timeout=30) as answer:
        return gzip.decompress(answer.read())


def _scrape_for_ever(url: str) -> None:
    while True:
        asked = time.monotonic()
        with urllib.request.urlopen(urllib.request.Request(url, headers=_HEADERS), timeout=30) as answer:
            answer.read()
        time.sleep(max(0.0, asked + 1.0 - time.monotonic()))


def _paced(senders: Sequence[_Sender]) -> list[float]:
    """The times of acknowledgements of all senders, sending at once."""
    found: list[float] = []
    failures: list[Exception] = []

    def send(sender: _Sender) -> None:
        try:
            found.extend(sender.keep_sending(_ROUND_SECONDS))
        except Exception as failure:  # whatever it is, nothing may be measured with it
            failures.append(failure)

    threads = [threading.Thread(target=send, args=(sender,)) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise MeasurementRefused(f"a sender failed: {failures[0]!r}")
    return found


def _span(trace_id: bytes, span_id: bytes, parent: bytes, now: int, attributes: dict[str, str]) -> Span:
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
        name=attributes["gen_ai.operation.name"],
        start_time_unix_nano=now - 2_000_000,
        end_time_unix_nano=now - 1_000_000,
        attributes=[
            KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in attributes.items()
        ],
    )


def _configuration(folder: Path) -> Path:
    evaluations = [
        {"evaluator": "ascii-printable-only", "name": f"check-{number}"} for number in range(EVALUATIONS)
    ]
    agents = {f"agent-{number}": {"evaluations": evaluations} for number in range(AGENTS)}
    (folder / "criteria.yaml").write_text(json.dumps({"agents": agents}))
    configuration = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "processors": {
            "group_by_trace": {"root_grace": f"{round(_GRACE_SECONDS * 1000)}ms"},
            "evaluation": {"criteria": [str(folder / "criteria.yaml")]},
        },
        "exporters": {"prometheus": {"endpoint": "127.0.0.1:0"}},
        "service": {"telemetry": {"self_check": {"enabled": False}}},
    }
    path = folder / "tracegrade.yaml"
    path.write_text(json.dumps(configuration))
    return path


if __name__ == "__main__":
    _scrape_for_ever(sys.argv[1])
