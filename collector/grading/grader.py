"""Grading one finished trace: its runs rebuilt, evaluated, and the results written.

This is the boundary to the pure part. Whatever goes wrong with one trace behind it ends here, and its spans
leave unchanged: a trace cannot harm the service. What is to be counted comes back as a `Tally`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from collector.clock import Clock
from collector.conversations import Conversations
from collector.grading.result_writer import ResultWriter
from collector.grading.tally import Tally
from collector.results_config import ResultsConfig
from collector.telemetry import WatchedCode
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluations import evaluate_with_workers, need_workers
from processors.annotation import count_results
from processors.criteria import CriteriaSet, Evaluation
from processors.evaluate import ask, evaluate_run
from processors.frameworks import Dialect
from processors.model import AgentRun, EvaluationResult, GradedRun, PriceTable
from processors.reconstruction import reconstruct, span_reader

_Rebuilt: TypeAlias = Sequence[tuple[AgentRun, Sequence[Evaluation]]]
"""The runs of a trace, each with the evaluations that apply to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedTrace:
    """A trace whose runs are rebuilt and whose verdicts depend on worker processes."""

    trace: FinishedTrace
    runs: _Rebuilt
    unix_nano: int
    tally: Tally


class Grader:
    """Rebuilds the agent runs of finished traces, grades them and writes the results.

    Args:
        criteria: Asked for the set in force once per trace, so a reload never mixes two sets in one.
        clock: Time of grading, and how long it takes.
        instance: Who graded.
        missing_parents: Whether runs are graded of which spans did not come.
        dialects: Conventions of the user's own.
        prices: What tokens cost; without, no run has a cost.
        asks_workers: Whether there is somebody to ask for custom evaluators; if not, they end in `error`.
        results: In which forms verdicts leave.
        writes_scores: Whether scores are made of log records.
        conversations: What is known of them; without it nothing is.
    """

    def __init__(
        self,
        *,
        criteria: Callable[[], CriteriaSet],
        clock: Clock,
        instance: str,
        missing_parents: Literal["grade", "not_evaluated"],
        dialects: Sequence[Dialect],
        prices: PriceTable | None,
        asks_workers: bool,
        results: ResultsConfig,
        writes_scores: bool,
        conversations: Conversations | None = None,
    ) -> None:
        self._criteria = criteria
        self._clock = clock
        self._instance = instance
        self._missing_parents = missing_parents
        self._reader = span_reader(dialects)
        self._prices = prices
        self._asks_workers = asks_workers
        self._conversations = conversations
        self._writer = ResultWriter(results, writes_scores=writes_scores)

    def begin(self, trace: FinishedTrace, tally: Tally) -> GradedTrace | AwaitedTrace:
        """Grade one trace, unless worker processes have to be asked: then `complete` it.

        Never raises for what a trace can hold.
        """
        started = self._clock.monotonic()
        try:
            now = self._clock.unix_nano()
            runs = self._rebuilt(trace, tally)
            if self._asks_workers and any(need_workers(evaluations) for _, evaluations in runs):
                tally.seconds = self._clock.monotonic() - started
                return AwaitedTrace(trace=trace, runs=runs, unix_nano=now, tally=tally)
            results = [
                evaluate_run(run, evaluations, unix_nano=now, on_skip=tally.count_skip)
                for run, evaluations in runs
            ]
            graded = self._written(trace, runs, results, now, self._instance)
        except Exception as error:  # one trace must not take the others down
            graded = self._unchanged(trace, error, tally)
        tally.seconds = self._clock.monotonic() - started
        return graded

    async def complete(self, awaited: AwaitedTrace, workers: WorkerPool | None) -> GradedTrace:
        """Grade a trace with the help of `workers`; never raises for what a trace can hold, nor for theirs.

        Its tally goes on with that of `begin`.
        """
        now, tally = awaited.unix_nano, awaited.tally
        try:
            results = await asyncio.gather(
                *[_asked(run, found, workers, now, tally) for run, found in awaited.runs]
            )
            return self._written(awaited.trace, awaited.runs, results, now, self._instance)
        except Exception as error:  # as in begin
            return self._unchanged(awaited.trace, error, tally)

    def restore(
        self,
        trace: FinishedTrace,
        results: Sequence[Sequence[EvaluationResult]],
        *,
        unix_nano: int,
        instance: str,
        tally: Tally,
    ) -> GradedTrace:
        """The trace with the `results` of each run that `instance` reached at `unix_nano`.

        If its runs cannot be rebuilt as they were, which takes another version of the service, it is graded.
        """
        try:
            runs = self._rebuilt(trace, tally)
            if len(runs) == len(results):
                return self._written(trace, runs, results, unix_nano, instance)
        except Exception as error:  # as in begin
            return self._unchanged(trace, error, tally)
        if not results:
            return self._writer.write(trace, ())
        graded = self.begin(trace, tally)
        if isinstance(graded, AwaitedTrace):
            return self._unchanged(trace, LookupError("custom evaluators cannot be asked now"), tally)
        return graded

    def _rebuilt(self, trace: FinishedTrace, tally: Tally) -> _Rebuilt:
        tally.foreign_results += count_results(trace.spans)
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
            prices=self._prices,
        ):
            evaluations = criteria.evaluations_for(run.agent.name, run.tenant)
            if not evaluations:
                tally.without_criteria += 1
            runs.append((run, evaluations))
        if criteria.looks_at_conversations and self._conversations is not None:
            told = self._conversations.look_up([run for run, _ in runs], self._clock.unix_nano())
            return [(run, evaluations) for run, (_, evaluations) in zip(told, runs, strict=True)]
        return runs

    def _written(
        self,
        trace: FinishedTrace,
        rebuilt: _Rebuilt,
        results: Sequence[Sequence[EvaluationResult]],
        unix_nano: int,
        instance: str,
    ) -> GradedTrace:
        """The trace with its results, reached at `unix_nano` by `instance`."""
        runs = [
            GradedRun(run=run, results=found, graded_unix_nano=unix_nano, instance=instance)
            for (run, _), found in zip(rebuilt, results, strict=True)
        ]
        return self._writer.write(trace, runs)

    def _unchanged(self, trace: FinishedTrace, error: Exception, tally: Tally) -> GradedTrace:
        """The trace as it came, because of `error`."""
        tally.failure = error
        return self._writer.write(trace, ())


async def _asked(
    run: AgentRun,
    evaluations: Sequence[Evaluation],
    workers: WorkerPool | None,
    unix_nano: int,
    tally: Tally,
) -> Sequence[EvaluationResult]:
    if workers is None or not need_workers(evaluations):
        return evaluate_run(run, evaluations, unix_nano=unix_nano, on_skip=tally.count_skip)
    return await evaluate_with_workers(
        run, evaluations, workers, unix_nano=unix_nano, on_skip=tally.count_skip
    )


WATCHED: Mapping[str, WatchedCode] = {
    "trace_id": WatchedCode(Grader.begin.__code__, "trace", "trace_id"),
    "evaluation": WatchedCode(ask.__code__, "evaluation", "name"),
    "evaluator": WatchedCode(ask.__code__, "evaluation", "evaluator.id"),
}
"""What the watchdog names of a step that takes too long."""
