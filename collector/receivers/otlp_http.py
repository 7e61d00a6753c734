"""OTLP over HTTP: `POST /v1/traces` and `/v1/logs` with protobuf or JSON, gzip or not."""

import asyncio
from collections.abc import Mapping

from starlette.types import Message, Receive, Scope, Send

from collector.asgi_server import AsgiServer, peer_of
from collector.browser_requests import is_for_host, local_names
from collector.config_fields import Endpoint
from collector.errors import RequestTooLarge, UnsupportedRequest
from collector.otlp import (
    ErrorStatus,
    foreign_site,
    gzip_decompress,
    json_to_request,
    json_to_request_in_process,
    logs_json_to_request,
    method_not_allowed,
    no_such_path,
)
from collector.receivers.consumer import (
    COMPRESSED_AT_ONCE_BYTES,
    ExportOutcome,
    ReceivedSignal,
    encode_response,
    encode_response_json,
)
from collector.receivers.in_flight import Disconnected, HttpBody
from collector.receivers.receiver import Receiver
from collector.receivers.server_config import ServerConfig
from collector.trace import Signal

TRACES_PATH, LOGS_PATH, METRICS_PATH = "/v1/traces", "/v1/logs", "/v1/metrics"
_SIGNALS: Mapping[str, ReceivedSignal] = {TRACES_PATH: "traces", LOGS_PATH: "logs", METRICS_PATH: "metrics"}
PROTOBUF = b"application/x-protobuf"
JSON = b"application/json"
GZIP = b"gzip"

DISCONNECTED = "499"
"""Counted for senders that disconnected before their request was complete, as nginx does."""

_LARGE_JSON_BYTES = 256 * 1024
"""Longer JSON is converted in a thread, one request at a time."""
_HUGE_JSON_BYTES = 4 * 1024 * 1024
"""Longer JSON is converted in another process: parsing it would block all threads of this one."""


class HttpServerConfig(ServerConfig):
    """What the user writes under `receivers.otlp.protocols.http`."""

    endpoint: Endpoint = "127.0.0.1:4318"


class OtlpHttpReceiver(Receiver):
    """Serves `POST /v1/traces` and `POST /v1/logs`; acknowledges `POST /v1/metrics`.

    Requests are counted by their HTTP status, and those that were never complete as `DISCONNECTED`.
    """

    transport = "http"
    _server: AsgiServer | None = None

    async def _listen(self) -> str:
        self._large_json = asyncio.Lock()
        self._browser_hosts = None if self.config.auth else local_names(self.config.endpoint)
        self._server = await self._serve(self._answer)
        return self._server.endpoint

    async def set_serving(self, is_serving: bool) -> None:
        """Does nothing: over HTTP the telemetry endpoint reports it."""

    async def shutdown(self, deadline: float) -> None:
        """Close the port, answer requests that still begin 503, let running ones finish until `deadline`.

        `deadline` is on the clock's monotonic time. Safe before `start` and twice.
        """
        self._is_draining = True
        server, self._server = self._server, None
        if server is not None:
            await server.shutdown(deadline)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        headers = dict(scope["headers"])
        media_type = headers.get(b"content-type", b"")
        if media_type != PROTOBUF:  # it may carry parameters and any case
            media_type = media_type.partition(b";")[0].strip().lower()
        answers_json = media_type != PROTOBUF
        signal = _SIGNALS.get(scope["path"], "traces")
        body = HttpBody(receive, self.config.max_request_bytes, self._budget)
        try:
            status = self._misdirected(scope, headers)
            if status is None:
                self._check(media_type, headers)
                if signal == "metrics":
                    outcome = await self._discarded_body(body, headers)
                else:
                    request = await self._request(body, signal, media_type, headers)
                    outcome = await self._consume(request, signal)
                response = encode_response_json(outcome, signal) if answers_json else encode_response(outcome)
        except Disconnected:
            self._requests.add(1, self.transport, DISCONNECTED)
            return
        except Exception as error:
            status = self._failure(error)
            self._log_refused_credentials(status, peer_of(scope))
        finally:
            body.release()
        if status is not None:
            self._requests.add(1, self.transport, str(status.http_status))
            await _send_error(send, status, body, in_json=answers_json)
            return
        self._requests.add(1, self.transport, "200")
        await send(_response_start(200, JSON if answers_json else PROTOBUF, response))
        await send({"type": "http.response.body", "body": response})

    def _misdirected(self, scope: Scope, headers: dict[bytes, bytes]) -> ErrorStatus | None:
        """The answer to a request that exports nothing, or not to this service."""
        if scope["path"] not in _SIGNALS:
            return no_such_path(scope["path"])
        if scope["method"] != "POST":
            return method_not_allowed(scope["method"])
        if b"origin" in headers and self._browser_hosts is not None:
            host = headers.get(b"host", b"").decode("latin-1")
            if not is_for_host(host, self._browser_hosts):
                return foreign_site(host)
        return None

    def _check(self, media_type: bytes, headers: dict[bytes, bytes]) -> None:
        """Refuse a request because of its headers."""
        self._admit(headers.get(b"authorization"))
        if media_type not in (PROTOBUF, JSON):
            raise UnsupportedRequest(
                f"Content-Type must be {PROTOBUF.decode()} or {JSON.decode()}, "
                f"not {media_type.decode('latin-1') or 'missing'}."
            )
        encoding = headers.get(b"content-encoding")
        if encoding is not None and encoding.strip().lower() not in (GZIP, b"identity", b""):
            raise UnsupportedRequest(
                f"Content-Encoding must be gzip or identity, not {encoding.decode('latin-1')}."
            )

    async def _discarded_body(self, body: HttpBody, headers: dict[bytes, bytes]) -> ExportOutcome:
        """Receive a request of metrics and discard it; raises `RequestTooLarge`."""
        _check_length(body, headers)
        await body.discard()
        if not body.is_complete:
            raise RequestTooLarge(
                f"The request has more than the allowed {self.config.max_request_bytes} bytes."
            )
        self._discard_metrics()
        return ExportOutcome(0, 0)

    async def _request(
        self, body: HttpBody, signal: Signal, media_type: bytes, headers: dict[bytes, bytes]
    ) -> bytes:
        """The serialised request."""
        _check_length(body, headers)
        content = await body.read()
        if headers.get(b"content-encoding", b"").strip().lower() == GZIP:
            if len(content) <= COMPRESSED_AT_ONCE_BYTES:
                content = gzip_decompress(content, self.config.max_request_bytes)
            else:
                content = await asyncio.to_thread(gzip_decompress, content, self.config.max_request_bytes)
        if media_type == PROTOBUF:
            return content
        converted = json_to_request if signal == "traces" else logs_json_to_request
        if len(content) <= _LARGE_JSON_BYTES:
            return converted(content)
        async with self._large_json:
            if len(content) <= _HUGE_JSON_BYTES:
                return await asyncio.to_thread(converted, content)
            return await json_to_request_in_process(content, signal)


def _check_length(body: HttpBody, headers: dict[bytes, bytes]) -> None:
    """Check the announced length of a request; raises `RequestTooLarge`."""
    announced = headers.get(b"content-length", b"")
    if announced.isdigit():
        body.check_announced(int(announced))


async def _send_error(send: Send, status: ErrorStatus, body: HttpBody, *, in_json: bool) -> None:
    content = status.to_json() if in_json else status.to_protobuf()
    start = _response_start(status.http_status, JSON if in_json else PROTOBUF, content)
    if status.http_status == 401:
        start["headers"].append((b"www-authenticate", b"Bearer"))
    elif status.http_status == 405:
        start["headers"].append((b"allow", b"POST"))
    if status.retry_after is not None:
        start["headers"].append((b"retry-after", status.retry_after.encode()))
    if not body.is_complete:
        start["headers"].append((b"connection", b"close"))
    await send(start)
    await send({"type": "http.response.body", "body": content, "more_body": True})
    await body.discard()
    await send({"type": "http.response.body"})


def _response_start(status: int, media_type: bytes, content: bytes) -> Message:
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", media_type), (b"content-length", b"%d" % len(content))],
    }
