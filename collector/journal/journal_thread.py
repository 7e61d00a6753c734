"""The thread in which the journal waits for its disk."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class JournalThread:
    """Does blocking work for the event loop, one piece after the other.

    The executors of the standard library need locks and two futures for each piece, which costs as much as a
    small transaction. The process does not wait for this thread to end: the file is safe at any moment.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Call `function` after all that was requested before; its result or its error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                settle = partial(future.set_result, function(*args, **kwargs))
            except BaseException as error:
                settle = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop is closed: nothing waits
                loop.call_soon_threadsafe(lambda: future.done() or settle())

        if self._thread is None:
            self._thread = Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()
        self._work.put(work)
        return future

    def close(self) -> None:
        """End the thread after what was requested. May be called twice, and more may be run after it."""
        if self._thread is not None:
            self._thread = None
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # what was written must not be held while waiting
