"""OTLP over gRPC, on grpcio.

Messages are taken as the bytes that were sent, compressed ones too: the transport hands them over as they
are, so that inflating is ours and stops at the size limit.
"""

import asyncio
import contextlib
from typing import Literal, NoReturn, TypeAlias
from urllib.parse import unquote

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from pydantic import Field

from collector.config_fields import Endpoint, parse_endpoint
from collector.errors import (
    MalformedRequest,
    Overloaded,
    Refusal,
    RequestTooLarge,
    StartupError,
)
from collector.otlp import GZIP_MAGIC, ErrorStatus, gzip_decompress, no_such_service, zlib_decompress
from collector.receivers.consumer import COMPRESSED_AT_ONCE_BYTES, encode_response
from collector.receivers.receiver import Receiver
from collector.receivers.server_config import ServerConfig, grpc_credentials

TRACE_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"

READINESS_SERVICES = ("", TRACE_SERVICE, "readiness")
"""Names under which `grpc.health.v1` tells whether the service takes requests."""

LIVENESS_SERVICE = "liveness"
"""The name under which it tells that the process lives."""

STOP_GRACE_SECONDS = 1.0
"""How long answers that are on their way may take when nothing runs any more."""

_EXPORT_METHOD = f"/{TRACE_SERVICE}/Export"
_LARGEST_MESSAGE = 2**31 - 1
_MIN_PING_INTERVAL_MS = 10_000
_KEEPALIVE_TIME_MS, _KEEPALIVE_TIMEOUT_MS = 120_000, 20_000
_MAX_CALLS = 1024
"""Calls under way at once; more are told to come back."""
_MAX_STREAMS = 128
"""Of these on one connection; a client keeps others back by itself."""
_LOOKAHEAD_BYTES = 256 * 1024
"""What grpcio takes of a message that nobody reads yet."""
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
        description="The library that speaks gRPC. uvicorn is experimental: it takes a third of the CPU for "
        "small requests, on an HTTP/2 that is young.",
    )


class GrpcReceiver(Receiver):
    """Serves `TraceService/Export` and `grpc.health.v1`; which library speaks gRPC is in the classes below.

    Calls are counted by the name of their status code. `CANCELLED` stands for calls that ended before their
    message was there: the sender went away, or the message was so long that the transport refused it.
    """

    transport = "grpc"

    def _refusal(self, method: str, authorization: str | bytes | None) -> ErrorStatus | None:
        """Why a call is answered before its message is read; None: it is not."""
        if method != _EXPORT_METHOD:
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

    async def _export(self, body: bytes, encoding: str | None) -> bytes | ErrorStatus:
        """What answers an admitted call with that message, compressed as `encoding` says; None: unknown."""
        try:
            is_compressed = encoding is not None or body[:2] == GZIP_MAGIC or body[:1] == _ZLIB_START
            if len(body) <= COMPRESSED_AT_ONCE_BYTES or not is_compressed:
                content = self._content(body, encoding)
            else:
                content = await asyncio.to_thread(self._content, body, encoding)
            outcome = await self._consume(content)
            if outcome.stored is not None:
                await outcome.stored
            response = encode_response(outcome)
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
        """The message as it was before the sender compressed it."""
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
    """The receiver on grpcio, which refuses messages more than twice as long as allowed by itself."""

    _health: health.aio.HealthServicer
    _server: grpc.aio.Server | None = None
    _reading: asyncio.Semaphore

    async def _listen(self) -> str:
        """Health says `NOT_SERVING` until `set_serving`."""
        credentials = grpc_credentials(self.config.tls) if self.config.tls else None
        host, port = parse_endpoint(self.config.endpoint)
        host = f"[{host}]" if ":" in host else host
        await _check_free(host, port)
        # How long a message is, grpcio tells nobody before it has all of it: as many are read at once as
        # fit the budget if each is as long as allowed. What is not read yet holds its lookahead alone.
        self._reading = asyncio.Semaphore(
            max(self._budget.max_bytes // max(self.config.max_request_bytes, 1), 1)
        )
        self._health = health.aio.HealthServicer()
        await self.set_serving(False)
        await self._health.set(LIVENESS_SERVICE, health_pb2.HealthCheckResponse.SERVING)
        # Declared as a stream of requests, which is the same on the wire: so a call can be refused before
        # its message is read, and is seen even if its message never comes.
        self._handler = grpc.stream_unary_rpc_method_handler(self._answer)
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
        """Say through `grpc.health.v1` whether requests are taken now."""
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
        """What handles `call`; asked by grpcio when the headers of a call are there."""
        status = self._refusal(call.method, _authorization(call))
        if status is None and self._running >= _MAX_CALLS:
            status = self._refused(Overloaded("Too many calls are under way; send the request again."))
        if status is None:
            return self._handler

        async def refuse(_: object, context: grpc.aio.ServicerContext) -> None:
            # grpcio names a peer with its family before it, and escapes brackets.
            self._tell_refused_credentials(status, unquote(context.peer()).partition(":")[2])
            await _abort(context, status)

        return grpc.stream_unary_rpc_method_handler(refuse)

    async def _answer(self, _: object, context: grpc.aio.ServicerContext) -> bytes:
        self._begun()
        try:
            async with self._reading:
                body = await self._read(context)
            if body is grpc.aio.EOF:
                self._requests.add(1, self.transport, "CANCELLED")
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call carries no message.")
            answer = await self._export(body, None)  # grpcio does not say whether it is compressed
            if isinstance(answer, ErrorStatus):
                await _abort(context, answer)
            return answer
        finally:
            self._ended()

    async def _read(self, context: grpc.aio.ServicerContext) -> bytes:
        """The message; one that takes too long gives up its place for others, and its sender comes back."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                body: bytes = await context.read()
                return body
        except TimeoutError:
            await _abort(context, self._refused(Overloaded("The message took too long to arrive.")))


async def _check_free(host: str, port: int) -> None:
    """Find a port in use before gRPC does, which writes to standard error and hides the reason."""
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
        # Messages stay compressed: we inflate them, faster and with a limit.
        ("grpc.per_message_decompression", 0),
        # By itself grpcio takes over 10 MB of each message that waits (measured: 430 MB for 40 of 20 MB).
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _LOOKAHEAD_BYTES),
        ("grpc.max_concurrent_streams", _MAX_STREAMS),
        # A second service on the same port must fail, not share the calls.
        ("grpc.so_reuseport", 0),
        # Senders that died without a word are noticed, and those that ask as often are not cut off.
        ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
    ]
