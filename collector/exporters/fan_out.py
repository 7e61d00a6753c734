"""Where a graded trace leaves: its spans to every queue, its runs to every exporter of results."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from collector.exporters.delivery import Delivery
from collector.exporters.exporter import ResultExporter, TaskOwner
from collector.memory_limiter import MemoryLimiter
from collector.trace import GradedTrace


class SpanQueue(Protocol):
    """The queue before one exporter of spans."""

    name: str
    is_required: bool

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Start sending; raises `StartupError`."""
        ...

    def enqueue(self, delivery: Delivery) -> None:
        """Take a delivery, and call its `let_go` once when all its spans are forwarded or dropped."""
        ...

    def shed(self, bytes_wanted: int) -> int:
        """Drop what may be dropped for want of memory; the held bytes of what was."""
        ...

    async def shutdown(self, deadline: float) -> None:
        """Flush until `deadline`, then drop."""
        ...


class FanOut:
    """Hands graded traces to all exporters; none can hold up another.

    The held bytes of a trace go back to the limiter when the last queue is done with its spans (at once
    if there is no queue). Queues that are not required shed their oldest when the limiter runs full.
    """

    def __init__(
        self,
        queues: Sequence[SpanQueue],
        result_exporters: Sequence[ResultExporter],
        limiter: MemoryLimiter,
    ) -> None:
        self.queues = tuple(queues)
        self.result_exporters = tuple(result_exporters)
        self._release = limiter.release
        self._required = sum(queue.is_required for queue in queues)
        for queue in queues:
            if not queue.is_required:
                limiter.add_relief(queue.shed)

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Start all; raises the first `StartupError`."""
        for results in self.result_exporters:
            await results.start()
        for queue in self.queues:
            await queue.start(tasks)

    def export(self, trace: GradedTrace, held_bytes: int) -> None:
        """Send a trace on its way; `held_bytes` is what was acquired for its spans."""
        delivery = Delivery(
            trace.spans,
            held_bytes,
            self._release,
            holders=len(self.queues),
            required_holders=self._required,
        )
        for queue in self.queues:
            queue.enqueue(delivery)
        if trace.runs:
            for results in self.result_exporters:
                results.export_results(trace)

    async def shutdown(self, deadline: float) -> None:
        """Flush all of them side by side until `deadline`."""
        closing = [queue.shutdown(deadline) for queue in self.queues]
        closing += [results.shutdown(deadline) for results in self.result_exporters]
        for outcome in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
