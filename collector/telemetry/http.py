"""The service's own HTTP endpoint: `/metrics`, `/healthz`, `/readyz`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

import orjson

from collector.asgi_server import AsgiServer, HttpScope, Receive, Send
from collector.clock import Clock
from collector.config_fields import parse_endpoint
from collector.errors import StartupError
from collector.telemetry.content_negotiation import gzip_accepted
from collector.telemetry.readiness import Readiness
from collector.telemetry.registry import MetricsRegistry
from collector.telemetry.score_series import ScoreSeries
from collector.telemetry.scrape import ScrapeWriter
from collector.telemetry.telemetry_config import TelemetryConfig

_MAX_CONNECTIONS = 128
_REQUEST_TIMEOUT_SECONDS = 10.0
_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"

_Headers = dict[str, str]
_Answer = tuple[HTTPStatus, _Headers, Sequence[bytes]]
"""Status, headers and the pieces of the body."""


class TelemetryServer:
    """Serves metrics and health of this process.

    `/healthz` is 200 as long as the loop turns. `/readyz` is 200 when `readiness` holds, else 503 with one
    line for each condition that does not (or JSON, if the request accepts `application/json`). Only a GET
    of `/metrics` counts as a scrape.
    """

    def __init__(
        self,
        config: TelemetryConfig,
        *,
        registry: MetricsRegistry,
        score_series: ScoreSeries,
        readiness: Readiness,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._score_series = score_series
        self._readiness = readiness
        host, port = parse_endpoint(config.endpoint)
        self._server = AsgiServer(
            self._respond,
            host,
            port,
            limit_concurrency=_MAX_CONNECTIONS,
            request_timeout_seconds=_REQUEST_TIMEOUT_SECONDS,
            clock=clock,
        )
        self._scrapes = ScrapeWriter(clock)
        self._one_scrape = asyncio.Lock()
        self._paths: dict[str, Callable[[HttpScope], Awaitable[_Answer]]] = {
            "/metrics": self._metrics,
            "/healthz": self._health,
            "/readyz": self._ready,
        }

    @property
    def endpoint(self) -> str:
        """`host:port` with the port really listened on, once started."""
        return self._server.endpoint

    async def start(self) -> None:
        """Listen.

        Raises:
            StartupError: The address cannot be listened on.
        """
        try:
            await self._server.start()
        except StartupError as error:
            raise StartupError(f"service.telemetry.endpoint: {error}") from error
        self._scrapes.start()

    async def shutdown(self, deadline: float) -> None:
        """Answer what is under way, then close, by `deadline`. Safe before `start` and twice."""
        await self._server.shutdown(deadline)
        self._scrapes.shutdown()

    async def _respond(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        answer = self._paths.get(scope["path"])
        if answer is None:
            status, headers, body = _plain(
                HTTPStatus.NOT_FOUND, "not found: try /metrics, /healthz or /readyz"
            )
        elif scope["method"] not in ("GET", "HEAD"):
            status, headers, body = _plain(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
            headers["allow"] = "GET, HEAD"
        else:
            status, headers, body = await answer(scope)
        headers["content-length"] = str(sum(map(len, body)))
        headers["cache-control"] = "no-store"
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            }
        )
        if scope["method"] != "HEAD":
            for piece in body:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _metrics(self, scope: HttpScope) -> _Answer:
        accept = _header(scope, b"accept")
        gzipped = gzip_accepted(_header(scope, b"accept-encoding"))
        # Scrapes at the same time wait for each other instead of sharing turns of the loop.
        async with self._one_scrape:
            self._score_series.before_scrape()
            snapshot = self._registry.snapshot()
            if scope["method"] == "GET":
                self._score_series.after_scrape()
            body = await self._scrapes.body(snapshot, accept, gzipped=gzipped)
        headers = {"content-type": snapshot.content_type(accept), "vary": "accept, accept-encoding"}
        if gzipped:
            headers["content-encoding"] = "gzip"
        return HTTPStatus.OK, headers, body

    async def _health(self, scope: HttpScope) -> _Answer:
        return _plain(HTTPStatus.OK, "ok")

    async def _ready(self, scope: HttpScope) -> _Answer:
        status = HTTPStatus.OK if self._readiness.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        conditions = self._readiness.conditions
        if _JSON in _header(scope, b"accept"):
            stated = [
                {"name": name, "ready": condition.is_ready, "detail": condition.detail}
                for name, condition in conditions.items()
            ]
            body = orjson.dumps({"ready": self._readiness.is_ready, "conditions": stated})
            return status, {"content-type": _JSON}, [body]
        if self._readiness.is_ready:
            return _plain(status, "ready")
        lines = [
            f"{name}: {condition.detail}" if condition.detail else name
            for name, condition in conditions.items()
            if not condition.is_ready
        ]
        return _plain(status, "\n".join(["not ready", *lines]))


def _plain(status: HTTPStatus, text: str) -> _Answer:
    return status, {"content-type": _TEXT}, [f"{text}\n".encode()]


def _header(scope: HttpScope, name: bytes) -> str:
    """The value of a request header, several joined as one list."""
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)
