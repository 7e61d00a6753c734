"""What the service and the processes that grade for it say to each other.

A trace goes over as the bytes of its spans; back come the bytes that grading added to them, the results in
forms of their own, and of each run what is counted, with its line where somebody takes lines. An agent run
itself cannot go over: it is read late from the spans, and reading all of it costs as much as grading.

Messages are made with `marshal`: both sides are this code in this version of Python. Code of others never
runs in these processes (`collector.workers` asks that).
"""

import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from traceback import format_exception
from typing import Any, NamedTuple, cast, overload

from collector.grading.grader import Needed, Questions, Tally
from collector.otlp import EnvelopeRegistry
from collector.telemetry import CLASSIFIERS
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.answer import WorkerFailure
from processors.annotation import format_run
from processors.evaluate import Answer
from processors.model import (
    AgentIdentity,
    AgentRun,
    Conversation,
    EvaluationError,
    EvaluationResult,
    FinishReason,
    GradedRun,
    JsonObject,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    Score,
    Severity,
    SkipReason,
    Stage,
    TokenUsage,
    ToolCall,
    decode_json,
    encode_json,
    late,
)
from processors.reconstruction import let_go_of_spans
from processors.spans import Envelope, RawSpan

_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_SEVERITIES = {severity.value: severity for severity in Severity}
_STAGES = {stage.value: stage for stage in Stage}

_CLASS_KEYS = ("expected", "actual")
"""Those of the details of a result that are counted."""


class Question(NamedTuple):
    """A trace to be graded, with what grading it was found to need: answers, and conversations of its runs.

    Conversations are no part of what is encoded here.
    """

    trace: FinishedTrace
    answers: Sequence[Mapping[str, Answer]] | None = None
    conversations: Sequence[Conversation | None] = ()


class GradingFailed(Exception):
    """What a process said that grading a trace came to, as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What of the runs is asked for: their lines, all details of results, and attributes of resources."""

    lines: bool
    details: bool
    resource_attributes: tuple[str, ...]


class _Places:
    """Numbers the envelopes of a message."""

    def __init__(self) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []
        self._numbers: dict[Envelope, int] = {}

    def spans(self, spans: Sequence[RawSpan]) -> tuple[bytes, list[bytes], list[int]]:
        """Ids, payloads and the numbers of envelopes."""
        numbers: list[int] = []
        last, number = None, 0
        for _, _, envelope in spans:
            if envelope is not last:
                last = envelope
                number = self._numbers.setdefault(envelope, len(self.pairs))
                if number == len(self.pairs):
                    self.pairs.append((envelope.resource, envelope.scope))
            numbers.append(number)
        return b"".join([span[0] for span in spans]), [span[1] for span in spans], numbers


def _spans_of(written: tuple[bytes, list[bytes], list[int]], envelopes: Sequence[Envelope]) -> list[RawSpan]:
    ids, payloads, numbers = written
    return [
        (ids[place : place + 8], payload, envelopes[number])
        for place, payload, number in zip(range(0, len(ids), 8), payloads, numbers, strict=True)
    ]


def encode_questions(questions: Sequence[Question], unix_nano: int) -> bytes:
    """The message that asks for traces to be graded, at `unix_nano`: the clock of the service counts."""
    places = _Places()
    written = []
    for trace, answers, _ in questions:
        written.append(
            (
                trace.trace_id,
                trace.tenant,
                trace.reason.value,
                trace.was_quiet,
                trace.interrupted,
                trace.backfill,
                places.spans(trace.spans),
                None if answers is None else [_answers_to_plain(found) for found in answers],
            )
        )
    return marshal.dumps((places.pairs, written, unix_nano))


def decode_questions(message: bytes, registry: EnvelopeRegistry) -> tuple[list[Question], int]:
    """What `encode_questions` wrote."""
    pairs, written, unix_nano = marshal.loads(message)
    envelopes = [registry.envelope(*pair) for pair in pairs]
    questions = [
        Question(
            FinishedTrace(
                trace_id=trace_id,
                tenant=tenant,
                reason=FinishReason(reason),
                was_quiet=was_quiet,
                interrupted=interrupted,
                backfill=backfill,
                spans=_spans_of(spans, envelopes),
            ),
            None if answers is None else [_answers_from_plain(found) for found in answers],
        )
        for trace_id, tenant, reason, was_quiet, interrupted, backfill, spans, answers in written
    ]
    return questions, unix_nano


def encode_graded(graded: Sequence[tuple[FinishedTrace, GradedTrace | Needed, Tally]], form: Form) -> bytes:
    """The message that answers `encode_questions`."""
    places = _Places()
    written = []
    for trace, found, tally in graded:
        content: object
        if isinstance(found, Needed):
            content = [dict(of_run) for of_run in found.questions]
        else:
            content = (
                _added(trace, found),
                places.spans(found.log_records),
                places.spans(found.evaluation_spans),
                [_run_to_plain(run, form, form.lines) for run in found.runs],
                [_run_to_plain(run, form, False) for run in found.hidden_runs],
            )
        written.append((content, _tally_to_plain(tally)))
    return marshal.dumps((places.pairs, written))


def decode_graded(
    message: bytes,
    questions: Sequence[Question],
    registry: EnvelopeRegistry,
    read_run: Callable[[bytes], AgentRun],
    *,
    holds_spans: bool,
) -> list[tuple[GradedTrace | Questions, Tally]]:
    """What `encode_graded` wrote in answer to `questions`: graded traces, or what has to be asked first.

    `read_run` reads a line, when somebody asks a run for what is not counted. `holds_spans`: whether spans
    leave with their verdict.
    """
    pairs, written = marshal.loads(message)
    envelopes = [registry.envelope(*pair) for pair in pairs]
    found: list[tuple[GradedTrace | Questions, Tally]] = []
    for question, (content, tally) in zip(questions, written, strict=True):
        if isinstance(content, list):
            found.append((content, _tally_from_plain(tally)))
            continue
        trace = question.trace
        added, log_records, evaluation_spans, runs, hidden_runs = content
        spans: Sequence[RawSpan] = trace.spans if holds_spans else ()
        if added:
            leaving = list(spans)
            for place, behind in added:
                span_id, payload, envelope = leaving[place]
                leaving[place] = span_id, payload + behind, envelope
            spans = leaving
        graded = GradedTrace(
            trace_id=trace.trace_id,
            spans=spans,
            runs=[_run_from_plain(trace, run, read_run) for run in runs],
            hidden_runs=[_run_from_plain(trace, run, read_run) for run in hidden_runs],
            log_records=_spans_of(log_records, envelopes),
            evaluation_spans=_spans_of(evaluation_spans, envelopes),
            backfill=trace.backfill,
            quarantined=trace.quarantined,
            tenant=trace.tenant,
        )
        found.append((graded, _tally_from_plain(tally)))
    return found


def compact(
    trace: FinishedTrace,
    graded: GradedTrace,
    form: Form,
    registry: EnvelopeRegistry,
    read_run: Callable[[bytes], AgentRun],
) -> GradedTrace:
    """The trace as if it came from another process: nothing in it holds what its runs were read from."""
    (written,) = decode_graded(
        encode_graded([(trace, graded, Tally())], form),
        [Question(trace)],
        registry,
        read_run,
        holds_spans=bool(graded.spans),
    )
    let_go_of_spans(run.run for run in graded.graded_runs)
    return cast(GradedTrace, written[0])


def _added(trace: FinishedTrace, graded: GradedTrace) -> list[tuple[int, bytes]]:
    """What grading wrote behind the bytes of spans, by their places."""
    if graded.spans is trace.spans or not graded.spans:
        return []
    return [
        (place, leaves[1][len(came[1]) :])
        for place, (came, leaves) in enumerate(zip(trace.spans, graded.spans, strict=True))
        if leaves is not came
    ]


def _run_to_plain(graded: GradedRun, form: Form, with_line: bool) -> tuple[object, ...]:
    run, usage = graded.run, graded.run.usage
    return (
        run.span_id,
        (run.agent.name, run.agent.id, run.agent.version),
        run.parent_agent,
        run.session,
        run.finish_reason.value,
        run.complete,
        run.incomplete_reason,
        (run.start_unix_nano, run.end_unix_nano, run.last_end_unix_nano),
        run.carrier_span_id,
        {name: run.resource[name] for name in form.resource_attributes if name in run.resource},
        None
        if usage is None
        else (
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_input_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        ),
        run.cost,
        run.call_counts,
        format_run(graded) if with_line else b"",
        (graded.graded_unix_nano, graded.instance),
        [_result_to_plain(result, form.details) for result in graded.results],
    )


def _run_from_plain(
    trace: FinishedTrace, written: tuple[Any, ...], read_run: Callable[[bytes], AgentRun]
) -> GradedRun:
    (
        span_id,
        agent,
        parent_agent,
        session,
        reason,
        complete,
        incomplete_reason,
        (start, end, last_end),
        carrier,
        resource,
        usage,
        cost,
        counts,
        line,
        (unix_nano, instance),
        results,
    ) = written
    told = _ToldByLine(line, read_run) if line else None
    run = AgentRun(
        trace_id=trace.trace_id,
        span_id=span_id,
        agent=AgentIdentity(name=agent[0], id=agent[1], version=agent[2]),
        tool_calls=() if told is None else _LateCalls(told),
        parent_agent=parent_agent,
        session=session,
        finish_reason=FinishReason(reason),
        complete=complete,
        incomplete_reason=incomplete_reason,
        start_unix_nano=start,
        end_unix_nano=end,
        tenant=trace.tenant,
        resource=resource,
        carrier_span_id=carrier,
        usage=None if usage is None else TokenUsage(*usage),
        cost=cost,
        content=cast(Any, told),
    )
    run.__dict__.update(call_counts=counts, last_end_unix_nano=last_end)
    return GradedRun(
        run=run,
        results=list(map(_result_from_plain, results)),
        graded_unix_nano=unix_nano,
        instance=instance,
        line=line,
    )


def _result_to_plain(result: EvaluationResult, with_details: bool) -> tuple[object, ...]:
    details: bytes | dict[str, str] = {}
    if with_details and result.details:
        details = encode_json(dict(result.details))
    elif result.evaluator in CLASSIFIERS:
        found = {key: result.details.get(key) for key in _CLASS_KEYS}
        details = {key: value for key, value in found.items() if isinstance(value, str)}
    return (
        result.name,
        result.evaluator,
        result.evaluator_version,
        result.outcome.value,
        result.score,
        result.explanation,
        details,
        None if result.reason is None else result.reason.value,
        result.error_type,
        result.pass_threshold,
        result.severity.value,
        result.criteria_hash,
        result.stage.value,
        result.muted_until_unix_nano,
        result.tool_call_id,
        result.tool_span_id,
        result.quotes_content,
    )


def _result_from_plain(written: tuple[Any, ...]) -> EvaluationResult:
    (
        name,
        evaluator,
        version,
        outcome,
        score,
        explanation,
        details,
        reason,
        error_type,
        threshold,
        severity,
        criteria_hash,
        stage,
        muted_until,
        tool_call_id,
        tool_span_id,
        quotes_content,
    ) = written
    return EvaluationResult(
        name=name,
        evaluator=evaluator,
        evaluator_version=version,
        outcome=_OUTCOMES[outcome],
        score=score,
        explanation=explanation,
        details=cast("JsonObject", decode_json(details)) if isinstance(details, bytes) else details,
        reason=None if reason is None else NotEvaluatedReason(reason),
        error_type=error_type,
        pass_threshold=threshold,
        severity=_SEVERITIES[severity],
        criteria_hash=criteria_hash,
        stage=_STAGES[stage],
        muted_until_unix_nano=muted_until,
        tool_call_id=tool_call_id,
        tool_span_id=tool_span_id,
        quotes_content=quotes_content,
    )


def _tally_to_plain(tally: Tally) -> tuple[object, ...]:
    failure = tally.failure
    return (
        tally.foreign_results,
        tally.without_criteria,
        {reason.value: count for reason, count in tally.skipped.items()},
        tally.seconds,
        None if failure is None else "".join(format_exception(failure)),
    )


def _tally_from_plain(written: tuple[Any, ...]) -> Tally:
    foreign, without_criteria, skipped, seconds, failure = written
    return Tally(
        foreign_results=foreign,
        without_criteria=without_criteria,
        skipped={SkipReason(reason): count for reason, count in skipped.items()},
        seconds=seconds,
        failure=None if failure is None else GradingFailed(failure),
    )


def _answers_to_plain(answers: Mapping[str, Answer]) -> dict[str, tuple[object, ...]]:
    plain: dict[str, tuple[object, ...]] = {}
    for name, answer in answers.items():
        if isinstance(answer, Score):
            plain[name] = answer.value, encode_json(dict(answer.details)), answer.lines
        elif isinstance(answer, NotEvaluated):
            plain[name] = answer.reason.value, answer.text
        else:
            error = answer.error_type if isinstance(answer, EvaluationError) else type(answer).__name__
            plain[name] = None, error, str(answer)
    return plain


def _answers_from_plain(plain: Mapping[str, tuple[Any, ...]]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for name, (kind, *told) in plain.items():
        if kind is None:
            answers[name] = WorkerFailure(*told)
        elif isinstance(kind, str):
            answers[name] = NotEvaluated(NotEvaluatedReason(kind), told[0])
        else:
            answers[name] = Score(kind, cast("JsonObject", decode_json(told[0])), tuple(told[1]))
    return answers


class _ToldByLine:
    """What the line of a run tells of it (`RunContent`); read when somebody first looks at it."""

    def __init__(self, line: bytes, read_run: Callable[[bytes], AgentRun]) -> None:
        self._line = line
        self._read_run = read_run

    def __getattr__(self, name: str) -> object:
        return getattr(self.run, name)

    @late
    def run(self) -> AgentRun:
        """The run that the line tells."""
        return self._read_run(self._line)


class _LateCalls(Sequence[ToolCall]):
    """The calls of a run, out of its line."""

    def __init__(self, told: _ToldByLine) -> None:
        self._told = told

    @overload
    def __getitem__(self, place: int) -> ToolCall: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ToolCall]: ...
    def __getitem__(self, place: int | slice) -> ToolCall | Sequence[ToolCall]:
        return self._told.run.tool_calls[place]

    def __len__(self) -> int:
        return len(self._told.run.tool_calls)
