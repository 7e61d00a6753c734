"""A flood of programs' log lines on the endpoint of agents: what a record costs the loop, and what is held.

`python -m benchmarks.log_flood sink` and `... load ENDPOINT LINES RATE SECONDS` are the two processes around
the service; `... bare` is a server of the same library that answers and does nothing else.
"""

import asyncio
import json
import re
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from benchmarks.child_process import ChildProcess, MeasurementRefused, cpu_seconds, peak_rss_mib

RATE, SECONDS = 100_000, 10.0
_METHOD = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
_RECORDS = 512
"""In a request, as batch processors send them."""
_SENDERS = 8
_DRAIN_SECONDS = 60.0
_LINES = {
    "lines": "GET /items/{number} HTTP/1.1 200 in {number} ms from 10.0.0.7",
    "lines, 1 in 8 about events": "handled event {number} of the queue in {number} ms",
}


def log_flood_lines(rate: int = RATE, seconds: float = SECONDS) -> Iterator[str]:
    """Send `rate` records/s for `seconds`, received over gRPC and forwarded over gRPC: rows of a table."""
    yield "| records | sent/s | CPU µs of the loop | CPU µs in all | copies held | peak memory, MiB |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in _LINES:
        yield _measured(name, rate, seconds)
    module = [sys.executable, "-m", "benchmarks.log_flood"]
    with ChildProcess("bare", [*module, "bare"]) as bare:
        endpoint = bare.ready()["grpc"]
        _send(module, endpoint, "lines", rate, 1.0)
        before, count = _loop_seconds(bare.pid), int(rate * seconds / _RECORDS) * _RECORDS
        took = _send(module, endpoint, "lines", rate, seconds)
        loop = (_loop_seconds(bare.pid) - before) * 1e6 / count
    yield f"| lines, to grpcio alone | {count / took:.0f} | {loop:.2f} | | | |"


def _measured(name: str, rate: int, seconds: float) -> str:
    module = [sys.executable, "-m", "benchmarks.log_flood"]
    with tempfile.TemporaryDirectory() as folder, ChildProcess("sink", [*module, "sink"]) as sink:
        settings = {
            "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
            "exporters": {"otlp": {"endpoint": sink.ready()["grpc"], "tls": {"insecure": True}}},
            "service": {"telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"enabled": False}}},
        }
        configuration = Path(folder) / "tracegrade.yaml"
        configuration.write_text(json.dumps(settings))
        command = [sys.executable, "-m", "collector.cli", "run", "--config", str(configuration)]
        with ChildProcess("tracegrade", command) as service:
            ready = service.ready()
            _send(module, ready["grpc"], name, rate, 1.0)
            _received_and_forwarded(ready)
            loop, whole = _loop_seconds(service.pid), cpu_seconds(service.pid)
            before, _ = _received_and_forwarded(ready)
            took = _send(module, ready["grpc"], name, rate, seconds)
            received, held = _received_and_forwarded(ready)
            count = received - before
            loop = (_loop_seconds(service.pid) - loop) * 1e6 / count
            whole = (cpu_seconds(service.pid) - whole) * 1e6 / count
            memory = peak_rss_mib(service.pid)
    return f"| {name} | {count / took:.0f} | {loop:.2f} | {whole:.2f} | {held:.0f} | {memory:.0f} |"


def _send(module: list[str], endpoint: str, name: str, rate: int, seconds: float) -> float:
    """How long it took to have that many acknowledged."""
    with ChildProcess("load", [*module, "load", endpoint, name, str(rate), str(seconds)]) as load:
        return float(load.ask("", 10 * seconds + _DRAIN_SECONDS))


def _received_and_forwarded(ready: dict[str, str]) -> tuple[float, float]:
    """How many records were received, once all were forwarded, and how many copies are held."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    while True:
        with urllib.request.urlopen(f"http://{ready['telemetry']}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        received, forwarded, held = (
            sum(
                float(value)
                for value in re.findall(rf"^tracegrade_log_records_{each}(?:{{.*}})? (.*)$", text, re.M)
            )
            for each in ("received_total", "forwarded_total", "awaiting_verdict")
        )
        if received and received == forwarded:
            return received, held
        if time.monotonic() > deadline:
            raise MeasurementRefused(f"of {received} records only {forwarded} were forwarded")
        time.sleep(0.1)


def _loop_seconds(pid: int) -> float:
    """CPU time of the first thread, in which the loop is."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def _request(name: str) -> bytes:
    request = ExportLogsServiceRequest()
    of_resource = request.resource_logs.add()
    service = KeyValue(key="service.name", value=AnyValue(string_value="shop"))
    of_resource.resource.attributes.append(service)
    of_scope = of_resource.scope_logs.add()
    of_scope.scope.name = "shop.access"
    for number in range(_RECORDS):
        line = _LINES["lines" if number % 8 else name].format(number=number)
        record = of_scope.log_records.add(
            time_unix_nano=time.time_ns(),
            observed_time_unix_nano=time.time_ns(),
            severity_number=9,
            severity_text="INFO",
            trace_id=number.to_bytes(16, "big"),
            span_id=(number + 1).to_bytes(8, "big"),
        )
        record.body.string_value = line
        for key in ("code.function.name", "code.file.path", "thread.name"):
            record.attributes.append(KeyValue(key=key, value=AnyValue(string_value=f"value of {key}")))
    return request.SerializeToString()


def _load(endpoint: str, name: str, rate: int, seconds: float) -> None:
    """Announce itself; on a line of stdin send at the rate, and answer how long it took."""
    body = _request(name)
    requests = int(rate * seconds / _RECORDS)
    channels = [
        grpc.insecure_channel(endpoint, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(_SENDERS)
    ]
    calls = [channel.unary_unary(_METHOD) for channel in channels]
    sys.stdin.readline()
    began = time.monotonic()

    def send(sender: int) -> None:
        for number in range(sender, requests, _SENDERS):
            time.sleep(max(0.0, began + number * _RECORDS / rate - time.monotonic()))
            calls[sender](body, timeout=60)

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(_SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(time.monotonic() - began, flush=True)


async def _bare() -> None:
    async def answer(body: bytes, context: object) -> bytes:
        return b""

    server = grpc.aio.server()
    service, method = _METHOD[1:].split("/")
    handlers = {method: grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"bare ready: grpc=127.0.0.1:{port}", file=sys.stderr, flush=True)
    await server.wait_for_termination()


def _sink() -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    handler = grpc.unary_unary_rpc_method_handler(lambda body, context: b"")
    service, method = _METHOD[1:].split("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"sink ready: grpc=127.0.0.1:{port}", file=sys.stderr, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "sink":
        _sink()
    elif sys.argv[1] == "bare":
        asyncio.run(_bare())
    else:
        _load(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
