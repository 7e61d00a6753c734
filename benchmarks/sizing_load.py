"""The senders of `benchmarks sizing`, each with one request in flight, and the sink behind the service."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc

from benchmarks.sizing_traffic import Traffic
from collector.receivers import TRACE_SERVICE

_CONNECTIONS = 8
_TIMEOUT_SECONDS = 30.0
_SERVICES = (TRACE_SERVICE, "opentelemetry.proto.collector.logs.v1.LogsService")
_BACK_OFF_SECONDS = 0.05


class Sink:
    """A backend that takes everything and keeps nothing, between `with` and its end."""

    def __init__(self) -> None:
        unlimited = [("grpc.max_receive_message_length", -1)]
        self._server = grpc.server(ThreadPoolExecutor(_CONNECTIONS), options=unlimited)
        take = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {"Export": take}) for service in _SERVICES]
        )
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> "Sink":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0)


class Load:
    """Sends `traffic` to `target`, every pass as new traces; `spans` and `refusals` count all sent."""

    def __init__(self, target: str, traffic: Traffic) -> None:
        self.spans = 0
        self.refusals = 0
        self._traffic = traffic
        self._lock = threading.Lock()
        self._next = 0
        self._channels = [
            grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
            for _ in range(_CONNECTIONS)
        ]
        method = f"/{TRACE_SERVICE}/Export"
        self._exports = [channel.unary_unary(method) for channel in self._channels]

    def close(self) -> None:
        """Close all connections."""
        for channel in self._channels:
            channel.close()

    def send(self, seconds: float, rate: float) -> float:
        """Send `rate` spans a second, as far as the service takes them; the rate at which it did."""
        started = time.monotonic()
        before = self.spans
        threads = [
            threading.Thread(target=partial(self._send, export, started, seconds, rate, before))
            for export in self._exports
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (self.spans - before) / max(time.monotonic() - started, seconds)

    def _send(
        self, export: grpc.UnaryUnaryMultiCallable, started: float, seconds: float, rate: float, before: int
    ) -> None:
        requests = self._traffic.requests
        while (passed := time.monotonic() - started) < seconds:
            with self._lock:
                due = (self.spans - before) / rate
                if due <= passed:
                    number, self._next = self._next, self._next + 1
                    request = requests[number % len(requests)]
                    self.spans += request.spans
            if due > passed:
                time.sleep(min(due - passed, seconds - passed))
                continue
            body = request.for_pass(number // len(requests))
            while True:
                try:
                    export(body, timeout=_TIMEOUT_SECONDS)
                    break
                except grpc.RpcError:
                    with self._lock:
                        self.refusals += 1
                    if time.monotonic() - started >= seconds:
                        with self._lock:
                            self.spans -= request.spans
                        break
                    time.sleep(_BACK_OFF_SECONDS)
