"""OTLP over gRPC, on grpcio.

Messages are taken as the bytes that were sent, compressed ones too: the transport hands them over as they
are, so that inflating is ours and stops at the size limit.
"""

import asyncio
import contextlib
import random as random_module
from collections.abc import Callable
from typing import Annotated, Literal, NoReturn, TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from pydantic import BeforeValidator, Field

from collector.clock import Clock, SystemClock
from collector.config_fields import Endpoint, parse_endpoint
from collector.errors import Draining, MalformedRequest, RequestTooLarge, StartupError, Unauthenticated
from collector.otlp.compression import GZIP_MAGIC, gzip_decompress, zlib_decompress
from collector.otlp.status import ErrorStatus, no_such_service
from collector.receivers.bearer_auth import BearerAuth
from collector.receivers.consumer import Consumer, encode_response
from collector.receivers.failed_requests import FailedRequests
from collector.receivers.server_config import ServerConfig, grpc_credentials
from collector.telemetry.metrics import Metrics

TRACE_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"

READINESS_SERVICES = ("", TRACE_SERVICE, "readiness")
"""Names under which `grpc.health.v1` tells whether the service takes requests."""

LIVENESS_SERVICE = "liveness"
"""The name under which it tells that the process lives."""

_EXPORT_METHOD = f"/{TRACE_SERVICE}/Export"
_TRANSPORT = "grpc"
_LARGEST_MESSAGE = 2**31 - 1
_STOP_GRACE_SECONDS = 1.0
_MIN_PING_INTERVAL_MS = 10_000
_KEEPALIVE_TIME_MS, _KEEPALIVE_TIMEOUT_MS = 120_000, 20_000
_CODES = {code.value[0]: code for code in grpc.StatusCode}

_ZLIB_START = b"x"
"""Every stream with zlib's usual window; as protobuf it would be an unknown field."""

_MethodHandler: TypeAlias = "grpc.RpcMethodHandler"


def _built_server(name: object) -> object:
    if name == "nghttp2":
        raise ValueError("the server nghttp2 is not built yet; use grpcio")
    return name


class GrpcServerConfig(ServerConfig):
    """What the user writes under `receivers.otlp.protocols.grpc`."""

    endpoint: Endpoint = "127.0.0.1:4317"
    server: Annotated[Literal["grpcio"], BeforeValidator(_built_server)] = Field(
        default="grpcio", description="The library that speaks gRPC."
    )


class OtlpGrpcReceiver:
    """Serves `TraceService/Export` and `grpc.health.v1` between `start` and `shutdown`.

    Each answered call is counted in `metrics.requests` by the name of its status code. `CANCELLED` stands
    for calls that ended before their message was there: the sender went away, or the message was more than
    twice as long as allowed, which gRPC itself refuses.

    Attributes:
        config: Where to listen and what to accept.

    Args:
        config: Where to listen and what to accept.
        consumer: Takes the requests.
        metrics: Counts the calls.
        clock: What deadlines are measured on.
        random: Gives numbers in [0, 1) for retry delays.
    """

    def __init__(
        self,
        config: GrpcServerConfig,
        consumer: Consumer,
        metrics: Metrics,
        *,
        clock: Clock | None = None,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.config = config
        self._clock = clock or SystemClock()
        self._auth = BearerAuth(config.auth, self._clock) if config.auth else None
        self._calls = _Calls(config.max_request_bytes, consumer, metrics, self._auth, self._clock, random)
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None
        self._endpoint = config.endpoint

    @property
    def endpoint(self) -> str:
        """`host:port` with the real port; as configured before `start`."""
        return self._endpoint

    async def start(self) -> None:
        """Listen. Health says `NOT_SERVING` until `set_serving`.

        Raises:
            StartupError: The address cannot be listened on, or a certificate or token file is unusable.
        """
        credentials = grpc_credentials(self.config.tls) if self.config.tls else None
        if self._auth is not None:
            self._auth.load()
        host, port = parse_endpoint(self.config.endpoint)
        host = f"[{host}]" if ":" in host else host
        await self._check_free(host, port)
        await self.set_serving(False)
        await self._health.set(LIVENESS_SERVICE, health_pb2.HealthCheckResponse.SERVING)
        server = grpc.aio.server(options=_options(self.config.max_request_bytes))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        server.add_generic_rpc_handlers((self._calls,))
        try:
            if credentials is None:
                port = server.add_insecure_port(f"{host}:{port}")
            else:
                port = server.add_secure_port(f"{host}:{port}", credentials)
        except RuntimeError as error:
            raise StartupError(f"{host}:{port}: cannot listen: {error}") from error
        await server.start()
        self._server = server
        self._endpoint = f"{host}:{port}"

    async def set_serving(self, is_serving: bool) -> None:
        """Say through `grpc.health.v1` whether requests are taken now."""
        statuses = health_pb2.HealthCheckResponse
        for service in READINESS_SERVICES:
            await self._health.set(service, statuses.SERVING if is_serving else statuses.NOT_SERVING)

    @property
    def running_calls(self) -> int:
        """Export calls that have begun and are not answered yet."""
        return self._calls.running

    async def shutdown(self, deadline: float) -> None:
        """Answer new calls `UNAVAILABLE`, let running ones finish until `deadline`, then close the port.

        `deadline` is on the clock's monotonic time. Safe before `start` and twice.
        """
        server, self._server = self._server, None
        if server is None:
            return
        await self._health.enter_graceful_shutdown()
        await self._calls.drain(deadline)
        # Health watchers never end by themselves; answers on their way out need a moment.
        await server.stop(max(0.0, min(_STOP_GRACE_SECONDS, deadline - self._clock.monotonic())))

    async def _check_free(self, host: str, port: int) -> None:
        """Find a port in use before gRPC does, which writes to standard error and hides the reason."""
        try:
            probe = await asyncio.get_running_loop().create_server(asyncio.Protocol, host.strip("[]"), port)
        except OSError as error:
            raise StartupError(f"{host}:{port}: cannot listen: {error.strerror or error}") from error
        probe.close()
        await probe.wait_closed()


class _Calls:
    """The calls of the trace service, in the form that grpcio asks for (a generic RPC handler)."""

    def __init__(
        self,
        max_request_bytes: int,
        consumer: Consumer,
        metrics: Metrics,
        auth: BearerAuth | None,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        self._max_request_bytes = max_request_bytes
        self._consumer = consumer
        self._requests = metrics.requests
        self._auth = auth
        self._clock = clock
        self._failed = FailedRequests(_TRANSPORT, clock, random)
        # Declared as a stream of requests, which is the same on the wire: so a call can be refused before
        # its message is read, and is seen even if its message never comes.
        self._export_handler = grpc.stream_unary_rpc_method_handler(self._export)
        self._is_draining = False
        self.running = 0
        self._idle = asyncio.Event()

    def service(self, call: grpc.HandlerCallDetails) -> _MethodHandler:
        """What handles `call`; asked by grpcio when the headers of a call are there."""
        if call.method != _EXPORT_METHOD:
            return self._refusal(no_such_service(call.method))
        try:
            if self._is_draining:
                raise Draining("The service is shutting down; send the request again.")
            if self._auth is not None:
                self._auth.check(_authorization(call))
        except (Draining, Unauthenticated) as refusal:
            return self._refusal(self._failed.answer(refusal))
        return self._export_handler

    async def drain(self, deadline: float) -> None:
        """Refuse new calls and return when no call runs, or at `deadline`."""
        self._is_draining = True
        remaining = deadline - self._clock.monotonic()
        if not self.running or remaining <= 0:
            return
        idle = asyncio.ensure_future(self._idle.wait())
        timer = asyncio.ensure_future(self._clock.sleep(remaining))
        await asyncio.wait((idle, timer), return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        timer.cancel()

    async def _export(self, _: object, context: grpc.aio.ServicerContext) -> bytes:
        self.running += 1
        try:
            body = await context.read()
            if body is grpc.aio.EOF:
                self._requests.add(1, _TRANSPORT, "CANCELLED")
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call carries no message.")
            try:
                response = encode_response(self._consumer.consume_traces(self._content(body)))
            except Exception as error:
                status = self._failed.answer(error)
                self._requests.add(1, _TRANSPORT, status.code_name)
            else:
                self._requests.add(1, _TRANSPORT, "OK")
                return response
            await _abort(context, status)
        finally:
            self.running -= 1
            if self._is_draining and not self.running:
                self._idle.set()

    def _content(self, body: bytes) -> bytes:
        """The message as it was before the sender compressed it; grpcio does not say whether it did."""
        limit = self._max_request_bytes
        if body[:2] == GZIP_MAGIC:
            return gzip_decompress(body, limit)
        if body[:1] == _ZLIB_START:
            with contextlib.suppress(MalformedRequest):
                return zlib_decompress(body, limit)
        if len(body) > limit:
            raise RequestTooLarge(f"The request has {len(body)} bytes, more than the allowed {limit}.")
        return body

    def _refusal(self, status: ErrorStatus) -> _MethodHandler:
        """A handler that answers `status` without reading the message."""

        async def refuse(_: object, context: grpc.aio.ServicerContext) -> None:
            self._requests.add(1, _TRANSPORT, status.code_name)
            await _abort(context, status)

        return grpc.stream_unary_rpc_method_handler(refuse)


async def _abort(context: grpc.aio.ServicerContext, status: ErrorStatus) -> NoReturn:
    await context.abort(_CODES[status.code], status.message, status.grpc_trailers())
    raise AssertionError("abort() always raises")


def _authorization(call: grpc.HandlerCallDetails) -> str | bytes | None:
    for key, value in call.invocation_metadata or ():
        if key == "authorization":
            return value if isinstance(value, bytes) else str(value)
    return None


def _options(max_request_bytes: int) -> list[tuple[str, int]]:
    return [
        # Twice the limit, so that what is too large, short of that, is refused and counted by us.
        ("grpc.max_receive_message_length", min(2 * max_request_bytes, _LARGEST_MESSAGE)),
        # Messages stay compressed: we inflate them, faster and with a limit.
        ("grpc.per_message_decompression", 0),
        # A second service on the same port must fail, not share the calls.
        ("grpc.so_reuseport", 0),
        # Senders that died without a word are noticed, and those that ask as often are not cut off.
        ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
    ]
