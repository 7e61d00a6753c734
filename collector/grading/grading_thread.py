"""Large traces are graded beside the loop, in a thread, one after the other.

Requests are answered meanwhile: the interpreter changes between the threads every millisecond.
"""

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from collector.trace import FinishedTrace

LARGE_SPANS = 1000
LARGE_BYTES = 1 << 20
"""A trace that has more of either is graded beside the loop: in the loop it would take 50 ms or more."""

_NEVER = 1 << 30
_TURN_SECONDS = 0.001
"""How long the loop waits for a thread that grades, each time it has something to do. The interpreter's own
5 ms make a small request wait several times as long, since answering it takes several such turns."""
_ResultT = TypeVar("_ResultT")


def is_large(trace: FinishedTrace) -> bool:
    """Whether grading the trace would hold up the loop for long."""
    spans = trace.spans
    return len(spans) > LARGE_SPANS or sum([len(span[1]) for span in spans]) > LARGE_BYTES


class GradingThread:
    """Runs one piece of work at a time. It keeps no process from ending, whatever it is at."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._closed = asyncio.Event()

    async def run(self, work: Callable[[], _ResultT]) -> _ResultT:
        """What `work` returns or raises, in its turn.

        Raises:
            TimeoutError: this was closed before.
        """
        async with self._turn:
            if self._closed.is_set():
                raise TimeoutError
            loop = asyncio.get_running_loop()
            done: asyncio.Future[_ResultT] = loop.create_future()
            closing = loop.create_task(self._closed.wait())
            turn_seconds = sys.getswitchinterval()
            sys.setswitchinterval(_TURN_SECONDS)
            try:
                threading.Thread(target=_run, args=(loop, done, work), name="grade", daemon=True).start()
                await asyncio.wait((done, closing), return_when=asyncio.FIRST_COMPLETED)
            finally:
                sys.setswitchinterval(turn_seconds)
                closing.cancel()
            if not done.done():
                raise TimeoutError
            return done.result()

    def close(self) -> None:
        """Wait for nothing any more; what is in work is left to itself."""
        self._closed.set()


class _FullCollections:
    """Garbage collections of the whole heap, while nobody holds them off.

    To look through the millions of objects of a large trace stops all threads for a second. What is young is
    collected as ever, and what a trace is made of goes without being looked for.
    """

    def __init__(self) -> None:
        self._held_off = 0
        self._threshold = gc.get_threshold()

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """No such collection within; in the loop's thread."""
        if not self._held_off:
            self._threshold = gc.get_threshold()
            gc.set_threshold(*self._threshold[:2], _NEVER)
        self._held_off += 1
        try:
            yield
        finally:
            self._held_off -= 1
            if not self._held_off:
                gc.set_threshold(*self._threshold)


full_collections = _FullCollections()


def _run(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[_ResultT], work: Callable[[], _ResultT]
) -> None:
    try:
        tell = partial(_settle, done, work(), None)
    except Exception as error:
        tell = partial(_settle, done, None, error)
    with suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(tell)


def _settle(done: asyncio.Future[_ResultT], result: _ResultT | None, error: Exception | None) -> None:
    if done.cancelled():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)  # type: ignore[arg-type]
