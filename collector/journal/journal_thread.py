"""The thread in which the journal waits for its disk."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class JournalThread:
    """Does one piece of blocking work after the other, for the event loop that asks.

    The executors of the standard library need locks and two futures for each piece, which costs as much as
    many a transaction. A process that ends does not wait for this thread: the file is safe at any moment.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Call `function` when all that was asked for before is done; its result or its error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                try:
                    result = function(*args, **kwargs)
                except BaseException as error:
                    loop.call_soon_threadsafe(_fail, future, error)
                else:
                    loop.call_soon_threadsafe(_settle, future, result)

        if self._thread is None:
            self._thread = Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()
        self._work.put(work)
        return future

    def close(self) -> None:
        """Let the thread end after what was asked for; safe twice, and it may be asked again."""
        if self._thread is not None:
            self._thread = None
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # what was written must not be held while waiting for the next


def _settle(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
