"""Where traces are graded: in the loop, in a thread beside it, or in processes (`grading_pool`).

Most traces are graded in the loop, in short turns between requests. A large trace would hold up the loop for
long, so a thread grades it: requests are answered meanwhile, since the interpreter changes between the
threads every millisecond.
"""

import asyncio
import gc
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from collector.errors import GradingCutShort
from collector.grading.grader import Graded, Grader, Needed, Steps, Supplied, advance
from collector.grading.hand_over import Form, compact
from collector.otlp import EnvelopeRegistry
from collector.trace import FinishedTrace
from processors.model import AgentRun

LARGE_SPANS = 1000
LARGE_BYTES = 1 << 20
"""A trace that has more of either is graded in a thread: in the loop it would take 50 ms or more."""

_NEVER = 1 << 30
_TURN_SECONDS = 0.001
"""How long the loop waits for a thread that grades, each time it has something to do. The interpreter's own
5 ms make a small request wait several times as long, since answering it takes several such turns."""
_ResultT = TypeVar("_ResultT")

Supply: TypeAlias = Callable[[Needed], Awaitable[Supplied]]
"""Obtains what grading a trace needs; called in the loop."""


class Lane(Protocol):
    """A place where traces are graded."""

    async def grade(self, trace: FinishedTrace, supply: Supply) -> Graded:
        """Grade the trace; never raises for what it can hold.

        Raises:
            GradingCutShort: the lane was closed before the trace was graded.
            Quarantined: processes ended over this trace again and again.
        """
        ...


class WorkRecord(Protocol):
    """Notes which trace is being graded, for the process that starts after a crash; the journal."""

    def begin(self, trace: FinishedTrace, *, aside: bool = False) -> None:
        """The trace is being graded from now on: in the loop, or `aside`, in the thread."""
        ...

    def end(self, *, aside: bool = False) -> None:
        """No trace is being graded there."""
        ...


class LoopLane:
    """Grades at once, in the thread of the loop."""

    def __init__(self, grader: Grader, work: WorkRecord | None) -> None:
        self._grader = grader
        self._work = work

    async def grade(self, trace: FinishedTrace, supply: Supply) -> Graded:
        """See `Lane`; it is graded on return to the loop unless `supply` has to be waited for."""
        steps = self._grader.steps(trace)
        found = self._advanced(trace, steps)
        while isinstance(found, Needed):
            found = self._advanced(trace, steps, await supply(found))
        return found

    def _advanced(
        self, trace: FinishedTrace, steps: Steps, supplied: Supplied | None = None
    ) -> Needed | Graded:
        if self._work is None:
            return advance(steps, supplied)
        self._work.begin(trace)
        found = advance(steps, supplied)
        self._work.end()
        return found


class ThreadLane:
    """Grades one trace after the other in a thread, and returns nothing that holds what it was read from.

    Args:
        grader: One that is used nowhere else.
        work: Notes what is being graded.
        form: What is left of runs.
        read_run: Reads the line of a run.
    """

    def __init__(
        self, grader: Grader, work: WorkRecord | None, form: Form, read_run: Callable[[bytes], AgentRun]
    ) -> None:
        self._grader = grader
        self._work = work
        self._form = form
        self._read_run = read_run
        self._envelopes = EnvelopeRegistry()
        self._thread = GradingThread()

    async def grade(self, trace: FinishedTrace, supply: Supply) -> Graded:
        """See `Lane`."""
        steps = self._grader.steps(trace)
        found = await self._thread.run(partial(self._advanced, trace, steps))
        while isinstance(found, Needed):
            found = await self._thread.run(partial(self._advanced, trace, steps, await supply(found)))
        return found

    def close(self) -> None:
        """Wait for nothing any more."""
        self._thread.close()

    def _advanced(
        self, trace: FinishedTrace, steps: Steps, supplied: Supplied | None = None
    ) -> Needed | Graded:
        if self._work is not None:
            self._work.begin(trace, aside=True)
        try:
            found = advance(steps, supplied)
            if isinstance(found, Needed):
                return found
            graded = found.trace
            compacted = compact(trace, graded, self._form, self._envelopes, self._read_run)
            found = Graded(compacted, found.tally, found.runs)
            runs = list(graded.graded_runs)
            del graded
            while runs:  # all at once they would go in one step, which no other thread can interrupt
                runs.pop()
            return found
        finally:
            if self._work is not None:
                self._work.end(aside=True)


class GradingThread:
    """Runs one piece of work at a time. It keeps no process from ending, whatever it is at."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._closed = asyncio.Event()

    async def run(self, work: Callable[[], _ResultT]) -> _ResultT:
        """What `work` returns or raises, in its turn.

        Raises:
            GradingCutShort: this was closed before.
        """
        async with self._turn:
            if self._closed.is_set():
                raise GradingCutShort
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
                raise GradingCutShort
            return done.result()

    def close(self) -> None:
        """Wait for nothing any more; what is being worked on is left to itself."""
        self._closed.set()


def _run(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[_ResultT], work: Callable[[], _ResultT]
) -> None:
    try:
        settle = partial(_settle, done, work(), None)
    except Exception as error:
        settle = partial(_settle, done, None, error)
    with suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(settle)


def _settle(done: asyncio.Future[_ResultT], result: _ResultT | None, error: Exception | None) -> None:
    if done.cancelled():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)  # type: ignore[arg-type]


def is_large(trace: FinishedTrace) -> bool:
    """Whether grading the trace would hold up the loop for long."""
    spans = trace.spans
    return len(spans) > LARGE_SPANS or sum([len(span[1]) for span in spans]) > LARGE_BYTES


class _FullCollections:
    """Garbage collections of the whole heap.

    To look through the millions of objects of a large trace stops all threads for a second. Young objects are
    collected as ever, and what a trace consists of is released without being searched for.
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
