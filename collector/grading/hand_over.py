"""What the service and the processes that grade for it send to each other.

A trace goes over as the bytes of its spans and records; back come the bytes that grading added to spans, the
results in forms of their own, and of each run what is counted, with its line where an exporter takes lines.
An agent run itself cannot go over: it is read late from the spans, and reading all of it costs as much as
grading.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from traceback import format_exception
from typing import Any, NamedTuple

from msgspec import Struct, structs

from collector.grading.grader import Needed, Questions, Tally
from collector.otlp import EnvelopeRegistry
from collector.telemetry import CLASSIFIERS
from collector.trace import FinishedTrace, GradedTrace
from collector.trace_forms import Additions, additions, decode_with_envelopes, encode_with_envelopes
from collector.workers.worker_evaluator import WorkerFailure
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
    IncompleteReason,
    JsonValue,
    LateObject,
    NotEvaluated,
    Score,
    TokenUsage,
    plain_value,
)
from processors.reconstruction import release_spans
from processors.spans import RawRecord, RawSpan

_CLASS_KEYS = ("expected", "actual")
"""Those of the details of a result that are counted."""


class Question(NamedTuple):
    """A trace to be graded, with what grading it turned out to need: answers, and conversations of its runs.

    Conversations are no part of what is encoded here.
    """

    trace: FinishedTrace
    answers: Sequence[Mapping[str, Answer]] | None = None
    conversations: Sequence[Conversation | None] = ()


class GradingFailed(Exception):
    """What a process reported of an error in grading a trace, as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What of the runs is requested: their lines, all details of results, and attributes of resources."""

    lines: bool
    details: bool
    resource_attributes: tuple[str, ...]


class _Failure(Struct, frozen=True, tag=True):
    """A custom evaluator gave no verdict."""

    error_type: str
    text: str


class _Question(Struct, frozen=True, array_like=True):
    trace_id: bytes
    spans: Sequence[RawSpan]
    reason: FinishReason
    was_quiet: bool
    interrupted: bool
    backfill: bool
    continues: bool
    tenant: str
    records: Sequence[RawRecord]
    answers: Sequence[Mapping[str, Score | NotEvaluated | _Failure]] | None


class RunHead(Struct, frozen=True, array_like=True):
    """Those fields of an `AgentRun` that are counted."""

    span_id: bytes | None
    agent: AgentIdentity
    parent_agent: str | None
    session: str | None
    finish_reason: FinishReason
    complete: bool
    incomplete_reason: IncompleteReason
    start_unix_nano: int
    end_unix_nano: int
    dialect: str
    carrier_span_id: bytes | None
    usage: TokenUsage | None
    cost: float | None
    stands_for_trace: bool


class _Run(Struct, frozen=True, array_like=True):
    head: RunHead
    resource: Mapping[str, JsonValue]
    last_end_unix_nano: int
    call_counts: Sequence[tuple[tuple[str, str], int]]
    line: bytes
    graded_unix_nano: int
    instance: str
    results: Sequence[EvaluationResult]


class _Answer(Struct, frozen=True, array_like=True):
    """A graded trace, or the `questions` that custom evaluators have to be asked first."""

    tally: Tally
    questions: Questions | None = None
    additions: Additions = Additions()
    runs: Sequence[_Run] = ()
    hidden_runs: Sequence[_Run] = ()


def encode_questions(questions: Sequence[Question], unix_nano: int) -> bytes:
    """The message that requests grading at `unix_nano`, by the clock of the service."""
    written = [
        _Question(
            trace_id=trace.trace_id,
            spans=trace.spans,
            reason=trace.reason,
            was_quiet=trace.was_quiet,
            interrupted=trace.interrupted,
            backfill=trace.backfill,
            continues=trace.continues,
            tenant=trace.tenant,
            records=trace.records,
            answers=None if answers is None else [_with_failures(each) for each in answers],
        )
        for trace, answers, _ in questions
    ]
    return encode_with_envelopes((unix_nano, written))


def decode_questions(message: bytes, registry: EnvelopeRegistry) -> tuple[list[Question], int]:
    """What `encode_questions` wrote."""
    unix_nano, written = decode_with_envelopes(message, tuple[int, list[_Question]], registry.envelope)
    questions = []
    for question in written:
        fields = structs.asdict(question)
        answers = fields.pop("answers")
        if answers is not None:
            answers = [
                {
                    name: WorkerFailure(answer.error_type, answer.text)
                    if isinstance(answer, _Failure)
                    else answer
                    for name, answer in each.items()
                }
                for each in answers
            ]
        questions.append(Question(FinishedTrace(**fields), answers))
    return questions, unix_nano


def encode_graded(graded: Sequence[tuple[FinishedTrace, GradedTrace | Needed, Tally]], form: Form) -> bytes:
    """The message that answers `encode_questions`."""
    answers = []
    for trace, outcome, tally in graded:
        if isinstance(outcome, Needed):
            answers.append(_Answer(tally, outcome.questions))
            continue
        runs = [_run_form(run, form, with_line=form.lines) for run in outcome.runs]
        hidden_runs = [_run_form(run, form, with_line=False) for run in outcome.hidden_runs]
        answers.append(_Answer(tally, None, additions(trace, outcome), runs, hidden_runs))
    return encode_with_envelopes(answers, _error_text)


def decode_graded(
    message: bytes,
    questions: Sequence[Question],
    registry: EnvelopeRegistry,
    read_run: Callable[[bytes], AgentRun],
    *,
    holds_spans: bool,
) -> list[tuple[GradedTrace | Questions, Tally]]:
    """What `encode_graded` wrote in answer to `questions`: graded traces, or what is needed first.

    `read_run` reads a line, when a field of a run is looked at that is not counted. `holds_spans`: whether
    spans leave with their verdict.
    """
    answers = decode_with_envelopes(
        message, list[_Answer], registry.envelope, lambda _, text: GradingFailed(text)
    )
    decoded: list[tuple[GradedTrace | Questions, Tally]] = []
    for question, answer in zip(questions, answers, strict=True):
        if answer.questions is not None:
            decoded.append((answer.questions, answer.tally))
            continue
        graded = answer.additions.graded(
            question.trace,
            holds_spans=holds_spans,
            runs=[_run_of_form(question.trace, run, read_run) for run in answer.runs],
            hidden_runs=[_run_of_form(question.trace, run, read_run) for run in answer.hidden_runs],
        )
        decoded.append((graded, answer.tally))
    return decoded


def compact(
    trace: FinishedTrace,
    graded: GradedTrace,
    form: Form,
    registry: EnvelopeRegistry,
    read_run: Callable[[bytes], AgentRun],
) -> GradedTrace:
    """The trace as if graded by another process: nothing in it holds what its runs were read from."""
    message = encode_graded([(trace, graded, Tally())], form)
    holds_spans = bool(graded.spans)
    ((copy, _),) = decode_graded(message, [Question(trace)], registry, read_run, holds_spans=holds_spans)
    release_spans(run.run for run in graded.graded_runs)
    assert isinstance(copy, GradedTrace)
    return copy


def _run_form(graded: GradedRun, form: Form, *, with_line: bool) -> _Run:
    run = graded.run
    return _Run(
        head=RunHead(*[getattr(run, name) for name in RunHead.__struct_fields__]),
        resource={name: run.resource[name] for name in form.resource_attributes if name in run.resource},
        last_end_unix_nano=run.last_end_unix_nano,
        call_counts=list(run.call_counts.items()),
        line=format_run(graded) if with_line else b"",
        graded_unix_nano=graded.graded_unix_nano,
        instance=graded.instance,
        results=graded.results if form.details else list(map(_without_details, graded.results)),
    )


def _without_details(result: EvaluationResult) -> EvaluationResult:
    """The result with those of its details that are counted."""
    details: dict[str, JsonValue] = {}
    if result.evaluator in CLASSIFIERS:
        details = {key: value for key in _CLASS_KEYS if isinstance(value := result.details.get(key), str)}
    return structs.replace(result, details=details)


def _run_of_form(trace: FinishedTrace, written: _Run, read_run: Callable[[bytes], AgentRun]) -> GradedRun:
    run = AgentRun(
        trace_id=trace.trace_id,
        tenant=trace.tenant,
        resource=written.resource,
        **structs.asdict(written.head),
    )
    run.__dict__.update(call_counts=dict(written.call_counts), last_end_unix_nano=written.last_end_unix_nano)
    if line := written.line:
        read: list[AgentRun] = []

        def attribute(name: str) -> object:
            if not read:
                read.append(read_run(line))
            return getattr(read[0], name)

        run.__dict__["content"] = LateObject(attribute)
    return GradedRun(
        run=run,
        results=written.results,
        graded_unix_nano=written.graded_unix_nano,
        instance=written.instance,
        line=line,
    )


def _with_failures(answers: Mapping[str, Answer]) -> dict[str, Any]:
    """The answers, with a form in place of each error."""
    return {
        name: _Failure(
            answer.error_type if isinstance(answer, EvaluationError) else type(answer).__name__, str(answer)
        )
        if isinstance(answer, Exception)
        else answer
        for name, answer in answers.items()
    }


def _error_text(part: object) -> object:
    """The form of the error in a `Tally`."""
    return "".join(format_exception(part)) if isinstance(part, Exception) else plain_value(part)
