"""Where spans leave: at once, or graded with their trace, as soon as the journal has the verdicts on disk."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from collector.buffer import RecordAdmission
from collector.contradictions import Contradictions
from collector.exporters import FanOut
from collector.journal import Journal
from collector.memory_limiter import MemoryLimiter
from collector.trace import FinishedTrace, GradedTrace, Receipt, SpanBatch, held_bytes
from processors.spans import RawRecord, RawSpan

BACKED_UP = 0.4
"""Part of the memory limit that may wait for exporters before no more records are read."""


class ServiceTraces(Protocol):
    """The traces that the service sends to its own listener: they end elsewhere than those of users."""

    def is_own(self, trace_id: bytes) -> bool:
        """Whether the trace is one of these, and not finished yet."""
        ...

    def finish(self, trace: FinishedTrace) -> None:
        """Take a finished trace that was `made` here, count its spans and release its bytes."""
        ...

    def drop_records(self, records: Sequence[RawRecord]) -> None:
        """Count log records of these as dropped and release their bytes; copies come with their trace."""
        ...


@dataclass(kw_only=True)
class Delivery:
    """Hands spans and graded traces to the exporters.

    `service_traces` takes the traces of the service itself, which reach no exporter.
    """

    fan_out: FanOut
    limiter: MemoryLimiter
    service_traces: ServiceTraces
    journal: Journal | None = None
    contradictions: Contradictions | None = None
    _to_store: deque[tuple[GradedTrace, int, int]] = field(default_factory=deque, init=False)
    """Graded traces whose verdicts are not on disk yet, oldest first, with their held bytes and spans."""
    spans_to_store: int = field(default=0, init=False)
    """Spans of these."""
    withheld_spans: int = field(default=0, init=False)
    """Streamed spans of the service's own traces: they stay until these are finished."""

    @property
    def has_room(self) -> bool:
        """Whether further records should be read; not if too much waits for exporters."""
        return self.fan_out.bytes_that_must_wait <= BACKED_UP * self.limiter.limit

    def finish_own(self, trace: FinishedTrace) -> None:
        """End the way of a finished trace of the service itself."""
        if self.withheld_spans:
            self.withheld_spans -= len(trace.spans)
        if trace.records:
            self.limiter.release(held_bytes(trace.records))
        self.service_traces.finish(trace)

    def forward(
        self, batches: Sequence[SpanBatch], *, streamed: bool, receipt: Receipt | None = None
    ) -> None:
        """Forward spans that wait for no verdict: late ones, and all where spans are streamed.

        `receipt` is for the source that they were read from; the journal has one of its own.
        """
        if self.contradictions is not None and not streamed:
            for batch in batches:
                self.contradictions.note_late(batch)
        spans: list[RawSpan] = []
        leaving: list[SpanBatch] = []
        for batch in batches:
            if self.service_traces.is_own(batch.trace_id):
                # Streamed: they stay until their trace is finished, as the copies that are graded.
                self.withheld_spans += len(batch.spans)
                self.limiter.release(held_bytes(batch.spans))
            else:
                spans += batch.spans
                leaving.append(batch)
        if not leaving:
            if receipt is not None:
                receipt.seal()
            return
        if self.journal is not None:
            receipt = self.journal.add_leaving(leaving, streamed=streamed)
        self.fan_out.forward(spans, held_bytes(spans), receipt)

    def forward_records(
        self,
        records: Sequence[RawRecord],
        admitted: RecordAdmission,
        body: bytes | None = None,
        receipt: Receipt | None = None,
    ) -> None:
        """Forward log records that were admitted.

        `body` is their request if it has no other records, for the journal; `receipt` is for the source that
        they were read from. Those of the service's own traces end here.
        """
        if self.contradictions is not None:
            for batch in admitted.late:
                self.contradictions.note_late(batch, are_records=True)
        own = [batch for batch in admitted.kept if self.service_traces.is_own(batch.trace_id)]
        if own:
            dropped = [record for batch in own for record in batch.spans]
            self.service_traces.drop_records(dropped)
            left_out = {id(record) for record in dropped}
            records = [record for record in records if id(record) not in left_out]
            kept = [batch for batch in admitted.kept if batch not in own]
            admitted, body = replace(admitted, held_bytes=held_bytes(records), kept=kept), None
        if self.journal is not None:
            receipt = self.journal.add_records(records, body, admitted.kept)
        self.fan_out.forward(records, admitted.held_bytes, receipt, "logs")

    def deliver(self, trace: FinishedTrace, graded: GradedTrace) -> None:
        """Send a graded trace to the exporters: now, or when its verdicts are on disk."""
        if self.contradictions is not None:
            self.contradictions.keep(trace, graded)
        if trace.records:
            self.limiter.release(held_bytes(trace.records))  # they were copies
        held = held_bytes(trace.spans)
        if self.journal is None:
            self.fan_out.export(graded, held, trace.receipt)
            return
        if not self.fan_out.result_exporters:
            graded = graded.without_runs()  # no exporter takes them, so none waits in memory for the disk
        self.spans_to_store += len(trace.spans)
        self._to_store.append((graded, held, len(trace.spans)))
        self.journal.add_verdicts(trace, graded, self._export_oldest)

    def _export_oldest(self) -> None:
        """The verdicts of the oldest of the graded traces are on disk."""
        assert self.journal is not None
        graded, held, count = self._to_store.popleft()
        self.spans_to_store -= count
        self.fan_out.export(graded, held, self.journal.receipt(graded.trace_id, graded.tenant))
