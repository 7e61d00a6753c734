"""Recorded traffic as one stream: read, grouped by trace, and graded with exactly the service's code.

Spans of a trace may lie in several files, and its log records in others or the same. There is no finish
clock: every trace finishes with the reason that unlimited quiet would give it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from collector.buffer import GroupByTraceConfig, TraceBuffer
from collector.clock import ManualClock
from collector.conversations import Conversations
from collector.grading import Grader, GradingStage
from collector.memory_limiter import MemoryLimiter
from collector.otlp import SplitRecords
from collector.recordings.recorded_traffic import RecordedTraffic
from collector.results_config import UNWRITTEN
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, SpanBatch
from collector.workers.offline import OfflineWorkers
from processors.criteria import CriteriaSet, Evaluation, applied_criteria
from processors.documents import Problem
from processors.evaluate import evaluate_run
from processors.model import AgentRun, EvaluationResult, FinishReason, GradedRun, PriceTable, WholeTrace
from processors.records import read_record_head
from processors.shapes import Dialect
from processors.spans import RawRecord

_NO_LIMIT = 1 << 62
_ItemT = TypeVar("_ItemT")


class Progress(Protocol):
    """Shows how far a loop over `items` is."""

    def __call__(self, items: Sequence[_ItemT], description: str) -> Iterable[_ItemT]:
        """The items, in order."""


def no_progress(items: Sequence[_ItemT], description: str) -> Iterable[_ItemT]:
    """A `Progress` that shows nothing."""
    return items


@dataclass(kw_only=True)
class RecordedStream:
    """Spans in a real trace buffer, their log records, and hand-written runs, in order of first arrival."""

    unix_nano: int = 0
    """The time of grading, by which mutes are in force."""
    dialects: Sequence[Dialect] = ()
    """Telemetry conventions of the user's own."""
    prices: PriceTable | None = None
    """What models cost; where they do not cover a run, the cost that the run itself reports counts."""
    workers: OfflineWorkers | None = None
    """What runs custom evaluators."""
    conversations: Conversations = field(default_factory=Conversations)
    """What is known of conversations; by default all of what is read."""
    spans: int = field(default=0, init=False)
    runs: int = field(default=0, init=False)
    records: int = field(default=0, init=False)
    """How many were read; of log records those that carry content of agents. Runs that log records report
    without spans are counted when they are graded."""
    warnings: list[Problem] = field(default_factory=list, init=False)
    """Spans and log records that were left out."""

    def __post_init__(self) -> None:
        self._clock = ManualClock(unix_nano=self.unix_nano)
        self._metrics = Metrics()
        self._buffer = TraceBuffer(
            config=GroupByTraceConfig(max_spans_per_trace=_NO_LIMIT, max_bytes_per_trace=_NO_LIMIT),
            limiter=MemoryLimiter(_NO_LIMIT),
            metrics=self._metrics,
            clock=self._clock,
        )
        self._runs: dict[bytes, list[AgentRun]] = {}
        self._records: dict[bytes, list[RawRecord]] = {}
        self._order: dict[bytes, None] = {}
        self._finished: dict[bytes, FinishedTrace] = {}

    def read(self, paths: Sequence[Path], progress: Progress = no_progress) -> list[Problem]:
        """Read everything in `paths`; what could not be read."""
        traffic = RecordedTraffic()
        for file in progress(traffic.find(paths), "Reading"):
            for item in traffic.read(file):
                if isinstance(item, AgentRun):
                    self.add_run(item)
                elif isinstance(item, SplitRecords):
                    self._add_records(item)
                else:
                    self.spans += item.accepted
                    batches = [SpanBatch(trace_id, spans) for trace_id, spans in item.traces.items()]
                    self._order.update(dict.fromkeys(batch.trace_id for batch in batches))
                    self._buffer.admit(batches)
        self.warnings += traffic.warnings
        return traffic.problems

    def _add_records(self, request: SplitRecords) -> None:
        for record in request.records:
            head = read_record_head(record[1], record[2])
            if head is not None:
                self.records += 1
                for trace_id in filter(None, (head.trace_id, head.run_id)):
                    self._records.setdefault(trace_id, []).append(record)
                if head.run_id:
                    self._order.setdefault(head.run_id)

    def add_run(self, run: AgentRun) -> None:
        """Add a run."""
        self.runs += 1
        run = self.priced(run)
        self._order.setdefault(run.trace_id)
        self._runs.setdefault(run.trace_id, []).append(run)

    def priced(self, run: AgentRun) -> AgentRun:
        """`run` with its cost by `prices`, where they cover it."""
        cost = None
        if self.prices is not None:
            cost = self.prices.cost(run.model_calls, run.usage, run.models)
        return run if cost is None else replace(run, cost=cost)

    @property
    def trace_ids(self) -> Sequence[bytes]:
        """The traces that were read, in order of first arrival."""
        return list(self._order)

    @property
    def is_apart(self) -> bool:
        """Whether grading takes no other process than this one."""
        return self.workers is None or self.workers.pool is None

    def settle(self) -> None:
        """Take all that was read as finished."""
        self._finished.update((trace.trace_id, trace) for trace in self._buffer.settle())

    def grade(
        self,
        criteria: CriteriaSet,
        progress: Progress = no_progress,
        before_trace: Callable[[FinishedTrace], None] | None = None,
        among: Sequence[bytes] | None = None,
    ) -> Iterator[GradedRun]:
        """The graded runs, traces in order of first arrival; those of a trace once.

        `before_trace` is called with every trace before its runs. `among` are the traces to grade; None: all.
        """
        self.settle()
        pool = None if self.workers is None else self.workers.pool
        stage = GradingStage(
            grader=Grader(
                criteria=lambda: criteria,
                clock=self._clock,
                instance="replay",
                dialects=self.dialects,
                prices=self.prices,
                uses_workers=pool is not None,
                results=UNWRITTEN,
            ),
            metrics=self._metrics,
            clock=self._clock,
            workers=pool,
            conversations=self.conversations,
        )
        for trace_id in progress(self.trace_ids if among is None else among, "Grading"):
            trace = self._finished.pop(trace_id, None)
            records = self._records.get(trace_id, ())
            if trace is None and records:
                trace = FinishedTrace(trace_id=trace_id, spans=(), reason=FinishReason.IDLE)
            if trace is not None:
                if records:
                    trace = replace(trace, records=records)
                if before_trace is not None:
                    before_trace(trace)
                if self.workers is None or pool is None:
                    graded = stage.grade_now(trace)
                else:
                    graded = self.workers.run(stage.grade(trace))
                self.runs += 0 if trace.spans else len(graded.runs)
                for item in graded.runs:
                    yield GradedRun(run=item.run, results=item.results)  # without time and place of grading
            yield from self.evaluate_trace(self._runs.get(trace_id, ()), criteria)

    def evaluate_trace(self, runs: Sequence[AgentRun], criteria: CriteriaSet) -> Iterator[GradedRun]:
        """`runs`, all of one trace, with their results, and maybe one that stands for the trace."""
        trace = whole_trace(runs)
        for run, evaluations in applied_criteria(runs, criteria):
            yield GradedRun(run=run, results=self.evaluate(run, evaluations, criteria, trace))

    def evaluate(
        self,
        run: AgentRun,
        evaluations: Sequence[Evaluation],
        criteria: CriteriaSet,
        trace: WholeTrace,
        graded_unix_nano: int = 0,
    ) -> Sequence[EvaluationResult]:
        """The results of a run that was read, of `trace`, by those of `criteria` that apply to it.

        `graded_unix_nano` is when it was graded before, 0: now.
        """
        now = self._clock.unix_nano()
        if criteria.looks_at_conversations and not run.stands_for_trace:
            (run,) = self.conversations.look_up([run], graded_unix_nano or now)
        if self.workers is None:
            return evaluate_run(run, evaluations, unix_nano=now, trace=trace)
        return self.workers.evaluate(run, evaluations, now, trace)


def whole_trace(runs: Sequence[AgentRun]) -> WholeTrace:
    """The trace of which these are all runs that were read."""
    return WholeTrace([run for run in runs if not run.stands_for_trace])
