"""Late spans of traces that were graded: whether a verdict would have been another one with them.

The spans of graded traces are retained for a while, in a bounded number of bytes. When late spans of one
arrive, it is graded again with them between requests, a few a second, and the outcomes are compared. No
verdict is changed.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeAlias

from collector.clock import Clock
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, GradedTrace, SpanBatch, held_bytes
from processors.criteria import CriteriaSet
from processors.model import GradedRun, Outcome
from processors.spans import RawRecord, RawSpan

KEPT_SECONDS = 30.0
KEPT_BYTES, TRACE_BYTES = 32 * 1024 * 1024, 1024 * 1024
"""What is retained of all traces, and of one; a larger trace is not retained."""
SETTLE_SECONDS = 1.0
"""How long after its last late span a trace is graded again."""
INTERVAL_SECONDS = 0.5
_TRACES_AT_A_TIME = 4
_MAX_DUE = 1_000

_Verdicts: TypeAlias = Mapping[tuple[bytes | None, str, str], Outcome]


@dataclass(slots=True)
class _Kept:
    """A graded trace, its verdicts, and the late spans that arrived since."""

    trace: FinishedTrace
    verdicts: _Verdicts
    criteria: CriteriaSet
    size: int
    kept_at: float
    late_at: float = 0.0
    late: list[RawSpan] = field(default_factory=list)
    late_records: list[RawRecord] = field(default_factory=list)


@dataclass(eq=False)
class Contradictions:
    """Checks graded traces against their late spans.

    `regrade` grades a trace and leaves no other mark; None where it cannot. `criteria` are those in force:
    under others than before nothing is compared.
    """

    regrade: Callable[[FinishedTrace], GradedTrace | None]
    criteria: Callable[[], CriteriaSet]
    metrics: Metrics
    clock: Clock

    def __post_init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, str], _Kept] = OrderedDict()
        self._due: OrderedDict[tuple[bytes, str], _Kept] = OrderedDict()
        self.kept_bytes = 0
        self.metrics.verdicts_contradicted.start(Outcome.PASS.value, Outcome.FAIL.value)
        self.metrics.late_traces_checked.start("same", "contradicted", "not_kept", "not_graded")

    def keep(self, trace: FinishedTrace, graded: GradedTrace) -> None:
        """Retain a graded trace for a while, if it has any verdict."""
        verdicts = _verdicts(graded.graded_runs)
        size = held_bytes(trace.spans) + held_bytes(trace.records)
        now = self.clock.monotonic()
        if verdicts and size <= TRACE_BYTES:
            key = trace.trace_id, trace.tenant
            self._discard(key)
            self._kept[key] = _Kept(replace(trace, receipt=None), verdicts, self.criteria(), size, now)
            self.kept_bytes += size
        while self._kept:
            key, oldest = next(iter(self._kept.items()))
            if self.kept_bytes <= KEPT_BYTES and now - oldest.kept_at < KEPT_SECONDS:
                break
            self._discard(key)

    def note_late(self, batch: SpanBatch, *, are_records: bool = False) -> None:
        """Late spans, or log records of agents, arrived: a retained trace is to be graded again with them."""
        key = batch.trace_id, batch.tenant
        kept = self._due.get(key) or self._kept.get(key)
        if kept is None or len(self._due) >= _MAX_DUE:
            self.metrics.late_traces_checked.add(1, "not_kept")
            return
        (kept.late_records if are_records else kept.late).extend(batch.spans)
        kept.late_at = self.clock.monotonic()
        self._due[key] = kept
        self._due.move_to_end(key)

    def check(self) -> None:
        """Grade some of the traces again whose late spans have arrived; to be called twice a second."""
        now = self.clock.monotonic()
        for _ in range(_TRACES_AT_A_TIME):
            if not self._due or now - next(iter(self._due.values())).late_at < SETTLE_SECONDS:
                return
            _, kept = self._due.popitem(last=False)
            trace = replace(
                kept.trace,
                spans=[*kept.trace.spans, *kept.late],
                records=[*kept.trace.records, *kept.late_records],
            )
            graded = self.regrade(trace) if kept.criteria is self.criteria() else None
            if graded is None:
                self.metrics.late_traces_checked.add(1, "not_graded")
                continue
            verdicts = _verdicts(graded.graded_runs)
            other = [outcome for name, outcome in kept.verdicts.items() if verdicts.get(name) != outcome]
            for outcome in other:
                self.metrics.verdicts_contradicted.add(1, outcome.value)
            self.metrics.late_traces_checked.add(1, "contradicted" if other else "same")
            # What else is late is compared with what is known now, so that nothing is counted twice.
            kept.trace, kept.verdicts, kept.late, kept.late_records = trace, verdicts, [], []

    async def follow(self) -> NoReturn:
        """Check until cancelled."""
        while True:
            await self.clock.sleep(INTERVAL_SECONDS)
            self.check()

    def _discard(self, key: tuple[bytes, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.kept_bytes -= kept.size


def _verdicts(runs: Sequence[GradedRun]) -> _Verdicts:
    """What passed and what failed, by run and evaluation."""
    return {
        (run.run.span_id, run.run.agent.name, result.name): result.outcome
        for run in runs
        for result in run.results
        if result.is_verdict
    }
