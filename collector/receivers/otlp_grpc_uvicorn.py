"""OTLP over gRPC, on uvicorn's HTTP/2: gRPC's framing as one ASGI application.

Experimental, and only used with `server: uvicorn`. A call is answered as by the receiver on grpcio, with two
headers frames where gRPC would allow one ("Trailers-Only"), which ASGI does not support. The client enforces
deadlines: it resets calls that it no longer waits for.
"""

import asyncio
import base64
import struct
from urllib.parse import quote

from google.protobuf.message import DecodeError
from google.rpc import code_pb2
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from starlette.types import Receive, Scope, Send

from collector.asgi_server import AsgiServer, peer_of
from collector.errors import Draining, MalformedRequest, Refusal, UnsupportedRequest
from collector.otlp import ErrorStatus
from collector.receivers.in_flight import Disconnected, HttpBody
from collector.receivers.otlp_grpc import (
    LIVENESS_SERVICE,
    READINESS_SERVICES,
    STOP_GRACE_SECONDS,
    GrpcReceiver,
)

_HEALTH_CHECK, _HEALTH_WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
_MAX_HEALTH_BYTES = 64 * 1024

_PREFIX = struct.Struct(">BI")
"""In front of each message: whether it is compressed, and its length."""

_PRINTABLE = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_HEADERS = [(b"content-type", b"application/grpc"), (b"grpc-accept-encoding", b"identity,gzip,deflate")]
_OK = [(b"grpc-status", b"0")]


class UvicornGrpcReceiver(GrpcReceiver):
    """The receiver on uvicorn."""

    _server: AsgiServer | None = None

    async def _listen(self) -> str:
        """Health reports `NOT_SERVING` until `set_serving`."""
        from collector.http2_connection import Http2Connection  # loads zttp, only where configured

        self._health = {LIVENESS_SERVICE: HealthCheckResponse.SERVING}
        self._health_changed = asyncio.Event()
        await self.set_serving(False)
        self._server = await self._serve(self._call, Http2Connection)
        return self._server.endpoint

    async def set_serving(self, is_serving: bool) -> None:
        """Report through `grpc.health.v1` whether requests are accepted now."""
        self._set_health(READINESS_SERVICES, is_serving)

    async def shutdown(self, deadline: float) -> None:
        """Send clients away, finish running calls until `deadline`, then close the port.

        New calls are answered `UNAVAILABLE`. `deadline` is on the clock's monotonic time. Safe before `start`
        and twice.
        """
        server, self._server = self._server, None
        if server is None:
            return
        self._is_draining = True
        self._set_health(tuple(self._health), False)
        server.send_clients_away()
        await self._drain(deadline)
        await server.shutdown(min(deadline, self._clock.monotonic() + STOP_GRACE_SECONDS))

    def _set_health(self, services: tuple[str, ...], is_serving: bool) -> None:
        status = HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING
        self._health.update(dict.fromkeys(services, status))
        self._health_changed.set()
        self._health_changed = asyncio.Event()

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        headers = dict(scope["headers"])
        if scope["method"] != "POST" or not headers.get(b"content-type", b"").startswith(b"application/grpc"):
            status = 405 if scope["method"] != "POST" else 415
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body"})
            return
        method = scope["path"]
        if method in (_HEALTH_CHECK, _HEALTH_WATCH):
            await self._answer_health(method, receive, send)
            return
        refusal = self._refusal(method, headers.get(b"authorization"))
        if refusal is not None:
            self._log_refused_credentials(refusal, peer_of(scope))
            await _answer(send, refusal)
            return
        self._begun()
        try:
            await _answer(send, await self._export_from(method, receive, headers))
        except Disconnected:
            self._requests.add(1, self.transport, "CANCELLED")
        finally:
            self._ended()

    async def _export_from(
        self, method: str, receive: Receive, headers: dict[bytes, bytes]
    ) -> bytes | ErrorStatus:
        """The answer to an admitted call; raises `Disconnected` if its message never arrives."""
        body = HttpBody(receive, self.config.max_request_bytes, self._budget, waits=False)
        try:
            is_compressed, message = await _message(body)
            encoding = None  # it may still be compressed, by a sender that does not use gRPC for that
            if is_compressed:
                encoding = headers.get(b"grpc-encoding", b"identity").decode("latin-1")
                if encoding not in ("gzip", "deflate"):
                    raise UnsupportedRequest(f"grpc-encoding must be gzip or deflate, not {encoding}.")
            return await self._export(method, message, encoding)
        except Refusal as refusal:
            return self._refused(refusal)
        finally:
            body.release()

    async def _answer_health(self, method: str, receive: Receive, send: Send) -> None:
        try:
            _, message = await _message(HttpBody(receive, _MAX_HEALTH_BYTES, self._budget))
            service = HealthCheckRequest.FromString(message).service
        except Disconnected:
            return
        except (Refusal, DecodeError) as error:
            await _answer(send, ErrorStatus(code_pb2.INVALID_ARGUMENT, 400, str(error)))
            return
        if method == _HEALTH_WATCH:
            await self._watch_health(service, receive, send)
        elif (status := self._health.get(service)) is None:
            await _answer(send, ErrorStatus(code_pb2.NOT_FOUND, 404, ""))
        else:
            await _answer(send, HealthCheckResponse(status=status).SerializeToString())

    async def _watch_health(self, service: str, receive: Receive, send: Send) -> None:
        """Report every change until the client disconnects or the receiver is shut down."""
        disconnect = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS, "trailers": True})
        reported = None
        while not disconnect.done():
            status = self._health.get(service, HealthCheckResponse.SERVICE_UNKNOWN)
            if status != reported:
                reported = status
                frame = _frame(HealthCheckResponse(status=status).SerializeToString())
                await send({"type": "http.response.body", "body": frame, "more_body": True})
            if self._is_draining:
                disconnect.cancel()
                await _end(send, self._failure(Draining("The service is shutting down.")))
                return
            changed = asyncio.ensure_future(self._health_changed.wait())
            await asyncio.wait((disconnect, changed), return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()


async def _message(body: HttpBody) -> tuple[bool, bytes]:
    """The one message of a call, and whether it is compressed.

    Raises:
        MalformedRequest: there is none, only a part of one, or more than one.
        RequestTooLarge: it is longer than allowed, and is not read.
        Overloaded: other calls being received leave no room.
        Disconnected: the sender closed the connection.
    """
    start = await body.next()
    while len(start) < _PREFIX.size and not body.is_complete:
        start += await body.next()
    if len(start) < _PREFIX.size:
        raise MalformedRequest("The call carries no message.")
    is_compressed, length = _PREFIX.unpack_from(start)
    body.check_announced(length)
    message = await body.read(start[_PREFIX.size :])
    if len(message) != length:
        raise MalformedRequest("The call carries something other than one message.")
    return bool(is_compressed), message


async def _answer(send: Send, answer: bytes | ErrorStatus) -> None:
    """Answer a call for which nothing was sent yet."""
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS, "trailers": True})
    await _end(send, answer)


async def _end(send: Send, answer: bytes | ErrorStatus) -> None:
    if isinstance(answer, bytes):
        body, trailers = _frame(answer), _OK
    else:
        message = quote(answer.message, safe=_PRINTABLE).encode()
        body, trailers = b"", [(b"grpc-status", b"%d" % answer.code), (b"grpc-message", message)]
        for name, value in answer.grpc_trailers():
            trailers.append((name.encode(), base64.b64encode(value).rstrip(b"=")))
    await send({"type": "http.response.body", "body": body})
    await send({"type": "http.response.trailers", "headers": trailers})


def _frame(message: bytes) -> bytes:
    return _PREFIX.pack(0, len(message)) + message
