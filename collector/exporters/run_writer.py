"""What exporters of graded runs share that write them somewhere: a bounded queue, retries, the books.

What waits is lines, which take a tenth of the memory of the runs that they are of: a run holds all that it
was read from. Their bytes are taken from the service's one budget.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import NamedTuple, TypeAlias

from pydantic import Field

from collector.clock import ends_within
from collector.errors import RetryableExportError
from collector.exporters.exporter import ExporterContext
from collector.exporters.retry import BackOff
from collector.exporters.span_exporter_config import RetryConfig
from collector.telemetry import RateLimitedLogger
from collector.trace import GradedTrace
from processors.annotation import format_run
from processors.documents import StrictModel
from processors.model import GradedRun

_RUNS_AT_ONCE = 500
_BYTES_PER_WRITE = 8 * 1024 * 1024
"""A write has no more, but for one with a single line."""
_OWN_SHARE, _OWN_BYTES = 16, 8 * 1024 * 1024
"""This part of the memory budget, or so many bytes where that is more, a writer may use however full it is:
one that keeps up loses no runs because a backend of spans does not."""
_LINE_OVERHEAD_BYTES = 384
"""Counted for every line beside its text: its place in the queue, and who is told that it is written."""

_Done: TypeAlias = Callable[[], None] | None
"""What to call when all runs of a trace are written; it comes with the last of them."""

_logger = logging.getLogger(__name__)


class RunLine(NamedTuple):
    """A graded run as a line of a runs file, without its end."""

    trace_id: bytes
    text: bytes

    @property
    def held_bytes(self) -> int:
        """What keeping it counts against the memory limit."""
        return len(self.text) + _LINE_OVERHEAD_BYTES


class RunWriterConfig(StrictModel):
    """The keys that all of them share."""

    max_pending_runs: int = Field(default=10_000, ge=1)
    """Runs kept while they cannot be written, as far as `processors.memory_limiter` has room for their
    lines; beyond, the oldest are dropped and counted."""


class RunWriter(ABC):
    """Writes graded runs in order, in the background; what is particular to the place is `write`.

    Runs become lines in a thread as they come, whatever a write is at.

    Args:
        name: The id in the configuration.
        endpoint: Where the runs go, for logs.
        config: How many runs may wait.
        context: The budget for what waits, what counts what is dropped, and what waits are measured on.
    """

    def __init__(self, name: str, endpoint: str, config: RunWriterConfig, context: ExporterContext) -> None:
        self.name = name
        self.endpoint = endpoint
        self._max_pending = config.max_pending_runs
        self._limiter = context.limiter
        self._own_bytes = max(context.limiter.limit // _OWN_SHARE, _OWN_BYTES)
        self._held_bytes = 0
        self._metrics = context.metrics
        self._clock = context.clock
        self._log = RateLimitedLogger(_logger, context.clock)
        self._arrived: deque[tuple[GradedRun, _Done]] = deque()
        self._formatting = 0
        self._pending: deque[tuple[RunLine, _Done]] = deque()
        self._writing: list[tuple[RunLine, _Done]] = []
        self._has_arrived = asyncio.Event()
        self._has_pending = asyncio.Event()
        self._is_closing = False
        self._format_thread = ThreadPoolExecutor(1, thread_name_prefix=f"format-{name}")
        self._formatter: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._limiter.add_relief(self._shed)
        for reason in ("queue_full", "rejected", "shutdown"):
            self._metrics.results_dropped.add(0, reason, name)

    @abstractmethod
    async def open(self) -> None:
        """Open what is needed; raises `StartupError`."""

    @abstractmethod
    async def write(self, lines: Sequence[RunLine]) -> int:
        """Write `lines`; how many of them will never be taken.

        Raises:
            RetryableExportError: they are not known to be written; they come again.
        """

    @abstractmethod
    async def close(self, deadline: float) -> None:
        """Close what is open; safe before `open` and twice."""

    async def start(self) -> None:
        """Open the place and start the writer."""
        await self.open()
        self._formatter = asyncio.create_task(self._format_arrived())
        self._writer = asyncio.create_task(self._write_pending())

    def export_results(self, trace: GradedTrace, done: _Done = None) -> None:
        """Queue the runs of a trace for writing; `done` goes with the last of them."""
        self._arrived.extend((run, None) for run in trace.runs[:-1])
        self._arrived.append((trace.runs[-1], done))
        excess = len(self._pending) + self._formatting + len(self._arrived) - self._max_pending
        dropped = 0
        while dropped < excess and self._pending:
            self._drop_oldest()
            dropped += 1
        while dropped < excess and self._arrived:
            _, done = self._arrived.popleft()
            _tell(done)
            dropped += 1
        if dropped:
            self._drop(dropped, "queue_full")
        self._has_arrived.set()

    async def shutdown(self, deadline: float) -> None:
        """Write what is pending until `deadline`, then close."""
        self._is_closing = True
        self._has_arrived.set()
        tasks = [task for task in (self._formatter, self._writer) if task is not None]
        for task in tasks:
            await ends_within(deadline - self._clock.monotonic(), task, self._clock)
            task.cancel()
            self._has_pending.set()  # no further line comes
        await asyncio.gather(*tasks, return_exceptions=True)
        self._formatter = self._writer = None
        self._format_thread.shutdown(wait=False, cancel_futures=True)
        await self.close(deadline)
        left = [*self._pending, *self._writing]
        lost = len(left) + self._formatting + len(self._arrived)
        self._release(sum(line.held_bytes for line, _ in left))
        self._arrived.clear()
        self._formatting = 0
        self._pending.clear()
        self._writing = []
        if lost:
            self._drop(lost, "shutdown")

    async def _format_arrived(self) -> None:
        """Make lines of runs as they come, and let go of the runs."""
        while True:
            while not self._arrived:
                if self._is_closing:
                    return
                self._has_arrived.clear()
                await self._has_arrived.wait()
            await self._format_some()
            self._has_pending.set()

    async def _format_some(self) -> None:
        count = self._formatting = min(len(self._arrived), _RUNS_AT_ONCE)
        arrived = [self._arrived.popleft() for _ in range(count)]
        runs, dones = deque([run for run, _ in arrived]), [done for _, done in arrived]
        del arrived
        if all(run.line for run in runs):
            lines = _lines_of(runs)
        else:
            lines = await asyncio.get_running_loop().run_in_executor(self._format_thread, _lines_of, runs)
        self._formatting = 0
        turned_away = 0
        for line, done in zip(lines, dones, strict=True):
            if self._has_room(line.held_bytes):
                self._pending.append((line, done))
            else:
                turned_away += 1
                _tell(done)
        if turned_away:
            self._drop(turned_away, "queue_full")

    async def _write_pending(self) -> None:
        back_off = BackOff(RetryConfig(), Random())
        while True:
            while not self._pending:
                if self._is_closing and (self._formatter is None or self._formatter.done()):
                    return
                self._has_pending.clear()
                await self._has_pending.wait()
            self._writing = self._next()
            try:
                refused = await self.write([line for line, _ in self._writing])
            except RetryableExportError as error:
                self._pending.extendleft(reversed(self._writing))
                self._writing = []
                self._log.warning(
                    "failing",
                    "Results cannot be written; they are kept and written later.",
                    exporter=self.name,
                    endpoint=self.endpoint,
                    error=str(error),
                    pending_runs=len(self._pending),
                )
                await self._clock.sleep(back_off.next_wait())
            else:
                written, self._writing = self._writing, []
                self._release(sum(line.held_bytes for line, _ in written))
                for _, done in written:
                    _tell(done)
                if refused:
                    self._drop(refused, "rejected")
                back_off = BackOff(RetryConfig(), Random())

    def _next(self) -> list[tuple[RunLine, _Done]]:
        """The oldest lines, as many as go into one write."""
        found: list[tuple[RunLine, _Done]] = []
        size = 0
        while self._pending and len(found) < _RUNS_AT_ONCE:
            size += len(self._pending[0][0].text)
            if found and size > _BYTES_PER_WRITE:
                break
            found.append(self._pending.popleft())
        return found

    def _shed(self, bytes_wanted: int) -> int:
        """Drop the oldest lines for want of memory, down to what is the writer's own; how many bytes."""
        freed = dropped = 0
        while freed < bytes_wanted and self._pending and self._held_bytes > self._own_bytes:
            freed += self._drop_oldest()
            dropped += 1
        if dropped:
            self._drop(dropped, "queue_full")
        return freed

    def _drop_oldest(self) -> int:
        line, done = self._pending.popleft()
        self._release(line.held_bytes)
        _tell(done)
        return line.held_bytes

    def _has_room(self, size: int) -> bool:
        """Whether there was room for a line, which is taken then."""
        if self._held_bytes + size <= self._own_bytes:
            self._limiter.take(size)
        elif not self._limiter.try_acquire(size):
            return False
        self._held_bytes += size
        return True

    def _release(self, size: int) -> None:
        self._held_bytes -= size
        self._limiter.release(size)

    def _drop(self, count: int, reason: str) -> None:
        self._metrics.results_dropped.add(count, reason, self.name)
        self._log.warning(
            reason, "Results were dropped.", exporter=self.name, endpoint=self.endpoint, runs=count
        )


def _tell(done: _Done) -> None:
    if done is not None:
        done()


def _lines_of(runs: deque[GradedRun]) -> list[RunLine]:
    """The lines of `runs`, each of which is let go of then: all at once would stop every thread for long."""
    lines: list[RunLine] = []
    while runs:
        run = runs.popleft()
        lines.append(RunLine(run.run.trace_id, format_run(run)))
    return lines
