"""Going on after a restart: what the journal held goes back to where it was."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, get_args

from collector.buffer import TraceBuffer, settled_spans
from collector.exporters import FanOut
from collector.grading import GradingStage
from collector.journal import (
    BatchKind,
    Journal,
    JournalledBatch,
    Place,
    StoredVerdicts,
    trace_key,
)
from collector.memory_limiter import MemoryLimiter
from collector.otlp import EnvelopeRegistry, join_spans
from collector.task_supervisor import TaskOwner
from collector.telemetry import BEFORE_FAN_OUT, Metrics
from collector.trace import FinishedTrace, GradedTrace, Receipt, Signal, held_bytes
from collector.trace_forms import Additions
from processors.model import FinishReason
from processors.spans import RawSpan

MAX_QUARANTINED = 100
"""Traces stored for a report; the oldest are removed first."""

_BATCHES_AT_ONCE = 1000
"""Batches that are handled between two turns of the loop."""

_logger = logging.getLogger(__name__)


class _Graded(NamedTuple):
    """A trace that was graded, and who of the exporters has received it."""

    trace: FinishedTrace
    stored: StoredVerdicts | Additions
    already: frozenset[str]
    receipt: Receipt


@dataclass(kw_only=True)
class Resumption:
    """Hands what was recovered to the buffer, and what was graded already to the exporters.

    `resume` comes first, before any request is taken, and `send_graded` before any trace finishes: senders
    wait for the former alone. `on_runs` is called with every trace that gets verdicts here, before it leaves.
    """

    journal: Journal
    envelopes: EnvelopeRegistry
    buffer: TraceBuffer
    grading: GradingStage
    fan_out: FanOut
    limiter: MemoryLimiter
    metrics: Metrics
    on_runs: Callable[[GradedTrace], None]
    _graded: deque[_Graded] = field(init=False, default_factory=deque)

    async def resume(self, tasks: TaskOwner) -> int:
        """Open the journal and take over what it holds; the exporters are running.

        However much that is, the loop turns meanwhile: exporters send, and the process shows that it lives.

        Returns:
            Until when the process before received requests, in Unix nanoseconds; 0 where none did.

        Raises:
            StartupError: the journal cannot be opened.
        """
        journal = self.journal
        recovered = await asyncio.to_thread(journal.open, self.envelopes)
        self.buffer.restore_outages(recovered.outages)
        journal.record_outages(self.buffer.outages)
        journal.start(tasks)
        for signal in get_args(Signal):
            books = self.metrics.books(signal)
            books.recovered.add(0, BEFORE_FAN_OUT)
            for queue in self.fan_out.queues_of(signal):
                books.sent_again.add(0, queue.name)
        for finished in recovered.finished:
            self.buffer.remember_finished(finished.key, finished.span_ids, finished.latest_end)
        taken_out: dict[bytes, list[JournalledBatch]] = {}
        for number, (place, journalled) in enumerate(recovered.batches.items(), 1):
            if number % _BATCHES_AT_ONCE == 0:
                await asyncio.sleep(0)
            batch = journalled.batch
            key = trace_key(batch.trace_id, batch.tenant)
            if journalled.kind is not BatchKind.HELD and place not in recovered.left:
                self._forward(place, journalled)
            if journalled.kind.leaves_at_once:
                continue
            if key in recovered.verdicts or key in recovered.quarantined:
                taken_out.setdefault(key, []).append(journalled)
                continue
            if journalled.kind.are_records:
                self.buffer.restore_records(batch, journalled.arrived_unix_nano, recovered.alive_unix_nano)
                continue
            if not self.buffer.streams:
                self.metrics.spans_recovered.add(len(batch.spans), BEFORE_FAN_OUT)
            self.buffer.restore(batch, journalled.arrived_unix_nano, recovered.alive_unix_nano)
        for key, journalled_batches in taken_out.items():
            await asyncio.sleep(0)
            trace = _trace_of(journalled_batches)
            self.limiter.take(held_bytes(trace.spans))
            already = recovered.deliveries.get(key, frozenset())
            if not self.buffer.streams:
                for name in self._missing(already):
                    self.metrics.spans_sent_again.add(len(trace.spans), name)
            verdicts = recovered.verdicts.get(key)
            if verdicts is None:
                await self._quarantine(trace)
                continue
            # Requested here: spans that are taken in later, under the same key, are none of its own.
            receipt = journal.receipt(trace.trace_id, trace.tenant, already)
            self._graded.append(_Graded(trace, verdicts, already, receipt))
        if recovered.batches:
            _logger.info(
                "Continuing with the contents of the journal.",
                extra={
                    "spans": _count(recovered.batches.values(), of_records=False),
                    "log_records": _count(recovered.batches.values(), of_records=True),
                    "graded_traces": len(recovered.verdicts),
                    "quarantined_traces": len(recovered.quarantined),
                },
            )
        return recovered.alive_unix_nano

    def _forward(self, place: Place, journalled: JournalledBatch) -> None:
        """Spans or log records that left at once, and that some exporter has not received."""
        items = journalled.batch.spans
        signal: Signal = "logs" if journalled.kind.are_records else "traces"
        books = self.metrics.books(signal)
        books.recovered.add(len(items), BEFORE_FAN_OUT)
        for queue in self.fan_out.queues_of(signal):
            books.sent_again.add(len(items), queue.name)
        held = held_bytes(items)
        self.limiter.take(held)
        self.fan_out.forward(items, held, self.journal.leaving_receipt(place), signal)

    async def send_graded(self) -> None:
        """Send the traces that a process before graded to the exporters that have not received them.

        Requests may be taken meanwhile. What happens in conversations later must be graded later, too.
        """
        while self._graded:
            await asyncio.sleep(0)
            trace, stored, already, receipt = self._graded.popleft()
            if isinstance(stored, Additions):
                graded = stored.graded(trace, holds_spans=not self.buffer.streams)
            else:
                trace = replace(
                    trace,
                    reason=stored.reason,
                    was_quiet=stored.was_quiet,
                    interrupted=stored.interrupted,
                    backfill=stored.backfill,
                    quarantined=stored.quarantined,
                )
                graded = await self.grading.restore(trace, stored)
            self._export(trace, graded, already, receipt)

    async def _quarantine(self, trace: FinishedTrace) -> None:
        """A trace that was being graded in two crashes: it is not graded any more, and a copy stays."""
        folder = self.journal.config.directory / "quarantine"
        try:
            for suffix, items in (("", trace.spans), ("-logs", trace.records)):
                if items:
                    _keep(folder, f"{trace.trace_id.hex()}{suffix}", items)
        except OSError as error:
            _logger.error("A trace could not be stored.", extra={"path": str(folder), "error": str(error)})
        self.metrics.traces_quarantined.add(1)
        _logger.error(
            "A trace was being graded when the process crashed, twice: it is forwarded ungraded.",
            extra={"trace_id": trace.trace_id.hex(), "path": str(folder)},
        )
        trace = replace(trace, reason=FinishReason.IDLE, quarantined=True)
        graded = await self.grading.grade(trace)
        self.on_runs(graded)
        key = trace_key(trace.trace_id, trace.tenant)
        self.buffer.remember_finished(key, [span[0] for span in trace.spans])
        self.journal.add_verdicts(trace, graded, lambda: None)
        self._export(trace, graded, frozenset(), self.journal.receipt(trace.trace_id, trace.tenant))

    def _missing(self, already: frozenset[str]) -> list[str]:
        """The exporters of spans that have not received what those in `already` have."""
        return [queue.name for queue in self.fan_out.queues_of("traces") if queue.name not in already]

    def _export(
        self, trace: FinishedTrace, graded: GradedTrace, already: frozenset[str], receipt: Receipt
    ) -> None:
        """Send a trace that was taken out of the buffer, counted for the exporters that are to get it."""
        if not self.buffer.streams:
            for name in self._missing(already) if already else (BEFORE_FAN_OUT,):
                self.metrics.spans_recovered.add(len(trace.spans), name)
        self.fan_out.export(graded, held_bytes(trace.spans), receipt)


def _count(batches: Iterable[JournalledBatch], *, of_records: bool) -> int:
    """The spans in `batches`, or the log records."""
    return sum(
        len(journalled.batch.spans) for journalled in batches if journalled.kind.are_records == of_records
    )


def _trace_of(journalled: Sequence[JournalledBatch]) -> FinishedTrace:
    """The trace that was held in these batches."""
    records = {item[1]: item for each in journalled if each.kind.are_records for item in each.batch.spans}
    return FinishedTrace(
        trace_id=journalled[0].batch.trace_id,
        spans=settled_spans(each.batch for each in journalled if not each.kind.are_records),
        reason=FinishReason.ROOT,
        tenant=journalled[0].batch.tenant,
        records=list(records.values()),
    )


def _keep(folder: Path, name: str, items: Sequence[RawSpan]) -> None:
    """Write spans or log records, as received, to a file that `tracegrade replay` reads."""
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{name}.binpb"
    file.touch(mode=0o600)
    file.write_bytes(join_spans(items))
    for oldest in sorted(folder.glob("*.binpb"))[:-MAX_QUARANTINED]:
        oldest.unlink()
