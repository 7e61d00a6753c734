"""A thread for a client library that has to be polled, and its way to the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

from collector.clock import Clock, ends_within

T = TypeVar("T")


class ClientThread:
    """Runs `work`, which is to return soon after `stop`. To be created on the loop."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=work, name=name, daemon=True)
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start the thread, unless it is started."""
        if not self.is_started:
            self._thread.start()

    @property
    def is_started(self) -> bool:
        """Whether it was started, even if it has ended."""
        return self._thread.ident is not None

    def stop(self) -> None:
        """Let the thread end."""
        self._stopping.set()

    async def join(self, deadline: float, clock: Clock) -> bool:
        """Wait until the thread has ended, up to `deadline` but a second at least; whether it has."""
        seconds = max(deadline - clock.monotonic(), 1.0)
        return await ends_within(seconds, asyncio.to_thread(self._thread.join), clock)

    # For the thread.

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def pause(self, seconds: float) -> None:
        """Wait, or until `stop`."""
        self._stopping.wait(seconds)

    def call_soon(self, call: Callable[..., object], *arguments: object) -> None:
        """Let the loop call something, without waiting for it."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: no one waits for it
            self._loop.call_soon_threadsafe(call, *arguments)

    def call_and_wait(self, work: Coroutine[object, object, T]) -> T:
        """Let the loop do something; what it returns or raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
