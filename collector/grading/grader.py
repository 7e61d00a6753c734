"""Grading one finished trace: its runs rebuilt, evaluated, and the results written.

This is the boundary to the pure part. Whatever goes wrong with one trace behind it ends here, and its spans
leave unchanged: a trace cannot harm the service. What is to be counted comes back as a `Tally`.
"""

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
from collector.workers.worker_evaluations import QuestionedRun, need_workers, question_run
from processors.annotation import count_results
from processors.criteria import CriteriaSet, Evaluation
from processors.evaluate import Answer, ask, evaluate_run, refuse
from processors.model import AgentRun, EvaluationError, EvaluationResult, GradedRun, PriceTable
from processors.reconstruction import reconstruct, span_reader, told_agents
from processors.shapes import Dialect

_Rebuilt: TypeAlias = Sequence[tuple[AgentRun, Sequence[Evaluation]]]
"""The runs of a trace, each with the evaluations that apply to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedTrace:
    """A trace whose runs are rebuilt and whose verdicts depend on custom evaluators."""

    trace: FinishedTrace
    runs: Sequence[QuestionedRun]
    unix_nano: int
    tally: Tally


class _Quarantined(EvaluationError):
    @property
    def error_type(self) -> str:
        return "quarantined"


_QUARANTINED = _Quarantined("the service crashed again and again while it graded this trace")


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
        is_aside: Whether it grades beside the loop, in a thread of its own.
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
        is_aside: bool = False,
        results: ResultsConfig,
        writes_scores: bool,
        conversations: Conversations | None = None,
    ) -> None:
        self._criteria = criteria
        self._clock = clock
        self._instance = instance
        self._missing_parents = missing_parents
        self._reader = span_reader(dialects, shared=not is_aside)
        self._prices = prices
        self._asks_workers = asks_workers
        self._is_aside = is_aside
        self._conversations = conversations
        self._writer = ResultWriter(results, writes_scores=writes_scores)

    def begin(self, trace: FinishedTrace, tally: Tally) -> GradedTrace | AwaitedTrace:
        """Grade one trace, unless custom evaluators have to be asked: then `finish` it with their answers.

        Every verdict on a trace that is `quarantined` is an `error`. Never raises for what a trace can hold.
        """
        started = self._clock.monotonic()
        try:
            now = self._clock.unix_nano()
            runs = self._rebuilt(trace, tally)
            if trace.quarantined:
                refused = [
                    refuse(run, found, _QUARANTINED, unix_nano=now, on_skip=tally.count_skip)
                    for run, found in runs
                ]
                return self._written(trace, [run for run, _ in runs], refused, now, self._instance)
            if self._asks_workers and any(need_workers(evaluations) for _, evaluations in runs):
                questioned = [question_run(run, found, tally.count_skip) for run, found in runs]
                tally.seconds = self._clock.monotonic() - started
                return AwaitedTrace(trace=trace, runs=questioned, unix_nano=now, tally=tally)
            results = [
                evaluate_run(run, evaluations, unix_nano=now, on_skip=tally.count_skip)
                for run, evaluations in runs
            ]
            graded = self._written(trace, [run for run, _ in runs], results, now, self._instance)
        except Exception as error:  # one trace must not take the others down
            graded = self.unchanged(trace, error, tally)
        tally.seconds = self._clock.monotonic() - started
        return graded

    def finish(self, awaited: AwaitedTrace, answers: Sequence[Mapping[str, Answer]]) -> GradedTrace:
        """Grade a trace with the `answers` to the questions of each run; never raises, as `begin`.

        Its tally goes on with that of `begin`: waiting in between does not count as time of grading.
        """
        now, tally = awaited.unix_nano, awaited.tally
        started = self._clock.monotonic()
        try:
            results = [run.results(found, now) for run, found in zip(awaited.runs, answers, strict=True)]
            runs = [run.run for run in awaited.runs]
            graded = self._written(awaited.trace, runs, results, now, self._instance)
        except Exception as error:  # as in begin
            graded = self.unchanged(awaited.trace, error, tally)
        tally.seconds = (tally.seconds or 0.0) + self._clock.monotonic() - started
        return graded

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
                return self._written(trace, [run for run, _ in runs], results, unix_nano, instance)
        except Exception as error:  # as in begin
            return self.unchanged(trace, error, tally)
        if not results:
            return self._writer.write(trace, ())
        graded = self.begin(trace, tally)
        if isinstance(graded, AwaitedTrace):
            return self.unchanged(trace, LookupError("custom evaluators cannot be asked now"), tally)
        return graded

    def _rebuilt(self, trace: FinishedTrace, tally: Tally) -> _Rebuilt:
        tally.foreign_results += count_results(trace.spans)
        criteria = self._criteria()
        runs: list[tuple[AgentRun, Sequence[Evaluation]]] = []
        for run in self._runs(trace):
            evaluations = criteria.evaluations_for(run.agent.name, run.tenant)
            if not evaluations:
                tally.without_criteria += 1
            runs.append((run, evaluations))
        if criteria.looks_at_conversations and self._conversations is not None:
            told = self._conversations.look_up([run for run, _ in runs], self._clock.unix_nano())
            return [(run, evaluations) for run, (_, evaluations) in zip(told, runs, strict=True)]
        return runs

    def _runs(self, trace: FinishedTrace) -> list[AgentRun]:
        if trace.quarantined:
            return told_agents(
                trace.spans,
                trace_id=trace.trace_id,
                reason=trace.reason,
                tenant=trace.tenant,
                reader=self._reader,
            )
        return reconstruct(
            trace.spans,
            trace_id=trace.trace_id,
            reason=trace.reason,
            was_quiet=trace.was_quiet,
            interrupted=trace.interrupted,
            missing_parents=self._missing_parents,
            tenant=trace.tenant,
            reader=self._reader,
            prices=self._prices,
            scopes=trace.scopes,
        )

    def _written(
        self,
        trace: FinishedTrace,
        rebuilt: Sequence[AgentRun],
        results: Sequence[Sequence[EvaluationResult]],
        unix_nano: int,
        instance: str,
    ) -> GradedTrace:
        """The trace with its results, reached at `unix_nano` by `instance`."""
        runs = [
            GradedRun(run=run, results=found, graded_unix_nano=unix_nano, instance=instance)
            for run, found in zip(rebuilt, results, strict=True)
        ]
        graded = self._writer.write(trace, runs)
        if self._is_aside:
            read_what_is_counted(graded.graded_runs)
        return graded

    def unchanged(self, trace: FinishedTrace, error: Exception, tally: Tally) -> GradedTrace:
        """The trace as it came, because of `error`."""
        tally.failure = error
        return self._writer.write(trace, ())


def read_what_is_counted(runs: Sequence[GradedRun]) -> None:
    """Read now what runs tell late and every run is asked: to the loop, a large trace is many of them."""
    for graded in runs:
        run = graded.run
        run.call_counts, run.last_end_unix_nano, run.usage, run.cost  # noqa: B018


WATCHED: Mapping[str, WatchedCode] = {
    "trace_id": WatchedCode(Grader.begin.__code__, "trace", "trace_id"),
    "evaluation": WatchedCode(ask.__code__, "evaluation", "name"),
    "evaluator": WatchedCode(ask.__code__, "evaluation", "evaluator.id"),
}
"""What the watchdog names of a step that takes too long."""
