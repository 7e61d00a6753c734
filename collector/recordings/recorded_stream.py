"""Recorded traffic as one stream: read, put together by trace, and graded with exactly the service's code.

Spans of a trace may lie in several files. There is no finish clock: every trace finishes with the reason that
unlimited quiet would give it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from collector.buffer import GroupByTraceConfig, TraceBuffer
from collector.clock import ManualClock
from collector.conversations import Conversations
from collector.grading import Grader, GradingStage
from collector.memory_limiter import MemoryLimiter
from collector.recordings.recorded_traffic import RecordedTraffic, find_recorded_files
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, SpanBatch
from collector.workers.offline import OfflineWorkers
from processors.criteria import CriteriaSet
from processors.documents import Problem
from processors.evaluate import evaluate_run
from processors.model import AgentRun, EvaluationResult, GradedRun, PriceTable
from processors.shapes import Dialect

_NO_LIMIT = 1 << 62
_ItemT = TypeVar("_ItemT")


class Progress(Protocol):
    """Shows how far a loop over `items` is."""

    def __call__(self, items: Sequence[_ItemT], description: str) -> Iterable[_ItemT]:
        """The items, in order."""
        ...


def no_progress(items: Sequence[_ItemT], description: str) -> Iterable[_ItemT]:
    """A `Progress` that shows nothing."""
    return items


class RecordedStream:
    """Spans in a real trace buffer, hand-written runs beside it, in order of first arrival.

    `spans` and `runs` count what was read. `warnings` name spans that were left out.
    """

    def __init__(
        self,
        *,
        unix_nano: int = 0,
        dialects: Sequence[Dialect] = (),
        prices: PriceTable | None = None,
        workers: OfflineWorkers | None = None,
    ) -> None:
        """Start an empty stream.

        Args:
            unix_nano: The time of grading, by which mutes are in force.
            dialects: Telemetry conventions of the user's own.
            prices: What models cost. A cost that a run tells itself counts only where these do not tell it.
            workers: What runs custom evaluators.
        """
        self._dialects = dialects
        self._prices = prices
        self._workers = workers
        self.spans = 0
        self.runs = 0
        self.warnings: list[Problem] = []
        self._clock = ManualClock(unix_nano=unix_nano)
        self._metrics = Metrics()
        self._buffer = TraceBuffer(
            config=GroupByTraceConfig(max_spans_per_trace=_NO_LIMIT, max_bytes_per_trace=_NO_LIMIT),
            limiter=MemoryLimiter(_NO_LIMIT),
            metrics=self._metrics,
            clock=self._clock,
        )
        self._conversations = Conversations()
        self._runs: dict[bytes, list[AgentRun]] = {}
        self._order: dict[bytes, None] = {}

    def read(self, paths: Sequence[Path], progress: Progress = no_progress) -> list[Problem]:
        """Read everything in `paths`; what could not be read."""
        files, problems = find_recorded_files(paths)
        traffic = RecordedTraffic()
        for file in progress(files, "Reading"):
            for item in traffic.read(file):
                if isinstance(item, AgentRun):
                    self.add_run(item)
                else:
                    self.spans += item.accepted
                    batches = [SpanBatch(trace_id, spans) for trace_id, spans in item.traces.items()]
                    self._order.update(dict.fromkeys(batch.trace_id for batch in batches))
                    self._buffer.admit(batches)
        self.warnings += traffic.warnings
        return problems + traffic.problems

    def add_run(self, run: AgentRun) -> None:
        """Add a run that is not in any file."""
        self.runs += 1
        if self._prices is not None:
            cost = self._prices.cost(run.model_calls, run.usage, run.models)
            run = run if cost is None else replace(run, cost=cost)
        self._order.setdefault(run.trace_id)
        self._runs.setdefault(run.trace_id, []).append(run)

    def grade(
        self,
        criteria: CriteriaSet,
        progress: Progress = no_progress,
        before_trace: Callable[[FinishedTrace], None] | None = None,
    ) -> Iterator[GradedRun]:
        """The graded runs, traces in order of first arrival; to be called once.

        `before_trace` is called with every trace before its runs come.
        """
        finished: dict[bytes, FinishedTrace] = {trace.trace_id: trace for trace in self._buffer.settle()}
        pool = None if self._workers is None else self._workers.pool
        stage = GradingStage(
            grader=Grader(
                criteria=lambda: criteria,
                clock=self._clock,
                instance="replay",
                dialects=self._dialects,
                prices=self._prices,
                asks_workers=pool is not None,
            ),
            metrics=self._metrics,
            clock=self._clock,
            workers=pool,
            conversations=self._conversations,
        )
        for trace_id in progress(list(self._order), "Grading"):
            trace = finished.pop(trace_id, None)
            if trace is not None:
                if before_trace is not None:
                    before_trace(trace)
                if self._workers is None or pool is None:
                    graded = stage.grade_now(trace)
                else:
                    graded = self._workers.run(stage.grade(trace))
                for found in graded.runs:
                    yield GradedRun(run=found.run, results=found.results)  # when and where is no matter here
            for run in self._runs.get(trace_id, ()):
                yield GradedRun(run=run, results=self.evaluate(run, criteria))

    def evaluate(self, run: AgentRun, criteria: CriteriaSet) -> Sequence[EvaluationResult]:
        """The results of a run that is rebuilt already."""
        evaluations = criteria.evaluations_for(run.agent.name, run.tenant)
        now = self._clock.unix_nano()
        if criteria.looks_at_conversations:
            (run,) = self._conversations.look_up([run], now)
        if self._workers is None:
            return evaluate_run(run, evaluations, unix_nano=now)
        return self._workers.evaluate(run, evaluations, now)
