"""Where traces are graded: in the loop, in a thread beside it, or in processes (`grading_pool`).

Most traces are graded in the loop, in short turns between requests. A large trace would hold up the loop for
long, so a thread grades it: requests are answered meanwhile, since the interpreter changes between the
threads every millisecond.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, TypeVar

from collector.errors import GradingCutShort
from collector.grading.grader import Graded, Grader, Needed, Steps, Supplied, advance
from collector.grading.hand_over import Form, compact
from collector.otlp import EnvelopeRegistry
from collector.short_turns import short_turns
from collector.trace import FinishedTrace
from collector.work_thread import WorkThread
from processors.model import AgentRun

if TYPE_CHECKING:  # offline grading does without a journal and its library
    from collector.journal import Journal

LARGE_SPANS = 1000
LARGE_BYTES = 1 << 20
"""A trace that has more of either is graded in a thread: in the loop it would take 50 ms or more."""

_NEVER = 1 << 30
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


@dataclass
class LoopLane:
    """Grades at once in the thread of the loop; `journal` notes the trace for the process after a crash."""

    grader: Grader
    journal: "Journal | None"
    _in_background: ClassVar[bool] = False

    async def grade(self, trace: FinishedTrace, supply: Supply) -> Graded:
        """See `Lane`; in the loop it waits only where `supply` does."""
        steps = self.grader.steps(trace)
        outcome = await self._step(trace, steps, None)
        while isinstance(outcome, Needed):
            outcome = await self._step(trace, steps, await supply(outcome))
        return outcome

    async def _step(self, trace: FinishedTrace, steps: Steps, supplied: Supplied | None) -> Needed | Graded:
        return self._advanced(trace, steps, supplied)

    def _advanced(self, trace: FinishedTrace, steps: Steps, supplied: Supplied | None) -> Needed | Graded:
        if self.journal is not None:
            self.journal.begin(trace, in_background=self._in_background)
        try:
            outcome = advance(steps, supplied)
            return outcome if isinstance(outcome, Needed) else self._left(trace, outcome)
        finally:
            if self.journal is not None:
                self.journal.end(in_background=self._in_background)

    def _left(self, trace: FinishedTrace, graded: Graded) -> Graded:
        """What is returned of a graded trace."""
        return graded


@dataclass
class ThreadLane(LoopLane):
    """Grades one trace after the other in a thread, and returns nothing that holds what it was read from.

    `grader` is used nowhere else. `form` is what is left of runs, whose lines `read_run` reads.
    """

    form: Form
    read_run: Callable[[bytes], AgentRun]
    _in_background: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._envelopes = EnvelopeRegistry()
        self._thread = GradingThread()
        self.close = self._thread.close

    async def _step(self, trace: FinishedTrace, steps: Steps, supplied: Supplied | None) -> Needed | Graded:
        return await self._thread.run(partial(self._advanced, trace, steps, supplied))

    def _left(self, trace: FinishedTrace, graded: Graded) -> Graded:
        compacted = compact(trace, graded.trace, self.form, self._envelopes, self.read_run)
        for runs in (graded.trace.runs, graded.trace.hidden_runs):
            # All at once they would be released in one step, which no other thread can interrupt.
            while isinstance(runs, list) and runs:
                runs.pop()
        return Graded(compacted, graded.tally, graded.runs)


class GradingThread:
    """Runs one piece of work at a time. It keeps no process from ending, whatever it is at."""

    def __init__(self) -> None:
        self._thread = WorkThread("grade")
        self._closed = asyncio.Event()

    async def run(self, work: Callable[[], _ResultT]) -> _ResultT:
        """What `work` returns or raises, in its turn.

        Raises:
            GradingCutShort: this was closed before.
        """
        if self._closed.is_set():
            raise GradingCutShort
        self._thread.start()
        done = self._thread.run(work)
        closing = asyncio.ensure_future(self._closed.wait())
        try:
            with short_turns():
                await asyncio.wait((done, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if not done.done():
            done.cancel()  # nothing of it is begun from here on
            raise GradingCutShort
        return done.result()

    def close(self) -> None:
        """Wait for nothing any more; what is being worked on is left to itself."""
        self._closed.set()


def is_large(trace: FinishedTrace) -> bool:
    """Whether grading the trace would hold up the loop for long."""
    return len(trace.spans) + len(trace.records) > LARGE_SPANS or trace.size > LARGE_BYTES


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
