"""Where traces leave: spans and log records to every queue, runs and verdicts to the exporters of these."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

from collector.exporters.counts import QueueContent
from collector.exporters.dead_letters import DeadLetters
from collector.exporters.delivery import Delivery, SpanQueue
from collector.exporters.exporter import ResultExporter, SpanExporter
from collector.memory_limiter import MemoryLimiter
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics
from collector.trace import DELIVERY_OVERHEAD_BYTES, RECEIPT_BYTES, GradedTrace, Receipt, Signal, held_bytes
from processors.spans import RawRecord, RawSpan

FORMS: Mapping[QueueContent, str] = {
    "traces": "", "logs": "#records", "log": "#log", "span": "#span", "score": "#score"
}  # fmt: skip
"""After the name of an exporter: which of its queues, for receipts."""


class FanOut:
    """Hands graded traces to all exporters; none can hold up another.

    The held bytes of a trace return to the limiter when the last queue is done with its spans (at once if
    there is no queue); while they wait, so does what results added to them, and what waiting takes. Queues
    that are not required shed their oldest when the limiter runs full.

    Received log records go to queues of their own, in the same way.

    So do results in a form of their own; scores are built from log records. Without `emits_records` only
    those leave as log records that have no span to be written on. Their bytes are taken from the limiter
    here; where there is no room for them they are dropped, so no span waits for a verdict. `exporters` are
    those behind the queues, which may share one: they are opened and closed here.
    """

    def __init__(
        self,
        queues: Mapping[QueueContent, Sequence[SpanQueue]],
        result_exporters: Sequence[ResultExporter],
        limiter: MemoryLimiter,
        *,
        exporters: Sequence[SpanExporter] = (),
        dead_letters: DeadLetters | None = None,
        emits_records: bool = True,
    ) -> None:
        self.result_exporters = tuple(result_exporters)
        self._queues = queues
        self._all_queues = [*chain.from_iterable(queues.values())]
        self._emits_records = emits_records
        self._exporters = tuple(exporters)
        self._dead_letters = dead_letters
        self._limiter = limiter
        self._release = limiter.release
        for queue in self._all_queues:
            if not queue.is_required:
                limiter.add_relief(queue.shed)

    def queues_of(self, content: QueueContent) -> Sequence[SpanQueue]:
        """The queues of what is received of a signal, or of results in a form."""
        return self._queues.get(content, ())

    @property
    def bytes_that_must_wait(self) -> int:
        """Encoded bytes in the fullest of the queues that may not drop any."""
        return max((queue.queued_bytes for queue in self._all_queues if queue.is_required), default=0)

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Start all; raises the first `StartupError`."""
        if self._dead_letters is not None:
            await self._dead_letters.start(tasks)
        for results in self.result_exporters:
            await results.start()
        for exporter in self._exporters:
            await exporter.start()
        for queue in self._all_queues:
            await queue.start(tasks)

    def export(self, trace: GradedTrace, held: int, receipt: Receipt | None = None) -> None:
        """Send a trace on its way; `held` is what was acquired for its spans, wherever these are now.

        `receipt`, if given, is notified of every exporter and form that it expects.
        """
        self._deliver("traces", trace.spans, receipt, held)
        if trace.runs:
            for results in self.result_exporters:
                name = results.name
                if receipt is None:
                    results.export_results(trace)
                elif receipt.expects(name):
                    results.export_results(trace, partial(receipt.delivered, name))
        if trace.log_records:
            if self._emits_records or not trace.spans:
                self._deliver("log", trace.log_records, receipt)
            self._deliver("score", trace.log_records, receipt)
        if trace.evaluation_spans:
            self._deliver("span", trace.evaluation_spans, receipt)
        if receipt is not None:
            receipt.seal()

    def export_early(self, records: Sequence[RawSpan]) -> None:
        """Send log records of failures of runs that go on; once, or never where there is no room."""
        self._deliver("log", records, None)

    def forward(
        self,
        items: Sequence[RawSpan] | Sequence[RawRecord],
        held: int,
        receipt: Receipt | None = None,
        signal: Signal = "traces",
    ) -> None:
        """Hand spans, or received log records, to every queue of these.

        `held` bytes are given back when the last is done with them.
        """
        self._deliver(signal, items, receipt, held)
        if receipt is not None:
            receipt.seal()

    def _deliver(
        self,
        content: QueueContent,
        items: Sequence[RawSpan],
        receipt: Receipt | None,
        held: int | None = None,
    ) -> None:
        """Enqueue what was received, for which `held` bytes were acquired; or, without those, results."""
        queues, notify, form = self.queues_of(content), None, FORMS[content]
        if receipt is not None:
            queues = tuple(queue for queue in queues if receipt.expects(queue.name + form))
            notify = receipt.delivered
        if held is None:
            held = held_bytes(items)
            if not queues:
                return
            if not self._limiter.try_acquire(held):
                for queue in queues:
                    queue.turn_away(len(items))
                    if notify is not None:
                        notify(queue.name + form)
                return
        elif queues and items:
            more = RECEIPT_BYTES if receipt is not None else 0
            waiting = held_bytes(items) + DELIVERY_OVERHEAD_BYTES + more
            if waiting > held:
                self._limiter.take(waiting - held)
                held = waiting
        required = sum(queue.is_required for queue in queues)
        delivery = Delivery(items, held, self._release, len(queues), required, notify, form)
        for queue in queues:
            queue.enqueue(delivery)

    async def shutdown(self, deadline: float) -> None:
        """Flush all side by side until `deadline`, then close the exporters behind the queues."""
        outcomes = await asyncio.gather(
            *(queue.shutdown(deadline) for queue in self._all_queues),
            *(results.shutdown(deadline) for results in self.result_exporters),
            return_exceptions=True,
        )
        outcomes += await asyncio.gather(
            *(exporter.shutdown(deadline) for exporter in self._exporters), return_exceptions=True
        )
        if self._dead_letters is not None:
            await self._dead_letters.shutdown(deadline)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


class DiscardingQueue(SpanQueue):
    """Counts spans (or received log records) as forwarded at once.

    It represents the console when `debug` is the only exporter, so that the accounting adds up.
    """

    def __init__(self, name: str, metrics: Metrics, signal: Signal = "traces") -> None:
        super().__init__(name, is_required=True)
        books = metrics.books(signal)
        self._forwarded = books.forwarded
        self._forwarded.add(0, name)
        books.held.set(0, name)

    def enqueue(self, delivery: Delivery) -> None:
        """See `SpanQueue`."""
        self._forwarded.add(len(delivery.spans), self.name)
        super().enqueue(delivery)
