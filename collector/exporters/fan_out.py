"""Where a graded trace leaves: its spans to every queue, its runs and verdicts to whoever takes them."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from collector.exporters.dead_letters import DeadLetters
from collector.exporters.delivery import Delivery
from collector.exporters.exporter import ResultExporter
from collector.memory_limiter import MemoryLimiter
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics
from collector.trace import DELIVERY_OVERHEAD_BYTES, RECEIPT_BYTES, GradedTrace, Receipt, held_bytes
from processors.spans import RawSpan


class SpanQueue(Protocol):
    """The queue before one exporter of spans."""

    name: str
    is_required: bool
    queued_bytes: int

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


class ResultQueue(SpanQueue, Protocol):
    """A queue of results in a form of their own before one exporter; never a required one."""

    def turn_away(self, count: int) -> None:
        """Count results for which there is no room."""
        ...


class FanOut:
    """Hands graded traces to all exporters; none can hold up another.

    The held bytes of a trace go back to the limiter when the last queue is done with its spans (at once
    if there is no queue); while they wait, so does what results added to them, and what waiting takes.
    Queues that are not required shed their oldest when the limiter runs full.

    Log records and spans of verdicts go to `log_queues` and `evaluation_span_queues`; `score_queues` get the
    log records as well, whose exporters make scores of them. Their bytes are taken
    from the limiter here; where there is no room for them they are dropped, so no span waits for a verdict
    that nobody takes.
    """

    def __init__(
        self,
        queues: Sequence[SpanQueue],
        result_exporters: Sequence[ResultExporter],
        limiter: MemoryLimiter,
        *,
        log_queues: Sequence[ResultQueue] = (),
        evaluation_span_queues: Sequence[ResultQueue] = (),
        score_queues: Sequence[ResultQueue] = (),
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self.queues = tuple(queues)
        self.result_exporters = tuple(result_exporters)
        self.log_queues = tuple(log_queues)
        self.evaluation_span_queues = tuple(evaluation_span_queues)
        self.score_queues = tuple(score_queues)
        self._all_queues: tuple[SpanQueue, ...] = (
            *self.queues,
            *self.log_queues,
            *self.evaluation_span_queues,
            *self.score_queues,
        )
        self._dead_letters = dead_letters
        self._limiter = limiter
        self._release = limiter.release
        self._required = sum(queue.is_required for queue in queues)
        for queue in self._all_queues:
            if not queue.is_required:
                limiter.add_relief(queue.shed)

    @property
    def bytes_that_must_wait(self) -> int:
        """Encoded bytes in the fullest of the queues that may not drop any."""
        return max((queue.queued_bytes for queue in self.queues if queue.is_required), default=0)

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Start all; raises the first `StartupError`."""
        if self._dead_letters is not None:
            await self._dead_letters.start(tasks)
        for results in self.result_exporters:
            await results.start()
        for queue in self._all_queues:
            await queue.start(tasks)

    def export(self, trace: GradedTrace, held: int, receipt: Receipt | None = None) -> None:
        """Send a trace on its way; `held` is what was acquired for its spans, wherever these are now.

        `receipt`, if given, takes note of every exporter and form, and of none that it does not expect.
        """
        self._deliver(trace.spans, held, self.queues, receipt)
        if trace.runs:
            for results in self.result_exporters:
                name = results.name
                if receipt is None:
                    results.export_results(trace)
                elif receipt.expects(name):
                    results.export_results(trace, partial(receipt.delivered, name))
        if trace.log_records:
            self._send_results(trace.log_records, self.log_queues, receipt, "#log")
            self._send_results(trace.log_records, self.score_queues, receipt, "#score")
        if trace.evaluation_spans:
            self._send_results(trace.evaluation_spans, self.evaluation_span_queues, receipt, "#span")
        if receipt is not None:
            receipt.seal()

    def forward(self, spans: Sequence[RawSpan], held: int, receipt: Receipt | None = None) -> None:
        """Hand spans to every queue; `held` bytes are given back when the last is done with them."""
        self._deliver(spans, held, self.queues, receipt)
        if receipt is not None:
            receipt.seal()

    def _deliver(
        self, spans: Sequence[RawSpan], held: int, queues: Sequence[SpanQueue], receipt: Receipt | None
    ) -> None:
        required = self._required
        if receipt is not None:
            queues = [queue for queue in queues if receipt.expects(queue.name)]
            required = sum(queue.is_required for queue in queues)
        if queues and spans:
            waiting = (
                held_bytes(spans) + DELIVERY_OVERHEAD_BYTES + (RECEIPT_BYTES if receipt is not None else 0)
            )
            if waiting > held:
                self._limiter.take(waiting - held)
                held = waiting
        delivery = Delivery(
            spans, held, self._release, holders=len(queues), required_holders=required, receipt=receipt
        )
        for queue in queues:
            queue.enqueue(delivery)

    def _send_results(
        self, results: Sequence[RawSpan], queues: Sequence[ResultQueue], receipt: Receipt | None, form: str
    ) -> None:
        if receipt is not None:
            queues = [queue for queue in queues if receipt.expects(queue.name + form)]
        if not queues:
            return
        held = held_bytes(results)
        if not self._limiter.try_acquire(held):
            for queue in queues:
                queue.turn_away(len(results))
                if receipt is not None:
                    receipt.delivered(queue.name + form)
            return
        delivery = Delivery(
            results,
            held,
            self._release,
            holders=len(queues),
            required_holders=0,
            receipt=receipt,
            form=form,
        )
        for queue in queues:
            queue.enqueue(delivery)

    async def shutdown(self, deadline: float) -> None:
        """Flush all of them side by side until `deadline`."""
        closing = [queue.shutdown(deadline) for queue in self._all_queues]
        closing += [results.shutdown(deadline) for results in self.result_exporters]
        outcomes = await asyncio.gather(*closing, return_exceptions=True)
        if self._dead_letters is not None:
            await self._dead_letters.shutdown(deadline)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


class DiscardingQueue:
    """Takes deliveries as a `SendingQueue` does and counts their spans as forwarded at once.

    It stands for the console when `debug` is the only exporter, so that the accounting adds up.
    """

    def __init__(self, name: str, metrics: Metrics) -> None:
        self.name = name
        self.is_required = True
        self.held_spans = 0
        self.queued_bytes = 0
        self._metrics = metrics
        metrics.spans_forwarded.add(0, name)
        metrics.spans_held.set(0, name)

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Nothing to open."""

    def enqueue(self, delivery: Delivery) -> None:
        """Let the spans go."""
        self._metrics.spans_forwarded.add(len(delivery.spans), self.name)
        delivery.let_go(self.name, required=True)

    def shed(self, bytes_wanted: int) -> int:
        """Nothing is held, nothing can be shed."""
        return 0

    async def shutdown(self, deadline: float) -> None:
        """Nothing to flush."""
