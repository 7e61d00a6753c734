"""The service's own HTTP endpoint: `/metrics`, `/healthz`, `/readyz`, `/self-check`."""

import asyncio
import threading
import zlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Protocol

import orjson

from collector.asgi_server import AsgiServer, HttpScope, Receive, Send
from collector.clock import Clock, SystemClock
from collector.config_fields import parse_endpoint
from collector.errors import StartupError
from collector.telemetry.exposition import MetricsRegistry, MetricsSnapshot, gzip_accepted
from collector.telemetry.liveness import DEAD_SECONDS, Heartbeat
from collector.telemetry.score_series import ScoreSeries
from collector.telemetry.signals import Readiness
from collector.telemetry.telemetry_config import TelemetryConfig
from processors.model import JsonObject

TURN_SECONDS = 0.001
"""How long text is written before requests get their turn again."""

_ROUNDS_BETWEEN_TURNS = 4
"""Rounds of the loop between two turns: a request takes several from its first byte to its answer."""
_CHUNK_CHARACTERS = 256 * 1024
_GZIP = 31
"""zlib's window size with a gzip header and trailer."""

_MAX_CONNECTIONS = 128
_REQUEST_TIMEOUT_SECONDS = 10.0
_PROBE = ("POST", "/self-check")
_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"

_Headers = dict[str, str]
_Answer = tuple[HTTPStatus, _Headers, Sequence[bytes]]
"""Status, headers and the pieces of the body."""


class Probes(Protocol):
    """The service's own traces, which somebody else may send in its place."""

    def expect_probe(self) -> JsonObject:
        """Traces to expect; how they are to be graded."""
        ...

    def probe_verdicts(self) -> JsonObject:
        """How the latest of them were graded."""
        ...


class TelemetryServer:
    """Serves metrics and health of this process, from a thread of its own.

    `/healthz` is answered there, whatever the service's loop does: 200 unless that has not turned for a
    minute, else 503. Everything else is asked of the loop. `/readyz` is 200 when `readiness` holds, else 503
    with one line for each condition that does not (or JSON, if the request accepts `application/json`). Only
    a GET of `/metrics` counts as a scrape. A POST to `/self-check` lets `probes` expect traces, a GET says
    how they were graded; it is for `tracegrade doctor`.
    """

    def __init__(
        self,
        config: TelemetryConfig,
        *,
        registry: MetricsRegistry,
        score_series: ScoreSeries,
        readiness: Readiness,
        clock: Clock,
        probes: Probes | None = None,
    ) -> None:
        self._probes = probes
        self.heartbeat = Heartbeat()
        """Beats between `start` and `shutdown`."""
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = _LoopThread()
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
            clock=SystemClock(),
        )
        self._scrapes = ScrapeWriter(clock)
        self._one_scrape = asyncio.Lock()
        self._paths: dict[str, Callable[[HttpScope], Coroutine[None, None, _Answer]]] = {
            "/metrics": self._metrics,
            "/healthz": self._health,
            "/readyz": self._ready,
        }
        if probes is not None:
            self._paths["/self-check"] = self._self_check

    @property
    def endpoint(self) -> str:
        """`host:port` with the port really listened on, once started."""
        return self._server.endpoint

    async def start(self) -> None:
        """Listen.

        Raises:
            StartupError: The address cannot be listened on.
        """
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        try:
            await self._thread.run(self._server.start())
        except StartupError as error:
            self._thread.stop()
            raise StartupError(f"service.telemetry.endpoint: {error}") from error
        self._scrapes.start()
        self.heartbeat.start()

    async def shutdown(self, deadline: float) -> None:
        """Answer what is under way, then close, by `deadline`. Safe before `start` and twice."""
        self.heartbeat.stop()
        if self._thread.is_running:
            remaining = deadline - self._clock.monotonic()
            await self._thread.run(self._server.shutdown(SystemClock().monotonic() + remaining))
            self._thread.stop()
        self._scrapes.shutdown()

    async def _respond(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        answer = self._paths.get(scope["path"])
        if answer is None:
            status, headers, body = _plain(
                HTTPStatus.NOT_FOUND, "not found: try /metrics, /healthz or /readyz"
            )
        elif scope["method"] not in ("GET", "HEAD") and (scope["method"], scope["path"]) != _PROBE:
            status, headers, body = _plain(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
            headers["allow"] = "GET, HEAD"
        elif answer == self._health or self._loop is None:
            status, headers, body = await answer(scope)
        else:
            asked = asyncio.run_coroutine_threadsafe(answer(scope), self._loop)
            status, headers, body = await asyncio.wrap_future(asked)
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
        silent = self.heartbeat.silent_seconds
        if silent > DEAD_SECONDS:
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE, f"the event loop has not turned for {silent:.0f} s")
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

    async def _self_check(self, scope: HttpScope) -> _Answer:
        if self._probes is None:
            return _plain(HTTPStatus.NOT_FOUND, "nothing can be expected")
        told = self._probes.expect_probe if scope["method"] == "POST" else self._probes.probe_verdicts
        return HTTPStatus.OK, {"content-type": _JSON}, [orjson.dumps(told())]


class _LoopThread:
    """An event loop in a thread of its own, between `start` and `stop`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def start(self) -> None:
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="telemetry", daemon=True)
        self._thread.start()

    async def run(self, work: Coroutine[None, None, None]) -> None:
        """Wait for `work` there."""
        if self._loop is None:
            raise RuntimeError("the thread is not started")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def stop(self) -> None:
        loop, self._loop = self._loop, None
        thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


class ScrapeWriter:
    """Turns snapshots into bodies, between `start` and `shutdown`.

    Whatever the size of a scrape, the loop is held for about `TURN_SECONDS` at a time. Compressing lets go of
    the interpreter, and is one thread's work however many scrapes there are.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._compressing: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Get ready to compress."""
        self._compressing = ThreadPoolExecutor(1, thread_name_prefix="metrics")

    def shutdown(self) -> None:
        """Compress nothing any more. Safe before `start` and twice."""
        if self._compressing is not None:
            self._compressing.shutdown(wait=False, cancel_futures=True)
            self._compressing = None

    async def body(self, snapshot: MetricsSnapshot, accept: str, *, gzipped: bool) -> list[bytes]:
        """The text of `snapshot` for an Accept header, in pieces that one write can take."""
        pieces: list[bytes] = []
        compressed: list[asyncio.Future[bytes]] = []
        loop = asyncio.get_running_loop()
        compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        blocks: list[str] = []
        characters = 0
        turn_ends = self._clock.monotonic() + TURN_SECONDS
        for block in snapshot.blocks(accept):
            blocks.append(block)
            characters += len(block)
            if characters >= _CHUNK_CHARACTERS:
                piece = _encoded(blocks)
                characters = 0
                if gzipped:
                    compressed.append(loop.run_in_executor(self._compressing, compressor.compress, piece))
                else:
                    pieces.append(piece)
            if self._clock.monotonic() >= turn_ends:
                for _ in range(_ROUNDS_BETWEEN_TURNS):
                    await self._clock.sleep(0)
                turn_ends = self._clock.monotonic() + TURN_SECONDS
        if not gzipped:
            return [*pieces, _encoded(blocks)]
        compressed.append(loop.run_in_executor(self._compressing, compressor.compress, _encoded(blocks)))
        compressed.append(loop.run_in_executor(self._compressing, compressor.flush))
        return await asyncio.gather(*compressed)


def _plain(status: HTTPStatus, text: str) -> _Answer:
    return status, {"content-type": _TEXT}, [f"{text}\n".encode()]


def _header(scope: HttpScope, name: bytes) -> str:
    """The value of a request header, several joined as one list."""
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)


def _encoded(blocks: list[str]) -> bytes:
    """The blocks as one piece; the list is empty then."""
    piece = "".join(blocks).encode(errors="replace")
    blocks.clear()
    return piece
