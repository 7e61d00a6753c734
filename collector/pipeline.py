"""The evaluation stage: a finished trace in, the same trace graded and annotated out.

This is the boundary behind which a trace cannot harm the service: whatever goes wrong while one trace is
rebuilt or graded is logged and counted, and its spans leave unchanged.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from collector.clock import Clock
from collector.result_writer import ResultWriter
from collector.results_config import ResultsConfig
from collector.telemetry.logs import RateLimitedLogger
from collector.telemetry.metrics import Metrics
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluations import evaluate_with_workers, need_workers
from processors.annotation.span_event import count_results
from processors.criteria.agent_criteria import CriteriaSet, Evaluation
from processors.evaluate import evaluate_run
from processors.frameworks.dialect import Dialect
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import EvaluationResult, NotEvaluatedReason, SkipReason
from processors.model.graded_run import GradedRun
from processors.reconstruction.reconstruct import reconstruct, span_reader

_ON_SPANS = ResultsConfig()

_logger = logging.getLogger(__name__)


_Rebuilt = Sequence[tuple[AgentRun, Sequence[Evaluation]]]
"""The runs of a trace, each with the evaluations that apply to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedTrace:
    """A trace whose runs are rebuilt and whose verdicts depend on worker processes."""

    trace: FinishedTrace
    runs: _Rebuilt
    unix_nano: int
    seconds: float


class EvaluationStage:
    """Rebuilds the agent runs of finished traces, grades them and writes the results.

    `criteria` is asked for the set in force once per trace, so a reload never mixes two sets in one.
    `workers` answer for custom evaluators; without them such evaluations end in `error`. `results` says in
    which forms verdicts leave, by default on the spans.
    """

    def __init__(
        self,
        *,
        criteria: Callable[[], CriteriaSet],
        metrics: Metrics,
        clock: Clock,
        instance: str,
        missing_parents: Literal["grade", "not_evaluated"] = "grade",
        dialects: Sequence[Dialect] = (),
        workers: WorkerPool | None = None,
        results: ResultsConfig = _ON_SPANS,
    ) -> None:
        self._criteria = criteria
        self._metrics = metrics
        self._clock = clock
        self._writer = ResultWriter(results, instance)
        self._missing_parents = missing_parents
        self._reader = span_reader(dialects)
        self._workers = workers
        self._log = RateLimitedLogger(_logger, clock)

    def grade(self, trace: FinishedTrace) -> GradedTrace:
        """Grade one trace here and now, without workers; never raises for what a trace can hold."""
        started = self._clock.monotonic()
        try:
            graded = self._graded_inline(trace, self._rebuilt(trace), self._clock.unix_nano())
        except Exception:  # one trace must not take the others down
            graded = self._unchanged(trace)
        self._metrics.evaluation_seconds.observe(self._clock.monotonic() - started)
        return graded

    def begin(self, trace: FinishedTrace) -> GradedTrace | AwaitedTrace:
        """Grade one trace as `grade` does, unless worker processes have to be asked: then `complete` it."""
        if self._workers is None:
            return self.grade(trace)
        started = self._clock.monotonic()
        try:
            now = self._clock.unix_nano()
            runs = self._rebuilt(trace)
            if any(need_workers(evaluations) for _, evaluations in runs):
                seconds = self._clock.monotonic() - started
                return AwaitedTrace(trace=trace, runs=runs, unix_nano=now, seconds=seconds)
            graded = self._graded_inline(trace, runs, now)
        except Exception:  # as in grade
            graded = self._unchanged(trace)
        self._metrics.evaluation_seconds.observe(self._clock.monotonic() - started)
        return graded

    async def complete(self, awaited: AwaitedTrace) -> GradedTrace:
        """Grade a trace with the help of workers; never raises for what a trace can hold, nor for theirs.

        The time of waiting for workers does not count as time of evaluation.
        """
        now = awaited.unix_nano
        graded: GradedTrace
        try:
            results = await asyncio.gather(*[self._asked(run, found, now) for run, found in awaited.runs])
            graded = self._writer.write(
                awaited.trace,
                [
                    GradedRun(run=run, results=found)
                    for (run, _), found in zip(awaited.runs, results, strict=True)
                ],
                now,
            )
        except Exception:  # as in grade
            graded = self._unchanged(awaited.trace)
        self._metrics.evaluation_seconds.observe(awaited.seconds)
        return graded

    async def _asked(
        self, run: AgentRun, evaluations: Sequence[Evaluation], unix_nano: int
    ) -> Sequence[EvaluationResult]:
        if self._workers is None or not need_workers(evaluations):
            return evaluate_run(run, evaluations, unix_nano=unix_nano, on_skip=self._count_skip)
        return await evaluate_with_workers(
            run, evaluations, self._workers, unix_nano=unix_nano, on_skip=self._count_skip
        )

    def _rebuilt(self, trace: FinishedTrace) -> _Rebuilt:
        foreign = count_results(trace.spans)
        if foreign:
            self._metrics.foreign_results.add(foreign)
        criteria = self._criteria()
        runs: list[tuple[AgentRun, Sequence[Evaluation]]] = []
        for run in reconstruct(
            trace.spans,
            trace_id=trace.trace_id,
            reason=trace.reason,
            was_quiet=trace.was_quiet,
            interrupted=trace.interrupted,
            missing_parents=self._missing_parents,
            tenant=trace.tenant,
            reader=self._reader,
        ):
            evaluations = criteria.evaluations_for(run.agent.name, run.tenant)
            if not evaluations:
                self._metrics.not_evaluated.add(1, NotEvaluatedReason.NO_CRITERIA.value)
            runs.append((run, evaluations))
        return runs

    def _graded_inline(self, trace: FinishedTrace, rebuilt: _Rebuilt, unix_nano: int) -> GradedTrace:
        runs = [
            GradedRun(
                run=run,
                results=evaluate_run(run, evaluations, unix_nano=unix_nano, on_skip=self._count_skip),
            )
            for run, evaluations in rebuilt
        ]
        return self._writer.write(trace, runs, unix_nano)

    def _unchanged(self, trace: FinishedTrace) -> GradedTrace:
        """The trace as it came, because of the exception that is being handled."""
        self._metrics.traces_failed.add(1)
        self._log.exception(
            "trace_failed",
            "A trace could not be evaluated; it is forwarded unchanged.",
            trace_id=trace.trace_id.hex(),
        )
        return self._writer.write(trace, (), 0)

    def _count_skip(self, reason: SkipReason) -> None:
        self._metrics.evaluations_skipped.add(1, reason.value)
