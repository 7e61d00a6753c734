"""What crosses the pipe to a grading process is the same on the other side, every field of it."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from collector.grading.grader import Tally
from collector.grading.hand_over import (
    Form,
    GradingFailed,
    Question,
    RunHead,
    decode_graded,
    decode_questions,
    encode_graded,
    encode_questions,
)
from collector.otlp import EnvelopeRegistry
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.worker_evaluator import WorkerFailure
from processors.evaluate import Answer
from processors.model import (
    AgentRun,
    EvaluationError,
    EvaluationResult,
    FinishReason,
    GradedRun,
    NotEvaluated,
    Score,
    SkipReason,
)
from tests.support.graded_runs import weather_run
from tests.support.values import values_of

_REGISTRY = EnvelopeRegistry()
_ENVELOPE, _OTHER = _REGISTRY.envelope(b"resource", b"scope"), _REGISTRY.envelope(b"other", b"")
_SPANS = [(bytes([number] * 8), b"span", _ENVELOPE if number % 2 else _OTHER) for number in range(1, 4)]
_TRACE = FinishedTrace(
    trace_id=bytes(range(16)),
    spans=_SPANS,
    records=[(b"", b"record", _OTHER)],
    reason=FinishReason.IDLE,
    interrupted=True,
    tenant="blue",
)
_ALL = Form(lines=False, details=True, resource_attributes=("service.name",))


def _there_and_back(graded: GradedTrace, tally: Tally, form: Form = _ALL) -> tuple[GradedTrace, Tally]:
    ((copy, copied_tally),) = decode_graded(
        encode_graded([(_TRACE, graded, tally)], form),
        [Question(_TRACE)],
        _REGISTRY,
        lambda _: weather_run().run,
        holds_spans=True,
    )
    assert isinstance(copy, GradedTrace)
    return copy, copied_tally


@given(values_of(RunHead), st.lists(values_of(EvaluationResult), max_size=3))
def test_every_field_of_a_result_and_what_is_counted_of_a_run_comes_back(
    head: RunHead, results: list[EvaluationResult]
) -> None:
    counted = {name: getattr(head, name) for name in RunHead.__struct_fields__}
    run = AgentRun(trace_id=_TRACE.trace_id, tenant="blue", resource={"service.name": "shop"}, **counted)
    run.__dict__.update(call_counts={("t", "ok"): 2}, last_end_unix_nano=7)
    graded = GradedRun(run=run, results=results, graded_unix_nano=9, instance="host:1")

    copy, _ = _there_and_back(GradedTrace(trace_id=bytes(16), spans=(), runs=[graded]), Tally())

    (found,) = copy.runs
    assert graded == found
    assert (run.call_counts, run.last_end_unix_nano) == (found.run.call_counts, found.run.last_end_unix_nano)
    assert run.dialect == found.run.dialect


def test_every_field_of_a_run_is_counted_or_in_its_line_or_stays_behind() -> None:
    told_otherwise = {"trace_id", "tenant", "resource", "content", "conversation"}
    read_from_the_line = {
        "tool_calls",
        "call_turns",
        "input",
        "input_state",
        "output",
        "output_state",
        "error",
        "messages",
        "messages_state",
        "span_attributes",
        "available_tools",
        "requested_calls",
        "model_calls",
        "models",
        "time_to_first_output_seconds",
    }

    assert {field.name for field in fields(AgentRun)} == {
        *RunHead.__struct_fields__,
        *told_otherwise,
        *read_from_the_line,
    }


def test_what_a_line_holds_is_read_when_it_is_looked_at() -> None:
    form = Form(lines=True, details=False, resource_attributes=())
    graded = GradedTrace(trace_id=bytes(16), spans=(), runs=[weather_run()])

    copy, _ = _there_and_back(graded, Tally(), form)

    run, expected = copy.runs[0].run, weather_run().run
    assert list(expected.tool_calls) == list(run.tool_calls)
    assert (expected.input, expected.output, list(expected.messages)) == (
        run.input,
        run.output,
        list(run.messages),
    )
    assert expected.span_attributes == run.span_attributes
    assert all(not result.details for result in copy.runs[0].results)


def test_additions_and_counts_come_back_and_an_error_as_its_text() -> None:
    tally = Tally(
        foreign_results=1,
        without_criteria=2,
        skipped={SkipReason.WHEN: 3},
        seconds=0.5,
        failure=KeyError("x"),
    )
    changed = [_SPANS[0], (_SPANS[1][0], b"span and more", _OTHER), _SPANS[2]]
    graded = GradedTrace(
        trace_id=_TRACE.trace_id,
        spans=changed,
        log_records=_SPANS[:2],
        evaluation_spans=_SPANS[1:],
        tenant="blue",
    )

    copy, copied_tally = _there_and_back(graded, tally)

    assert graded == replace(copy, runs=(), hidden_runs=())
    failure, copied_tally.failure = copied_tally.failure, tally.failure
    assert tally == copied_tally
    assert isinstance(failure, GradingFailed)
    assert "KeyError: 'x'" in str(failure)


@given(values_of(Score), values_of(NotEvaluated))
def test_questions_come_with_the_answers_that_are_known(score: Score, not_evaluated: NotEvaluated) -> None:
    known: dict[str, Answer] = {
        "a": score,
        "b": not_evaluated,
        "c": WorkerFailure("Timeout", "late"),
        "d": EvaluationError("no such key"),
        "e": ValueError("bad"),
    }

    ((question,), unix_nano) = decode_questions(encode_questions([Question(_TRACE, [known])], 7), _REGISTRY)

    assert (7, _TRACE) == (unix_nano, question.trace)
    assert question.answers is not None
    (found,) = question.answers
    assert (score, not_evaluated) == (found["a"], found["b"])
    assert [("Timeout", "late"), ("EvaluationError", "no such key"), ("ValueError", "bad")] == [
        (failure.error_type, str(failure)) for failure in found.values() if isinstance(failure, WorkerFailure)
    ]
