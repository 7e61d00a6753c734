"""The service's own HTTP endpoint: `/metrics`, `/healthz`, `/readyz`, `/self-check`."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Coroutine, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import orjson
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.asgi_server import AsgiServer
from collector.browser_requests import is_of_browser, is_of_own_site, local_names
from collector.clock import Clock
from collector.config_fields import parse_endpoint
from collector.errors import StartupError
from collector.monitoring.exposition import MetricsRegistry, MetricsSnapshot, gzip_accepted
from collector.server_thread import ServerThread
from collector.telemetry import DEAD_SECONDS, Heartbeat, Readiness, ScoreSeries, TelemetryConfig
from processors.model import JsonObject, JsonValue

TURN_SECONDS = 0.001
"""How long text is written before requests get their turn again."""

_ROUNDS_BETWEEN_TURNS = 4
"""Rounds of the loop between two turns: a request takes several from its first byte to its answer."""
_CHUNK_BYTES = 256 * 1024
_GZIP = 31
"""zlib's window size with a gzip header and trailer."""

_MAX_CONNECTIONS = 128
_REQUEST_TIMEOUT_SECONDS = 10.0
_JSON = "application/json"
_NO_STORE = {"cache-control": "no-store"}

_Handler = Callable[[Request], Coroutine[None, None, Response]]


class Probes(Protocol):
    """The service's own traces, which another program may send in its place."""

    def expect_probe(self) -> JsonObject:
        """Traces to expect, and how they are to be graded."""

    def probe_verdicts(self) -> JsonObject:
        """How the latest of them were graded."""


@dataclass(eq=False)
class TelemetryServer:
    """Serves metrics and health of this process from a thread of its own.

    `/healthz` is answered there: 503 if the service's loop has not turned for a minute, else 200. Everything
    else runs in the service's loop. `/readyz` is 200 when `readiness` holds, else 503 with one line for each
    condition that does not (or JSON, if the request accepts `application/json`). Only a GET of `/metrics`
    counts as a scrape. A POST to `/self-check` makes `probes` expect traces, a GET returns how they were
    graded; it is for `tracegrade doctor`. What browsers request for other sites is refused.
    """

    config: TelemetryConfig
    registry: MetricsRegistry
    score_series: ScoreSeries
    readiness: Readiness
    clock: Clock
    probes: Probes | None = None

    def __post_init__(self) -> None:
        self.heartbeat = Heartbeat()
        """Beats between `start` and `shutdown`."""
        self._compressing = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        routes = [
            Route("/metrics", self._in_service_loop(self._metrics)),
            Route("/healthz", self._health),
            Route("/readyz", self._in_service_loop(self._ready)),
        ]
        if self.probes is not None:
            methods = ["GET", "POST"]
            routes.append(Route("/self-check", self._in_service_loop(self._self_check), methods=methods))
        app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _method_not_allowed})
        app.router.redirect_slashes = False
        server = AsgiServer(
            _of_own_site(app, local_names(self.config.endpoint)),
            *parse_endpoint(self.config.endpoint),
            limit_concurrency=_MAX_CONNECTIONS,
            request_timeout_seconds=_REQUEST_TIMEOUT_SECONDS,
        )
        self._server = ServerThread(server, "telemetry", self.clock)
        self._one_scrape = asyncio.Lock()

    @property
    def endpoint(self) -> str:
        """`host:port` with the port really listened on, once started."""
        return self._server.endpoint

    async def start(self) -> None:
        """Listen; raises `StartupError` if the address cannot be listened on."""
        self._service_loop = asyncio.get_running_loop()
        try:
            await self._server.start()
        except StartupError as error:
            raise StartupError(f"service.telemetry.endpoint: {error}") from error
        self.heartbeat.start()

    async def shutdown(self, deadline: float) -> None:
        """Answer requests under way, then close, by `deadline`. Safe before `start` and twice."""
        self.heartbeat.stop()
        await self._server.shutdown(deadline)
        self._compressing.shutdown(wait=False, cancel_futures=True)

    def _in_service_loop(self, handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            future = asyncio.run_coroutine_threadsafe(handler(request), self._service_loop)
            return await asyncio.wrap_future(future)

        return handle

    async def _metrics(self, request: Request) -> Response:
        accept = _header(request, "accept")
        gzipped = gzip_accepted(_header(request, "accept-encoding"))
        # Concurrent scrapes wait for each other instead of sharing turns of the loop.
        async with self._one_scrape:
            self.score_series.before_scrape()
            snapshot = self.registry.snapshot()
            if request.method == "GET":
                self.score_series.after_scrape()
            compressing = self._compressing if gzipped else None
            body = await scrape_body(snapshot, accept, self.clock, compressing)
        headers = {
            "content-type": snapshot.content_type(accept),
            "content-length": str(sum(map(len, body))),
            "vary": "accept, accept-encoding",
            **_NO_STORE,
        }
        if gzipped:
            headers["content-encoding"] = "gzip"
        return StreamingResponse(_streamed(body), headers=headers)

    async def _health(self, request: Request) -> Response:
        silent = self.heartbeat.silent_seconds
        if silent > DEAD_SECONDS:
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE, f"the event loop has not turned for {silent:.0f} s")
        return _plain(HTTPStatus.OK, "ok")

    async def _ready(self, request: Request) -> Response:
        status = HTTPStatus.OK if self.readiness.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        conditions = self.readiness.conditions
        if _JSON in _header(request, "accept"):
            stated: list[JsonValue] = [
                {"name": name, "ready": condition.is_ready, "detail": condition.detail}
                for name, condition in conditions.items()
            ]
            return _json({"ready": self.readiness.is_ready, "conditions": stated}, status)
        if self.readiness.is_ready:
            return _plain(status, "ready")
        lines = [
            f"{name}: {condition.detail}" if condition.detail else name
            for name, condition in conditions.items()
            if not condition.is_ready
        ]
        return _plain(status, "\n".join(["not ready", *lines]))

    async def _self_check(self, request: Request) -> Response:
        assert self.probes is not None  # else there is no such route
        is_post = request.method == "POST"
        return _json(self.probes.expect_probe() if is_post else self.probes.probe_verdicts())


async def scrape_body(
    snapshot: MetricsSnapshot, accept: str, clock: Clock, compressing: Executor | None = None
) -> list[bytes]:
    """The text of `snapshot` for an Accept header, in pieces that one write can take.

    Whatever the size of a scrape, the loop is held for about `TURN_SECONDS` at a time. With `compressing`, an
    executor of one thread, the pieces are gzipped there: compression releases the interpreter.
    """
    pieces: list[bytes] = []
    compressed: list[asyncio.Future[bytes]] = []
    loop = asyncio.get_running_loop()
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    blocks: list[bytes] = []
    size = 0

    def end_piece() -> None:
        nonlocal size
        piece = b"".join(blocks)
        blocks.clear()
        size = 0
        if compressing is None:
            pieces.append(piece)
        else:
            compressed.append(loop.run_in_executor(compressing, compressor.compress, piece))

    turn_ends = clock.monotonic() + TURN_SECONDS
    for block in snapshot.blocks(accept):
        blocks.append(block)
        size += len(block)
        if size >= _CHUNK_BYTES:
            end_piece()
        if clock.monotonic() >= turn_ends:
            for _ in range(_ROUNDS_BETWEEN_TURNS):
                await clock.sleep(0)
            turn_ends = clock.monotonic() + TURN_SECONDS
    end_piece()
    if compressing is None:
        return pieces
    compressed.append(loop.run_in_executor(compressing, compressor.flush))
    return await asyncio.gather(*compressed)


def _of_own_site(app: ASGIApp, names: Container[str] | None) -> ASGIApp:
    """`app` for all but requests that browsers send for other sites."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if is_of_browser(headers) and not is_of_own_site(scope["method"], headers, names):
            refused = _plain(HTTPStatus.FORBIDDEN, "requests of browsers for other sites are not allowed")
            await refused(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer


def _plain(status: HTTPStatus, text: str) -> PlainTextResponse:
    return PlainTextResponse(f"{text}\n", status, _NO_STORE)


def _json(document: JsonObject, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(orjson.dumps(document), status, _NO_STORE, _JSON)


async def _not_found(request: Request, error: Exception) -> Response:
    return _plain(HTTPStatus.NOT_FOUND, "not found: try /metrics, /healthz or /readyz")


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    response = _plain(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
    response.headers["allow"] = "GET, HEAD"
    return response


async def _streamed(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _header(request: Request, name: str) -> str:
    """The value of a request header; repeated headers are joined as one list."""
    return ",".join(request.headers.getlist(name))
