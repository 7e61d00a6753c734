"""What exporters share that write graded runs as lines: a thread that formats them before a sending queue.

What waits is lines, which take a tenth of the memory of their runs: a run holds all that it was read from.
Their bytes are taken from the service's one budget.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from pydantic import Field

from collector.clock import ends_within
from collector.exporters.counts import QueueCounts
from collector.exporters.delivery import Delivery, Notify
from collector.exporters.exporter import ExporterContext, ExportResponse
from collector.exporters.request import ExportRequest
from collector.exporters.sending_queue import SendingQueue
from collector.exporters.sink import Sink
from collector.exporters.span_exporter_config import BatchConfig, RetryConfig, SendingQueueConfig
from collector.trace import CountedReceipt, GradedTrace
from collector.work_thread import WorkThread
from processors.annotation import format_run
from processors.documents import StrictModel
from processors.model import GradedRun
from processors.spans import Envelope, RawSpan

_RUNS_AT_ONCE = 500
_DROP_REASONS = ("rejected", "queue_full", "shutdown")
_OWN_SHARE, _OWN_BYTES = 16, 8 * 1024 * 1024
"""A writer may use this part of the memory budget, or these bytes where that is more, however full it is: one
that keeps up loses no runs because a backend of spans does not."""
_LINES_TOGETHER = 20
"""Lines that wait and are dropped together, where many runs arrive at once."""
_LINE_OVERHEAD_BYTES = 512
"""Counted for every line in addition to its text: its delivery, and its place in the queue."""
_NO_ENVELOPE = Envelope(b"", b"")
_QUEUE = SendingQueueConfig(
    num_consumers=1, batch=BatchConfig(flush_timeout=0, max_spans=_RUNS_AT_ONCE, max_bytes=8 * 1024 * 1024)
)


class RunWriterConfig(StrictModel):
    """The keys that all of them share."""

    max_pending_runs: int = Field(default=10_000, ge=1)
    """Runs kept while they cannot be written, as far as `processors.memory_limiter` has room for their
    lines; beyond, the oldest are dropped and counted."""


class RunWriter(ABC):
    """Writes graded runs in order, in the background; what is particular to the place is `write`.

    Runs are formatted as they arrive, whatever a write is at.

    Args:
        name: The id in the configuration.
        endpoint: Where the runs go, for logs.
        config: How many runs may wait.
        context: The budget for what waits, the metrics, and the clock.
    """

    def __init__(self, name: str, endpoint: str, config: RunWriterConfig, context: ExporterContext) -> None:
        self.name = name
        self._max_pending = config.max_pending_runs
        self._limiter = context.limiter
        self._own_bytes = max(context.limiter.limit // _OWN_SHARE, _OWN_BYTES)
        self._held_bytes = 0
        self._clock = context.clock
        counts = QueueCounts("runs", name, context.metrics.results_dropped, _DROP_REASONS)
        sink = Sink(name, endpoint, self._send)
        self._queue = SendingQueue(sink, _QUEUE, RetryConfig(), counts=counts, clock=context.clock)
        self._arrived: deque[tuple[GradedRun, Notify | None]] = deque()
        self._formatting: Sequence[Notify | None] = ()
        self._lines_together = min(max(config.max_pending_runs // 100, 1), _LINES_TOGETHER)
        self._has_arrived = asyncio.Event()
        self._is_closing = False
        self._format_thread = WorkThread(f"format-{name}")
        self._formatter: asyncio.Task[None] | None = None
        self._limiter.add_relief(self._shed)

    @abstractmethod
    async def open(self) -> None:
        """Open what is needed; raises `StartupError`."""

    @abstractmethod
    async def write(self, lines: Sequence[RawSpan]) -> int:
        """Write `lines`, each a trace id and a text without its end; how many will never be accepted.

        Raises:
            RetryableExportError: they are not known to be written; they are written again.
        """

    @abstractmethod
    async def close(self, deadline: float) -> None:
        """Close what is open; safe before `open` and twice."""

    async def start(self) -> None:
        """Open the place and start to write."""
        await self.open()
        self._format_thread.start()
        self._formatter = asyncio.create_task(self._format_arrived())
        await self._queue.start()

    def export_results(self, trace: GradedTrace, done: Callable[[], None] | None = None) -> None:
        """Queue the runs of a trace for writing; see `ResultExporter`."""
        notify = None
        if done is not None:
            receipt = CountedReceipt(done)
            for _ in trace.runs:
                receipt.expects(self.name)
            receipt.seal()
            notify = receipt.delivered
        self._arrived.extend((run, notify) for run in trace.runs)
        excess = self._queue.held_spans + len(self._formatting) + len(self._arrived) - self._max_pending
        if excess > 0:
            held = self._queue.held_spans
            self._queue.shed(needed_spans=excess)
            excess -= held - self._queue.held_spans
            self._drop([self._arrived.popleft()[1] for _ in range(min(excess, len(self._arrived)))])
        self._has_arrived.set()

    async def shutdown(self, deadline: float) -> None:
        """Write what is pending until `deadline`, then close."""
        self._is_closing = True
        self._has_arrived.set()
        if self._formatter is not None:
            await ends_within(deadline - self._clock.monotonic(), self._formatter, self._clock)
            self._formatter.cancel()
            await asyncio.gather(self._formatter, return_exceptions=True)
        self._format_thread.close()
        unformatted = [*self._formatting, *(notify for _, notify in self._arrived)]
        self._arrived.clear()
        self._formatting = ()
        self._drop([notify for notify in unformatted if notify is None], "shutdown")
        await self._queue.shutdown(deadline)
        await self.close(deadline)

    async def _format_arrived(self) -> None:
        while True:
            while not self._arrived:
                if self._is_closing:
                    return
                self._has_arrived.clear()
                await self._has_arrived.wait()
            await self._format_some()

    async def _format_some(self) -> None:
        arrived = [self._arrived.popleft() for _ in range(min(len(self._arrived), _RUNS_AT_ONCE))]
        runs, notifies = deque([run for run, _ in arrived]), [notify for _, notify in arrived]
        self._formatting = notifies
        del arrived  # so that each run is released when its line is there
        if all(run.line for run in runs):
            lines = _lines_of(runs)
        else:
            lines = await self._format_thread.run(_lines_of, runs)
        self._formatting = ()
        without_room: list[Notify | None] = []
        for start in range(0, len(lines), self._lines_together):
            some = lines[start : start + self._lines_together]
            size = sum([len(text) + _LINE_OVERHEAD_BYTES for _, text, _ in some])
            theirs = notifies[start : start + self._lines_together]
            if self._has_room(size):
                notify = partial(_notify_all, theirs) if any(theirs) else None
                self._queue.enqueue(Delivery(some, size, self._release, 1, 0, notify))
            else:
                without_room += theirs
        self._drop(without_room)

    async def _send(self, request: ExportRequest) -> ExportResponse:
        return ExportResponse(await self.write([line for _, lines in request.shares for line in lines]))

    def _shed(self, needed_bytes: int) -> int:
        """Drop the oldest lines for want of memory, down to what is the writer's own; how many bytes."""
        excess = self._held_bytes - self._own_bytes
        return self._queue.shed(min(needed_bytes, excess)) if excess > 0 else 0

    def _has_room(self, size: int) -> bool:
        """Acquire the bytes of a line; whether there was room."""
        if self._held_bytes + size <= self._own_bytes:
            self._limiter.take(size)
        elif not self._limiter.try_acquire(size):
            return False
        self._held_bytes += size
        return True

    def _release(self, size: int) -> None:
        self._held_bytes -= size
        self._limiter.release(size)

    def _drop(self, notifies: Sequence[Notify | None], reason: str = "queue_full") -> None:
        """Count runs that never entered the queue as dropped."""
        if not notifies:
            return
        self._queue.turn_away(len(notifies), reason)
        self._queue.log.warning(
            reason, "Graded runs were dropped.", runs=len(notifies), **self._queue.sink.where
        )
        _notify_all(notifies, self.name)


def _notify_all(notifies: Sequence[Notify | None], holder: str) -> None:
    for notify in notifies:
        if notify is not None:
            notify(holder)


def _lines_of(runs: deque[GradedRun]) -> list[RawSpan]:
    """The lines of `runs`, each of which is released then: all at once would stop every thread for long."""
    lines: list[RawSpan] = []
    while runs:
        run = runs.popleft()
        lines.append((run.run.trace_id, format_run(run), _NO_ENVELOPE))
    return lines
