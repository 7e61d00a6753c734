"""Blocking writes to one place, off the event loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar, TypeVarTuple

from collector.errors import RetryableExportError

_MAX_WAITING = 100

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WriterThread:
    """A thread that makes the calls it is given, one after the other.

    It is daemonic: a place that blocks for ever must not keep the process from ending. Callers bound what
    waits: by `has_room`, or by awaiting each call.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._is_open = False

    @property
    def has_room(self) -> bool:
        """Whether it is started, and few calls wait."""
        return self._is_open and self._calls.qsize() < _MAX_WAITING

    def start(self) -> None:
        """Start the thread."""
        self._is_open = True
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def submit(self, call: Callable[[*Ts], T], *arguments: *Ts) -> Future[T]:
        """Make a call when those before it are done.

        Raises:
            RetryableExportError: the thread is not started, or closed.
        """
        if not self._is_open:
            raise RetryableExportError("The exporter is not started.")
        answer: Future[T] = Future()

        def work() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(call(*arguments))
                except BaseException as error:
                    answer.set_exception(error)

        self._calls.put(work)
        return answer

    async def run(self, call: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """What `call` returns or raises; raises `RetryableExportError` as `submit` does."""
        return await asyncio.wrap_future(self.submit(call, *arguments))

    def close(self, last: Callable[[], None]) -> Future[None]:
        """Call `last` behind what waits and end the thread; safe before `start` and twice."""
        if not self._is_open:
            closed: Future[None] = Future()
            closed.set_result(None)
            return closed
        ended = self.submit(last)
        self._is_open = False
        self._calls.put(None)
        return ended

    def _run(self) -> None:
        while (work := self._calls.get()) is not None:
            work()
