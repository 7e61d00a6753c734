"""Grading one finished trace: its runs rebuilt, evaluated, and the results written.

This is the boundary to the pure part. Whatever goes wrong with one trace behind it ends here, and its spans
leave unchanged: a trace cannot harm the service.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from collector.clock import Clock
from collector.conversations import calls_of
from collector.results_config import ResultsConfig
from collector.telemetry import WatchedCode
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.worker_evaluations import needs_workers, question_run
from processors.annotation import (
    append_results,
    count_results,
    early_failure_record,
    evaluation_spans,
    result_records,
)
from processors.criteria import Applied, CriteriaSet, applied_criteria
from processors.evaluate import Answer, answer_of, evaluate_run, refuse
from processors.model import (
    AgentRun,
    Conversation,
    EvaluationError,
    EvaluationResult,
    GradedRun,
    Outcome,
    PriceTable,
    Scope,
    SkipReason,
    WholeTrace,
)
from processors.reconstruction import (
    OpenRun,
    Scopes,
    open_runs,
    reconstruct,
    reported_agents,
    settled_scopes,
    span_reader,
)
from processors.records import report_end, run_of_records, trace_with_records
from processors.shapes import Dialect
from processors.spans import RawRecord, RawSpan

Questions: TypeAlias = Sequence[Mapping[str, tuple[str, bytes]]]
"""What custom evaluators are to be asked about each run, by the name of the evaluation."""


@dataclass(slots=True)
class Tally:
    """What grading one trace counted, as a value: the owner of the metrics applies it.

    `seconds` is how long it took, without waiting for others; None where it was not graded. `failure` is what
    was raised if the trace could not be graded and leaves unchanged.
    """

    foreign_results: int = 0
    """Results of others that its spans carried."""
    without_criteria: int = 0
    """Runs that no evaluation applies to."""
    skipped: dict[SkipReason, int] = field(default_factory=dict)
    seconds: float | None = None
    failure: Exception | None = None

    def count_skip(self, reason: SkipReason) -> None:
        """An evaluation gave no result."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


@dataclass(slots=True)
class Graded:
    """A graded trace and what is to be counted; `runs` are those to be added to their conversations."""

    trace: GradedTrace
    tally: Tally
    runs: Sequence[AgentRun] = ()


@dataclass(frozen=True, slots=True)
class Needed:
    """What grading a trace requires before it can go on: conversations of `runs`, or answers to `questions`.

    The `runs` carry their calls alone, and are to be added to their conversations.
    """

    runs: Sequence[AgentRun] = ()
    questions: Questions = ()


class Supplied(NamedTuple):
    """What was `Needed`, in its order."""

    conversations: Sequence[Conversation | None] = ()
    answers: Sequence[Mapping[str, Answer]] = ()


class EarlyFailure(NamedTuple):
    """What fails in a run that goes on: a graded run with one result, as it may be shown, and log records."""

    known: OpenRun
    failed: GradedRun
    records: Sequence[RawSpan]


Steps: TypeAlias = Generator[Needed, Supplied, Graded]
"""Grading of one trace, which stops wherever something is `Needed`."""


def advance(steps: Steps, supplied: Supplied | None = None) -> Needed | Graded:
    """Go on with what was `supplied`; None to begin."""
    try:
        return next(steps) if supplied is None else steps.send(supplied)
    except StopIteration as end:
        graded: Graded = end.value
        return graded


class _Quarantined(EvaluationError):
    @property
    def error_type(self) -> str:
        return "quarantined"


_GRADED_BEFORE = "what was graded of it before is not in it any more"
_QUARANTINED = _Quarantined("the service crashed again and again while it graded this trace")


@dataclass(kw_only=True)
class Grader:
    """Rebuilds the agent runs of finished traces, grades them and writes the results.

    `criteria` returns the set in force; it is called once per trace, so a reload never mixes two sets in one.
    `clock` is the time of grading, and measures how long it takes.
    """

    criteria: Callable[[], CriteriaSet]
    clock: Clock
    instance: str
    """Who graded."""
    missing_parents: Literal["grade", "not_evaluated"] = "grade"
    """Whether runs are graded of which spans are missing."""
    dialects: Sequence[Dialect] = ()
    """Conventions of the user's own."""
    prices: PriceTable | None = None
    """What tokens cost; without, no run has a cost."""
    uses_workers: bool = False
    """Whether there are workers for custom evaluators; if not, these end in `error`."""
    results: ResultsConfig = field(default_factory=ResultsConfig)
    """In which forms verdicts leave; by default on the spans."""
    writes_scores: bool = False
    """Whether scores are made of log records."""

    def __post_init__(self) -> None:
        results = self.results
        self._reader = span_reader(self.dialects, shared=True)
        self._spans_left_already = results.mode == "stream"
        self._writes_events = "span_event" in results.emit
        self._writes_records = self.writes_scores or "log" in results.emit
        self._writes_spans = "span" in results.emit
        self._openinference = "openinference" in results.annotations
        self._content = results.content_rules()
        self._writes_on_spans = results.holds_spans and (self._writes_events or self._openinference)

    def for_thread(self) -> "Grader":
        """The same grader for another thread: what it remembers of spans is its own."""
        other = copy(self)
        other._reader = span_reader(self.dialects, shared=False)
        return other

    def steps(self, trace: FinishedTrace) -> Steps:
        """Grade one trace. Never raises for what a trace can hold, nor for what is supplied.

        Every verdict on a trace that is `quarantined` is an `error`. The time of waiting for what is needed
        does not count as time of grading.
        """
        tally = Tally()
        started = self.clock.monotonic()
        talking: Sequence[AgentRun] = ()
        try:
            now = self.clock.unix_nano()
            criteria = self.criteria()
            rebuilt = self._rebuilt(trace, tally)
            whole = WholeTrace(rebuilt, _GRADED_BEFORE if trace.continues else "")
            applied = applied_criteria(rebuilt, criteria)
            tally.without_criteria = sum([not of_run for _, of_run in applied])
            if criteria.looks_at_conversations:
                talking = [calls_of(run) for run in rebuilt if run.session is not None]
                if not trace.quarantined and _look_at_conversations(applied):
                    stopped = self.clock.monotonic()
                    conversations = iter((yield Needed(runs=talking)).conversations)
                    started += self.clock.monotonic() - stopped
                    talking = ()
                    for place, run in enumerate(rebuilt):
                        if run.session is not None and (known := next(conversations)) is not None:
                            applied[place] = applied[place]._replace(run=run.in_conversation(known))
            if trace.quarantined:
                results = [
                    refuse(run, of_run, _QUARANTINED, unix_nano=now, on_skip=tally.count_skip)
                    for run, of_run in applied
                ]
            elif self.uses_workers and any(needs_workers(of_run) for _, of_run in applied):
                questioned = [question_run(run, of_run, tally.count_skip, whole) for run, of_run in applied]
                stopped = self.clock.monotonic()
                answers = (yield Needed(questions=[run.questions for run in questioned])).answers
                started += self.clock.monotonic() - stopped
                results = [run.results(given, now) for run, given in zip(questioned, answers, strict=True)]
            else:
                results = [
                    evaluate_run(run, of_run, unix_nano=now, on_skip=tally.count_skip, trace=whole)
                    for run, of_run in applied
                ]
            graded = self._written(trace, [run for run, _ in applied], results, now, self.instance)
        except Exception as error:  # one trace must not take the others down
            tally.failure = error
            graded = self._written(trace)
        tally.seconds = self.clock.monotonic() - started
        return Graded(graded, tally, talking)

    def certain_failures(self, trace: FinishedTrace) -> list[EarlyFailure]:
        """What fails in a trace that goes on, by early evaluations, whatever spans are still to come.

        One result for each; the content shown is that which `results` allows. A trace that cannot be read has
        none: grading it reports why.
        """
        failures: list[EarlyFailure] = []
        try:
            criteria, now = self.criteria(), self.clock.unix_nano()
            spans = trace.spans
            if trace.records:
                spans = trace_with_records(spans, trace.records, trace.trace_id, self._reader.read)
            for known in open_runs(
                spans, trace_id=trace.trace_id, tenant=trace.tenant, reader=self._reader, prices=self.prices
            ):
                name = known.run.agent.name if known.is_named else None
                for result in evaluate_run(known.run, criteria.early_for(name, trace.tenant), unix_nano=now):
                    if result.outcome is Outcome.FAIL:
                        graded = self._content.shown(GradedRun(run=known.run, results=[result]))
                        failures.append(EarlyFailure(known, graded, self._early_records(spans, graded, now)))
        except Exception:  # one trace must not take the others down
            return []
        return failures

    def _early_records(
        self, spans: Sequence[RawSpan], failed: GradedRun, unix_nano: int
    ) -> Sequence[RawSpan]:
        if "log" not in self.results.emit:
            return ()
        (result,) = failed.results
        return self._content.shown_records(
            early_failure_record(spans, failed.run, result, time_unix_nano=unix_nano, instance=self.instance)
        )

    def restore(
        self,
        trace: FinishedTrace,
        results: Sequence[Sequence[EvaluationResult]],
        *,
        unix_nano: int,
        instance: str,
    ) -> Graded | None:
        """The trace with the `results` of each run that `instance` reached at `unix_nano`.

        None if its runs cannot be rebuilt as they were, which takes another version of the service.
        """
        tally = Tally()
        talking: Sequence[AgentRun] = ()
        try:
            runs = rebuilt = self._rebuilt(trace, tally)
            if len(results) > len(runs):  # one stood for the trace
                runs = [run for run, _ in applied_criteria(rebuilt, self.criteria())]
            if len(runs) == len(results):
                graded = self._written(trace, runs, results, unix_nano, instance)
            elif results:
                return None
            else:
                graded = self._written(trace)
            if self.criteria().looks_at_conversations:
                talking = [calls_of(run) for run in rebuilt if run.session is not None]
        except Exception as error:  # as in `steps`
            return self.unchanged(trace, error)
        return Graded(graded, tally, talking)

    def unchanged(self, trace: FinishedTrace, error: Exception) -> Graded:
        """The trace as it arrived, because of `error`."""
        return Graded(self._written(trace), Tally(failure=error))

    def _rebuilt(self, trace: FinishedTrace, tally: Tally) -> list[AgentRun]:
        tally.foreign_results = count_results(trace.spans)
        if trace.quarantined:
            return reported_agents(
                trace.spans,
                trace_id=trace.trace_id,
                reason=trace.reason,
                tenant=trace.tenant,
                reader=self._reader,
            )
        spans, scopes = trace.spans, trace.scopes
        if trace.records:
            spans, scopes = trace_with_records(spans, trace.records, trace.trace_id, self._reader.read), None
        return reconstruct(
            spans,
            trace_id=trace.trace_id,
            reason=trace.reason,
            was_quiet=trace.was_quiet,
            interrupted=trace.interrupted,
            missing_parents=self.missing_parents,
            tenant=trace.tenant,
            reader=self._reader,
            prices=self.prices,
            scopes=scopes,
        )

    def _written(
        self,
        trace: FinishedTrace,
        rebuilt: Sequence[AgentRun] = (),
        results: Sequence[Sequence[EvaluationResult]] = (),
        unix_nano: int = 0,
        instance: str = "",
    ) -> GradedTrace:
        """The trace as it is to leave, with the results that `instance` reached at `unix_nano`.

        Where spans are forwarded when they arrive (`stream`), it holds none of them. Where log records alone
        report the run there is no span to write on: results leave as log records, or as spans of their own.
        """
        runs = [
            GradedRun(run=run, results=of_run, graded_unix_nano=unix_nano, instance=instance)
            for run, of_run in zip(rebuilt, results, strict=True)
        ]
        spans: Sequence[RawSpan] = () if self._spans_left_already else trace.spans
        log_records: Sequence[RawSpan] = ()
        spans_of_results: Sequence[RawSpan] = ()
        shown = runs if self._content.shows_all else [self._content.shown(run) for run in runs]
        if runs:
            graded = [(run.run, run.results) for run in shown]
            carriers = trace.spans or run_of_records(trace.records, trace.trace_id)
            if self._writes_on_spans and spans:
                spans = append_results(
                    spans,
                    graded,
                    time_unix_nano=unix_nano,
                    instance=instance,
                    events=self._writes_events,
                    openinference=self._openinference,
                )
            if self._writes_records or (self._writes_events and not trace.spans):
                log_records = self._content.shown_records(
                    result_records(carriers, graded, time_unix_nano=unix_nano, instance=instance)
                )
            if self._writes_spans:
                spans_of_results = self._content.shown_records(
                    evaluation_spans(
                        carriers,
                        graded,
                        time_unix_nano=unix_nano,
                        instance=instance,
                        openinference=self._openinference,
                    )
                )
        return GradedTrace(
            trace_id=trace.trace_id,
            spans=spans,
            runs=shown,
            hidden_runs=() if shown is runs else runs,
            log_records=log_records,
            evaluation_spans=spans_of_results,
            backfill=trace.backfill,
            quarantined=trace.quarantined,
            tenant=trace.tenant,
        )


def evidence_reader(dialects: Sequence[Dialect]) -> Callable[[Sequence[RawSpan]], Scopes | None]:
    """Returns the runs of a trace that shows that it is over, read with `dialects` and the built-in ones.

    It is for the thread of the loop. A trace that cannot be read is not settled: grading it reports why.
    """
    reader = span_reader(dialects)

    def read(spans: Sequence[RawSpan]) -> Scopes | None:
        try:
            return settled_scopes(spans, reader)
        except Exception:  # one trace must not take the others down
            return None

    return read


def reports_end(records: Sequence[RawRecord]) -> bool:
    """Whether the log records of one prompt report a run that is over; False where they cannot be read."""
    try:
        return report_end(records)
    except Exception:  # as above
        return False


def _look_at_conversations(applied: Sequence[Applied]) -> bool:
    return any(
        evaluation.scope is Scope.CONVERSATION
        for run, of_run in applied
        if run.session is not None
        for evaluation in of_run
    )


WATCHED: Mapping[str, WatchedCode] = {
    "trace_id": WatchedCode(Grader.steps.__code__, "trace", "trace_id"),
    "evaluation": WatchedCode(answer_of.__code__, "evaluation", "name"),
    "evaluator": WatchedCode(answer_of.__code__, "evaluation", "evaluator.id"),
}
"""What the watchdog names of a step that takes too long."""
