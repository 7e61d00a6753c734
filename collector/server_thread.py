"""An HTTP server in a thread of its own: neither it nor the data path holds up the other."""

import asyncio
import threading
from collections.abc import Coroutine

from collector.asgi_server import AsgiServer
from collector.clock import Clock, SystemClock
from collector.errors import StartupError


class ServerThread:
    """Runs `server` in an event loop of its own, in the thread `name`, between `start` and `shutdown`.

    Its application is called in that loop. The server has to have a `SystemClock`; deadlines are those of
    `clock`.
    """

    def __init__(self, server: AsgiServer, name: str, clock: Clock) -> None:
        self._server = server
        self._name = name
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread

    @property
    def endpoint(self) -> str:
        """`host:port` with the port really listened on, once started."""
        return self._server.endpoint

    async def start(self) -> None:
        """Listen; raises `StartupError` if the address cannot be listened on."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()
        try:
            await self.run(self._server.start())
        except StartupError:
            self._stop()
            raise

    async def shutdown(self, deadline: float) -> None:
        """Answer requests under way, then close, by `deadline`. Safe before `start` and twice."""
        if self._loop is not None:
            remaining = deadline - self._clock.monotonic()
            await self.run(self._server.shutdown(SystemClock().monotonic() + remaining))
            self._stop()

    async def run(self, work: Coroutine[None, None, None]) -> None:
        """Do some work in the loop of the server, between `start` and `shutdown`."""
        assert self._loop is not None
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
