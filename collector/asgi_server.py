"""Runs one ASGI application on uvicorn's HTTP protocols in the running loop.

No process manager, signal handlers or polling: the listening socket is opened here, so that a port in use is
a `StartupError`, and shutdown waits for requests in flight until a deadline.
"""

import asyncio
from collections.abc import Callable
from math import inf
from ssl import SSLContext
from typing import TypeAlias

import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from collector.clock import Clock, SystemClock, ends_within
from collector.errors import StartupError

_HEADERS_TOO_LARGE = "The headers are too large."
_MAX_HEADER_BYTES = 64 * 1024
"""Limit for all headers of a request, trailers included; larger ones are refused."""
_KEEP_ALIVE_SECONDS = 75
"""How long an idle connection stays open."""
_LEAST_READ_BYTES = 64 * 1024
"""What a client has to take of a longer answer in the time that a request may take."""
_BACKLOG = 2048
"""Connections the kernel may queue."""
_CANCEL_SECONDS = 1.0
"""How long a cancelled request may take to notice."""


def peer_of(scope: Scope) -> str:
    """The other end of the connection as `host:port`, empty if unknown."""
    host, port = scope["client"] or ("", 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}" if host else ""


class Connections(ServerState):
    """uvicorn's record of connections and requests, which can also be waited on."""

    def __init__(self) -> None:
        super().__init__()
        self._last_closed = asyncio.Event()

    def connection_closed(self) -> None:
        """Called by a connection after it has left the record."""
        if not self.connections:
            self._last_closed.set()

    async def drained(self) -> None:
        """Return when no connection is left."""
        while self.connections:
            self._last_closed.clear()
            await self._last_closed.wait()


ConnectionFactory: TypeAlias = Callable[
    [uvicorn.Config, Connections, asyncio.AbstractEventLoop, float], asyncio.Protocol
]
"""Creates one of uvicorn's protocols; requests may take the given number of seconds to arrive."""


class LimitedConnection(asyncio.Protocol):
    """Mixin for a protocol of uvicorn: one timer per connection cuts off what takes too long.

    `_start_timer` sets the first timer; whatever fires sets the next one.
    """

    loop: asyncio.AbstractEventLoop
    _timer: asyncio.TimerHandle

    def __init__(
        self,
        config: uvicorn.Config,
        connections: Connections,
        loop: asyncio.AbstractEventLoop,
        request_timeout_seconds: float,
    ) -> None:
        super().__init__(config=config, server_state=connections, app_state={}, _loop=loop)  # type: ignore[call-arg]  # uvicorn's protocol is next in the order of classes
        self._record = connections
        self._request_timeout_seconds = request_timeout_seconds

    def _start_timer(self) -> None:
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when a client has connected."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the connection is closed."""
        self._timer.cancel()
        super().connection_lost(exc)
        self._record.connection_closed()


class AsgiServer:
    """Serves `app`, for HTTP alone, on `host`:`port` (0: a free one) between `start` and `shutdown`.

    With `ssl` over HTTPS; the protocol of a `connection` is by default HTTP/1.1. From `limit_concurrency`
    open connections on, a new one over HTTP/1.1 takes the place of the one that was without a request for
    longest; where all of them have one, requests are answered 503 without calling the application. A
    connection that has not delivered a whole request `request_timeout_seconds` after it opened, or after the
    request began, is cut off, and over HTTP/1.1 one that has taken less than 64 KiB of a longer answer in as
    much time.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        connection: ConnectionFactory | None = None,
        limit_concurrency: int | None = None,
        request_timeout_seconds: float = 60.0,
        clock: Clock | None = None,
    ) -> None:
        self._host = host
        self._ssl = ssl
        self._connection = connection or _Http1Connection
        self._request_timeout_seconds = request_timeout_seconds
        self._clock = clock or SystemClock()
        self._config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=limit_concurrency,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        self._connections = Connections()
        self._server: asyncio.Server | None = None
        self._port = self.port = port
        """The port listened on; as configured before `start`."""

    @property
    def endpoint(self) -> str:
        """`host:port` with the real port, and an IPv6 address in brackets."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self.port}"

    async def start(self) -> None:
        """Listen; raises `StartupError` if the address cannot be listened on."""
        if not self._config.loaded:
            self._config.load()
        loop = asyncio.get_running_loop()

        def connection() -> asyncio.Protocol:
            return self._connection(self._config, self._connections, loop, self._request_timeout_seconds)

        try:
            self._server = await loop.create_server(
                connection, self._host, self._port, ssl=self._ssl, backlog=_BACKLOG
            )
        except OSError as error:
            raise StartupError(f"{self.endpoint}: cannot listen: {error.strerror or error}") from error
        self.port = self._server.sockets[0].getsockname()[1]

    def send_clients_away(self) -> None:
        """Send clients to other connections, if the protocol supports that."""
        for connection in list(self._connections.connections):
            if (go_away := getattr(connection, "go_away", None)) is not None:
                go_away()

    async def shutdown(self, deadline: float) -> None:
        """Stop listening, close idle connections, let running requests finish.

        Requests still running at `deadline` (on the clock's monotonic time) are cut off. Safe before `start`
        and twice.
        """
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for connection in list(self._connections.connections):
            connection.shutdown()
        remaining = deadline - self._clock.monotonic()
        if self._connections.connections and remaining > 0:
            await ends_within(remaining, self._connections.drained(), self._clock)
        for task in list(self._connections.tasks):
            task.cancel()
        for connection in list(self._connections.connections):
            connection.transport.abort()
        if self._connections.tasks:
            await asyncio.wait(self._connections.tasks, timeout=_CANCEL_SECONDS)


class _Http1Connection(LimitedConnection, HttpToolsProtocol):
    """uvicorn's connection, with limits on the time a request may take to arrive and on its headers.

    One timer per connection checks when things began: two timers per request, with uvicorn's own for idle
    connections, took a tenth of the time of a small request.
    """

    _idle_since: float | None = None
    _unread_since: float | None = None  # more of the answer waits for the client than it should
    _unread_bytes = 0
    _header_bytes = 0
    _undivided_bytes = 0  # received since the parser last found the end of anything

    def _start_timer(self) -> None:
        self._incomplete_since: float | None = self.loop.time()
        self._schedule_check(self._incomplete_since)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        limit = self.limit_concurrency
        if limit is not None and len(self.connections) + 1 >= limit:
            others = [one for one in self.connections if isinstance(one, _Http1Connection)]
            waiting = [one for one in others if one.cycle is None or one.cycle.response_complete]
            if waiting:
                min(waiting, key=lambda one: one._idle_since or one._incomplete_since or inf).cut()
        super().connection_made(transport)

    def pause_writing(self) -> None:
        self._note_unread()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        self._idle_since = None
        if self._undivided_bytes > _MAX_HEADER_BYTES:
            self.send_400_response(_HEADERS_TOO_LARGE)
            return
        self._undivided_bytes += len(data)
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._undivided_bytes = 0
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _MAX_HEADER_BYTES:
            raise ValueError(_HEADERS_TOO_LARGE)  # the parser ends, and uvicorn answers 400
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._undivided_bytes = 0
        super().on_body(body)

    def on_message_begin(self) -> None:
        self._header_bytes = self._undivided_bytes = 0
        if self._incomplete_since is None:
            self._incomplete_since = self.loop.time()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._undivided_bytes = 0
        self._incomplete_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since = self.loop.time()

    def cut(self) -> None:
        """Close the connection without waiting for the client."""
        self.connections.discard(self)
        self.transport.abort()

    def _began(self) -> list[tuple[float, float]]:
        """What has begun and not ended, with the seconds that it may take."""
        timed = (
            (self._incomplete_since, self._request_timeout_seconds),
            (self._unread_since, self._request_timeout_seconds),
            (self._idle_since, self.timeout_keep_alive),
        )
        return [(since, limit) for since, limit in timed if since is not None]

    def _schedule_check(self, now: float) -> None:
        """Check when something that begins now could be late, or earlier if something has begun."""
        latest = now + min(self._request_timeout_seconds, self.timeout_keep_alive)
        due = min([latest, *(since + limit for since, limit in self._began())])
        self._timer = self.loop.call_at(due, self._cut_late)

    def _note_unread(self) -> None:
        self._unread_since = self.loop.time()
        self._unread_bytes = self.transport.get_write_buffer_size()

    def _cut_late(self) -> None:
        now = self.loop.time()
        if (
            self._unread_since is not None
            and now >= self._unread_since + self._request_timeout_seconds
            and self.transport.get_write_buffer_size() <= self._unread_bytes - _LEAST_READ_BYTES
        ):
            self._note_unread()
        if any(now >= since + limit for since, limit in self._began()):
            self.transport.abort()
        else:
            self._schedule_check(now)
