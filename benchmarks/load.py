"""The senders of every measurement: connections with one export request in flight each, as SDKs have.

`python -m benchmarks.load PROTOCOL TARGET SHAPE CONNECTIONS AGENTS` builds its requests, announces itself on
stderr and then sends whole passes for every `Order` (a line of JSON) on stdin: each connection begins passes
until the order is done. The answer is one line of JSON with what was sent. Any request that fails ends the
process. The runs belong to AGENTS different agents in turn; 0 leaves the name as it is.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from typing import Literal, TypeAlias

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from benchmarks.sink import EXPORT_METHOD
from benchmarks.workload import (
    DISTINCT_PROCESSES,
    SHAPES,
    Shape,
    TemplateRequest,
    process_requests,
)

MAX_SECONDS = 120.0
MAX_PASSES = 1000
"""Passes of one connection in one go, whatever the time."""
HTTP_PATH = "/v1/traces"

Protocol: TypeAlias = Literal["grpc", "http"]
Export: TypeAlias = Callable[[bytes], bytes]
"""Sends one request and returns the body of the answer."""

_REQUEST_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Order:
    """How much to send: passes for `seconds`, at least `passes`; at `rate` spans/s of all connections, or at
    once where it is 0.
    """

    seconds: float = 0.0
    passes: int = 1
    rate: float = 0.0


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

    def __init__(
        self,
        export: Export,
        shape: Shape,
        requests: Sequence[TemplateRequest],
        *,
        number: int,
        of: int,
        agents: int,
    ) -> None:
        self._export = export
        self._shape = shape
        self._requests = requests
        self._number, self._of, self._agents = number, of, agents
        self._passes = 0

    def send(self, order: Order) -> Sent:
        """Send the passes of `order`.

        Raises:
            grpc.RpcError, OSError: a request failed.
            ValueError: the receiver refused a request or rejected spans.
        """
        sent = Sent()
        pause = self._of / order.rate if order.rate else 0.0  # seconds for one span
        started = due = time.perf_counter()
        due += pause * self._requests[0].spans * self._number / self._of  # not all at one instant
        for done in range(1, MAX_PASSES + 1):
            for request, body in self._bodies():
                if pause:
                    time.sleep(max(0.0, due - time.perf_counter()))
                    due += pause * request.spans
                asked = time.perf_counter()
                answer = self._export(body)
                sent.latencies.append(time.perf_counter() - asked)
                if answer:
                    _require_full_success(answer)
                sent.bytes += len(body)
            self._passes += 1
            sent.requests += len(self._requests)
            sent.spans += self._shape.spans
            sent.traces += self._shape.traces
            if done >= order.passes and time.perf_counter() - started >= order.seconds:
                break
        sent.seconds = time.perf_counter() - started
        return sent

    def _bodies(self) -> Iterator[tuple[TemplateRequest, bytes]]:
        """The requests of the next pass; passes of different connections never meet."""
        agent = (self._passes * self._of + self._number) * self._shape.traces
        for request in self._requests:
            template = request.with_agents(agent, self._agents) if self._agents else request
            agent += len(request.name_positions) // 2
            yield request, template.for_pass((self._number << 20) + self._passes)


def exporter(protocol: Protocol, target: str) -> Export:
    """A connection of its own to `target`."""
    if protocol == "grpc":
        channel = grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
        method = channel.unary_unary(EXPORT_METHOD)
        return lambda body: bytes(method(body, timeout=_REQUEST_TIMEOUT_SECONDS, wait_for_ready=True))
    connection = HTTPConnection(target, timeout=_REQUEST_TIMEOUT_SECONDS)

    def post(body: bytes) -> bytes:
        connection.request("POST", HTTP_PATH, body, {"content-type": "application/x-protobuf"})
        with connection.getresponse() as response:
            answer = response.read()
        if response.status != 200:
            raise ValueError(f"the receiver answered {response.status}: {answer[:200]!r}")
        return answer

    return post


def send_all(connections: Sequence[Connection], order: Order) -> Sent:
    """Let all connections send at once; the first failure ends the process."""
    total = Sent()
    lock = threading.Lock()

    def send(connection: Connection) -> None:
        try:
            sent = connection.send(order)
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
    protocol, target, shape_name, count, agents = sys.argv[1:]
    shape = next(shape for shape in SHAPES if shape.name == shape_name)
    # Not before now: to a service that was ready only after a trace began, that trace is interrupted.
    start = time.time_ns()
    requests = [process_requests(process, shape, start) for process in range(DISTINCT_PROCESSES)]
    connections = [
        Connection(
            exporter("http" if protocol == "http" else "grpc", target),
            shape,
            requests[number % DISTINCT_PROCESSES],
            number=number,
            of=int(count),
            agents=int(agents),
        )
        for number in range(int(count))
    ]
    print("load ready:", file=sys.stderr, flush=True)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        if order.seconds > MAX_SECONDS:
            raise ValueError(f"{order.seconds} s are more than {MAX_SECONDS} s")
        print(json.dumps(asdict(send_all(connections, order))), flush=True)


def _require_full_success(answer: bytes) -> None:
    rejected = ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
    if rejected:
        raise ValueError(f"the receiver rejected {rejected} spans")


if __name__ == "__main__":
    main()
