"""Blocking work off the event loop, one piece after the other."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from collector.errors import RetryableExportError

_MAX_WAITING = 100

P = ParamSpec("P")
T = TypeVar("T")


class WorkThread:
    """A thread that makes the calls it is given, in their order; used on the loop's thread.

    It is daemonic: a place that blocks for ever must not keep the process from ending. Callers bound what
    waits: by `has_room`, or by awaiting each call. The executors of the standard library need locks and two
    futures for each call, which costs as much as a small transaction of the journal.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_open = False

    @property
    def has_room(self) -> bool:
        """Whether it is started, and few calls wait."""
        return self._is_open and self._calls.qsize() < _MAX_WAITING

    def start(self) -> None:
        """Start the thread, unless it is started."""
        if not self._is_open:
            self._is_open = True
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Make a call when those before it are done; what it returns or raises.

        Raises:
            RetryableExportError: the thread is not started, or closed.
        """
        if not self._is_open:
            raise RetryableExportError("The exporter is not started.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                settle = partial(future.set_result, call(*args, **kwargs))
            except BaseException as error:
                settle = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop is closed: nothing waits
                loop.call_soon_threadsafe(lambda: future.done() or settle())

        self._calls.put(work)
        return future

    def close(self, last: Callable[[], None] = lambda: None) -> asyncio.Future[None]:
        """Call `last` behind what waits and end the thread; safe before `start` and twice."""
        if not self._is_open:
            closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            closed.set_result(None)
            return closed
        ended = self.run(last)
        self._is_open = False
        self._calls.put(None)
        return ended

    def _run(self) -> None:
        while (work := self._calls.get()) is not None:
            work()
            del work  # what was written must not be held while waiting
