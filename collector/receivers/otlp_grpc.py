"""OTLP over gRPC, on grpcio.

The transport passes compressed messages on as they are, so that decompression here stops at the size limit.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Literal, NoReturn, TypeAlias
from urllib.parse import unquote

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from pydantic import Field

from collector.config_fields import Endpoint, parse_endpoint
from collector.errors import MalformedRequest, Overloaded, Refusal, RequestTooLarge, StartupError
from collector.otlp import GZIP_MAGIC, ErrorStatus, gzip_decompress, no_such_service, zlib_decompress
from collector.receivers.consumer import (
    COMPRESSED_AT_ONCE_BYTES,
    FULL_SUCCESS,
    ReceivedSignal,
    encode_response,
)
from collector.receivers.receiver import Receiver
from collector.receivers.server_config import ServerConfig, grpc_credentials

TRACE_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
LOGS_SERVICE = "opentelemetry.proto.collector.logs.v1.LogsService"
METRICS_SERVICE = "opentelemetry.proto.collector.metrics.v1.MetricsService"

READINESS_SERVICES = ("", TRACE_SERVICE, LOGS_SERVICE, METRICS_SERVICE, "readiness")
"""Names under which `grpc.health.v1` reports whether the service accepts requests."""

LIVENESS_SERVICE = "liveness"
"""The name under which it reports that the process is alive."""

STOP_GRACE_SECONDS = 1.0
"""How long answers may take to be sent once no call is running."""

_EXPORT_METHODS: Mapping[str, ReceivedSignal] = {
    f"/{TRACE_SERVICE}/Export": "traces",
    f"/{LOGS_SERVICE}/Export": "logs",
    f"/{METRICS_SERVICE}/Export": "metrics",
}
_LARGEST_MESSAGE = 2**31 - 1
_MIN_PING_INTERVAL_MS = 10_000
_KEEPALIVE_TIME_MS, _KEEPALIVE_TIMEOUT_MS = 120_000, 20_000
_MAX_CALLS = 1024
"""Concurrent calls; further ones are asked to retry."""
_MAX_STREAMS = 128
"""Of these on one connection; a client holds further ones back by itself."""
_LOOKAHEAD_BYTES = 256 * 1024
"""What grpcio buffers of a message that is not read yet."""
_READ_SECONDS = 60.0
_CODES = {code.value[0]: code for code in grpc.StatusCode}

_ZLIB_START = b"x"
"""Every stream with zlib's usual window; as protobuf it would be an unknown field."""

_MethodHandler: TypeAlias = "grpc.RpcMethodHandler"


class GrpcServerConfig(ServerConfig):
    """What the user writes under `receivers.otlp.protocols.grpc`."""

    endpoint: Endpoint = "127.0.0.1:4317"
    server: Literal["grpcio", "uvicorn"] = Field(
        default="grpcio",
        description="The library that implements gRPC. uvicorn is experimental: it takes a third of the CPU "
        "for small requests, on a young implementation of HTTP/2.",
    )


class GrpcReceiver(Receiver):
    """Serves the `Export` of OTLP's services and `grpc.health.v1`; subclasses bind it to a library.

    Calls are counted by the name of their status code. `CANCELLED` is for calls that ended before their
    message arrived: the sender disconnected, or the transport refused a message because of its length.
    """

    transport = "grpc"

    def _refusal(self, method: str, authorization: str | bytes | None) -> ErrorStatus | None:
        """The status that answers a call before its message is read; None if it is admitted."""
        if method not in _EXPORT_METHODS:
            status = no_such_service(method)
        else:
            try:
                self._admit(authorization)
            except Refusal as refusal:
                status = self._failure(refusal)
            else:
                return None
        self._requests.add(1, self.transport, status.code_name)
        return status

    async def _export(self, method: str, body: bytes, encoding: str | None) -> bytes | ErrorStatus:
        """The answer to an admitted call with that message; an `encoding` of None is unknown."""
        signal = _EXPORT_METHODS[method]
        if signal == "metrics":
            self._discard_metrics()
            self._requests.add(1, self.transport, "OK")
            return FULL_SUCCESS
        try:
            is_compressed = encoding is not None or body[:2] == GZIP_MAGIC or body[:1] == _ZLIB_START
            if len(body) <= COMPRESSED_AT_ONCE_BYTES or not is_compressed:
                content = self._content(body, encoding)
            else:
                content = await asyncio.to_thread(self._content, body, encoding)
            response = encode_response(await self._consume(content, signal))
        except Exception as error:
            return self._refused(error)
        self._requests.add(1, self.transport, "OK")
        return response

    def _refused(self, error: Exception) -> ErrorStatus:
        """The status that answers a call which ended with `error`, counted."""
        status = self._failure(error)
        self._requests.add(1, self.transport, status.code_name)
        return status

    def _content(self, body: bytes, encoding: str | None) -> bytes:
        """The message before compression."""
        limit = self.config.max_request_bytes
        if encoding == "gzip" or (encoding is None and body[:2] == GZIP_MAGIC):
            return gzip_decompress(body, limit)
        if encoding == "deflate":
            return zlib_decompress(body, limit)
        if encoding is None and body[:1] == _ZLIB_START:
            with contextlib.suppress(MalformedRequest):
                return zlib_decompress(body, limit)
        if len(body) > limit:
            raise RequestTooLarge(f"The request has {len(body)} bytes, more than the allowed {limit}.")
        return body


class OtlpGrpcReceiver(GrpcReceiver):
    """The receiver on grpcio, which itself refuses messages more than twice as long as allowed."""

    _health: health.aio.HealthServicer
    _server: grpc.aio.Server | None = None
    _reading: asyncio.Semaphore

    async def _listen(self) -> str:
        """Health reports `NOT_SERVING` until `set_serving`."""
        credentials = grpc_credentials(self.config.tls) if self.config.tls else None
        host, port = parse_endpoint(self.config.endpoint)
        host = f"[{host}]" if ":" in host else host
        await _check_free(host, port)
        # grpcio does not report the length of a message before it has all of it: as many are read at once as
        # fit the budget if each is as long as allowed. An unread one takes only its lookahead.
        self._reading = asyncio.Semaphore(
            max(self._budget.max_bytes // max(self.config.max_request_bytes, 1), 1)
        )
        self._health = health.aio.HealthServicer()
        await self.set_serving(False)
        await self._health.set(LIVENESS_SERVICE, health_pb2.HealthCheckResponse.SERVING)
        # Declared as a stream of requests, which is the same on the wire: so a call can be refused before
        # its message is read, and is noticed even if its message never arrives.
        self._handlers = {
            method: grpc.stream_unary_rpc_method_handler(partial(self._answer, method))
            for method in _EXPORT_METHODS
        }
        server = grpc.aio.server(options=_options(self.config.max_request_bytes))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        server.add_generic_rpc_handlers((self,))
        try:
            if credentials is None:
                port = server.add_insecure_port(f"{host}:{port}")
            else:
                port = server.add_secure_port(f"{host}:{port}", credentials)
        except RuntimeError as error:
            raise StartupError(f"{host}:{port}: cannot listen: {error}") from error
        await server.start()
        self._server = server
        return f"{host}:{port}"

    async def set_serving(self, is_serving: bool) -> None:
        """Report through `grpc.health.v1` whether requests are accepted now."""
        statuses = health_pb2.HealthCheckResponse
        for service in READINESS_SERVICES:
            await self._health.set(service, statuses.SERVING if is_serving else statuses.NOT_SERVING)

    async def shutdown(self, deadline: float) -> None:
        """Answer new calls `UNAVAILABLE`, let running ones finish until `deadline`, then close the port.

        `deadline` is on the clock's monotonic time. Safe before `start` and twice.
        """
        server, self._server = self._server, None
        if server is None:
            return
        await self._health.enter_graceful_shutdown()
        await self._drain(deadline)
        # Health watchers never end by themselves; answers on their way out need a moment.
        await server.stop(max(0.0, min(STOP_GRACE_SECONDS, deadline - self._clock.monotonic())))

    def service(self, call: grpc.HandlerCallDetails) -> _MethodHandler:
        """The handler of `call`; grpcio calls this when the headers of a call have arrived."""
        status = self._refusal(call.method, _authorization(call))
        if status is None and self._running >= _MAX_CALLS:
            status = self._refused(Overloaded("Too many concurrent calls; send the request again."))
        if status is None:
            return self._handlers[call.method]

        async def refuse(_: object, context: grpc.aio.ServicerContext) -> None:
            # grpcio names a peer with its family before it, and escapes brackets.
            self._log_refused_credentials(status, unquote(context.peer()).partition(":")[2])
            await _abort(context, status)

        return grpc.stream_unary_rpc_method_handler(refuse)

    async def _answer(self, method: str, _: object, context: grpc.aio.ServicerContext) -> bytes:
        self._begun()
        try:
            async with self._reading:
                body = await self._read(context)
            if body is grpc.aio.EOF:
                self._requests.add(1, self.transport, "CANCELLED")
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call carries no message.")
            answer = await self._export(method, body, None)  # grpcio does not report whether it is compressed
            if isinstance(answer, ErrorStatus):
                await _abort(context, answer)
            return answer
        finally:
            self._ended()

    async def _read(self, context: grpc.aio.ServicerContext) -> bytes:
        """The message; the sender of one that takes too long is asked to retry, to make room for others."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                body: bytes = await context.read()
                return body
        except TimeoutError:
            await _abort(context, self._refused(Overloaded("The message took too long to arrive.")))


async def _check_free(host: str, port: int) -> None:
    """Detect a port in use before gRPC does, which writes to standard error and hides the reason."""
    try:
        probe = await asyncio.get_running_loop().create_server(asyncio.Protocol, host.strip("[]"), port)
    except OSError as error:
        raise StartupError(f"{host}:{port}: cannot listen: {error.strerror or error}") from error
    probe.close()
    await probe.wait_closed()


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
        # Messages remain compressed: they are decompressed here, faster and with a limit.
        ("grpc.per_message_decompression", 0),
        # By itself grpcio takes over 10 MB of each message that waits (measured: 430 MB for 40 of 20 MB).
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _LOOKAHEAD_BYTES),
        ("grpc.max_concurrent_streams", _MAX_STREAMS),
        # A second service on the same port must fail, not share the calls.
        ("grpc.so_reuseport", 0),
        # Detects dead senders, and accepts keepalive pings of senders at the same rate.
        ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
    ]
