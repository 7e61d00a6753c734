"""What exporters share that write graded runs as lines, before a sending queue.

What waits is lines, which take a tenth of the memory of their runs: a run holds all that it was read from.
Their bytes are taken from the service's one budget.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pydantic import Field

from collector.exporters.counts import QueueCounts
from collector.exporters.delivery import Delivery
from collector.exporters.exporter import ExporterContext, ExportResponse
from collector.exporters.request import ExportRequest
from collector.exporters.sending_queue import SendingQueue
from collector.exporters.sink import Sink
from collector.exporters.span_exporter_config import BatchConfig, RetryConfig, SendingQueueConfig
from collector.trace import GradedTrace
from processors.annotation import format_run
from processors.documents import StrictModel
from processors.spans import Envelope, RawSpan

_DROP_REASONS = ("rejected", "queue_full", "shutdown")
_OWN_SHARE, _OWN_BYTES = 16, 8 * 1024 * 1024
"""A writer may use this part of the memory budget, or these bytes where that is more, however full it is: one
that keeps up loses no runs because a backend of spans does not."""
_LINE_OVERHEAD_BYTES = 512
"""Counted for every line in addition to its text: its delivery, and its place in the queue."""
_NO_ENVELOPE = Envelope(b"", b"")
_QUEUE = SendingQueueConfig(
    num_consumers=1, batch=BatchConfig(flush_timeout=0, max_spans=500, max_bytes=8 * 1024 * 1024)
)


class RunWriterConfig(StrictModel):
    """The keys that all of them share."""

    max_pending_runs: int = Field(default=10_000, ge=1)
    """Runs kept while they cannot be written, as far as `processors.memory_limiter` has room for their
    lines; beyond, the oldest are dropped and counted."""


class RunWriter(ABC):
    """Writes graded runs in order, in the background; what is particular to the place is `write`.

    A line is made where its run arrives, in the loop, as the store makes its rows: runs that wait for a
    thread cost the loop more than that, mostly in the garbage collector. Those of a large trace come with
    their lines.

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
        counts = QueueCounts("runs", name, context.metrics.results_dropped, _DROP_REASONS)
        sink = Sink(name, endpoint, self._send)
        self._queue = SendingQueue(sink, _QUEUE, RetryConfig(), counts=counts, clock=context.clock)
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
        await self._queue.start()

    def export_results(self, trace: GradedTrace, done: Callable[[], None] | None = None) -> None:
        """Queue the runs of a trace for writing; see `ResultExporter`."""
        # Copied: the buffer that JSON was written to was larger, and what it leaves behind each line is lost
        # (measured: 64 MiB of lines took 87).
        texts = [bytes(memoryview(format_run(run))) for run in trace.runs]
        lines = [(run.run.trace_id, text, _NO_ENVELOPE) for run, text in zip(trace.runs, texts, strict=True)]
        excess = self._queue.held_spans + len(lines) - self._max_pending
        if excess > 0:
            self._queue.shed(needed_spans=excess)
        size = sum([len(text) + _LINE_OVERHEAD_BYTES for _, text, _ in lines])
        if self._queue.held_spans + len(lines) <= self._max_pending and self._has_room(size):
            notify = None if done is None else lambda _: done()
            self._queue.enqueue(Delivery(lines, size, self._release, 1, 0, notify))
            return
        self._queue.turn_away(len(lines))
        self._queue.log.warning(
            "queue_full", "Graded runs were dropped.", runs=len(lines), **self._queue.sink.where
        )
        if done is not None:
            done()

    async def shutdown(self, deadline: float) -> None:
        """Write what is pending until `deadline`, then close."""
        await self._queue.shutdown(deadline)
        await self.close(deadline)

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
