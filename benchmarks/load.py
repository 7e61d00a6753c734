"""The senders of every measurement: connections with one export request in flight each, as SDKs have.

`python -m benchmarks.load TARGET SHAPE CONNECTIONS` builds its requests, announces itself on stderr and then
sends whole passes for every line `SECONDS` on stdin: each connection begins passes until the time is over.
The answer is one line of JSON with what was sent. Any request that fails ends the process.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from benchmarks.sink import EXPORT_METHOD
from benchmarks.workload import DISTINCT_PROCESSES, SHAPES, Shape, TemplateRequest, process_requests

MAX_SECONDS = 120.0
MAX_PASSES = 1000
"""Passes of one connection in one go, whatever the time."""

_REQUEST_TIMEOUT_SECONDS = 30.0
_AGE_OF_FIRST_SPAN_NANOS = 240 * 10**9


@dataclass(slots=True)
class Sent:
    """What was sent and acknowledged, and how long the acknowledgements took."""

    requests: int = 0
    bytes: int = 0
    spans: int = 0
    traces: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def add(self, other: "Sent") -> None:
        """Add what another connection sent beside it."""
        self.requests += other.requests
        self.bytes += other.bytes
        self.spans += other.spans
        self.traces += other.traces
        self.seconds = max(self.seconds, other.seconds)
        self.latencies.extend(other.latencies)


class Connection:
    """One exporting process: its own connection, its requests in order, one in flight."""

    def __init__(self, target: str, shape: Shape, requests: Sequence[TemplateRequest], number: int) -> None:
        self._shape = shape
        self._requests = requests
        self._next_pass = number << 20  # passes of different connections never meet
        channel = grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
        self._export = channel.unary_unary(EXPORT_METHOD)

    def send(self, seconds: float) -> Sent:
        """Send at least one pass, and further ones as long as `seconds` have not gone by.

        Raises:
            grpc.RpcError: a request failed.
            ValueError: the receiver rejected spans.
        """
        sent = Sent()
        started = time.perf_counter()
        for _ in range(MAX_PASSES):
            for request in self._requests:
                body = request.for_pass(self._next_pass)
                asked = time.perf_counter()
                answer = self._export(body, timeout=_REQUEST_TIMEOUT_SECONDS, wait_for_ready=True)
                sent.latencies.append(time.perf_counter() - asked)
                if answer:
                    _require_full_success(answer)
                sent.bytes += len(body)
            self._next_pass += 1
            sent.requests += len(self._requests)
            sent.spans += self._shape.spans
            sent.traces += self._shape.traces
            if time.perf_counter() - started >= seconds:
                break
        sent.seconds = time.perf_counter() - started
        return sent


def send_all(connections: Sequence[Connection], seconds: float) -> Sent:
    """Let all connections send at once; the first failure ends the process."""
    total = Sent()
    lock = threading.Lock()

    def send(connection: Connection) -> None:
        try:
            sent = connection.send(seconds)
        except Exception as error:  # whatever it is, nothing may be measured with it
            print(f"load failed: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        with lock:
            total.add(sent)

    threads = [threading.Thread(target=send, args=(connection,)) for connection in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total


def main() -> None:
    """Send for every line on stdin."""
    target, shape_name, count = sys.argv[1:]
    shape = next(shape for shape in SHAPES if shape.name == shape_name)
    start = time.time_ns() - _AGE_OF_FIRST_SPAN_NANOS
    requests = [process_requests(process, shape, start) for process in range(DISTINCT_PROCESSES)]
    connections = [
        Connection(target, shape, requests[number % DISTINCT_PROCESSES], number)
        for number in range(int(count))
    ]
    print("load ready:", file=sys.stderr, flush=True)
    for line in sys.stdin:
        sent = send_all(connections, min(float(line), MAX_SECONDS))
        print(json.dumps(asdict(sent)), flush=True)


def _require_full_success(answer: bytes) -> None:
    rejected = ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
    if rejected:
        raise ValueError(f"the receiver rejected {rejected} spans")


if __name__ == "__main__":
    main()
