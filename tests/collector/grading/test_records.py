"""Traces are graded with the content that log records carry, and their spans leave as they arrived."""

from dataclasses import replace

from collector.clock import ManualClock
from collector.criteria import load_criteria
from collector.grading import Grader, GradingStage, is_large
from collector.results_config import ResultsConfig
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, GradedTrace
from processors.model import FinishReason
from processors.reconstruction import settled_scopes, span_reader
from tests.support.both_signals import traces_in


def trace_of(name: str) -> FinishedTrace:
    ((trace_id, trace),) = traces_in(name).items()
    return FinishedTrace(
        trace_id=trace_id, spans=trace.spans, records=trace.records, reason=FinishReason.ROOT
    )


def graded(trace: FinishedTrace) -> GradedTrace:
    criteria, clock = load_criteria(None, environment={}), ManualClock()
    grader = Grader(
        criteria=lambda: criteria, clock=clock, instance="test", results=ResultsConfig(emit=("log",))
    )
    stage = GradingStage(grader=grader, metrics=Metrics(), clock=clock)
    return stage.grade_now(trace)


def outcome_of(trace: FinishedTrace, evaluation: str) -> str:
    (run,) = graded(trace).runs
    return next(result.outcome.value for result in run.results if result.name == evaluation)


def test_a_verdict_counts_what_records_carry() -> None:
    trace = trace_of("genai_openai")

    assert "not_evaluated" == outcome_of(replace(trace, records=()), "honest-response")
    assert "fail" == outcome_of(trace, "honest-response")


def test_runs_that_were_read_from_the_spans_alone_are_read_anew() -> None:
    trace = trace_of("genai_openai")
    scopes = settled_scopes(trace.spans, span_reader())

    assert "fail" == outcome_of(replace(trace, scopes=scopes), "honest-response")


def test_spans_leave_as_they_arrived() -> None:
    trace = trace_of("adot_strands")

    assert trace.spans == graded(trace).spans


def test_the_bytes_of_records_make_a_trace_large() -> None:
    trace = trace_of("genai_openai")
    _, payload, envelope = trace.records[0]

    assert not is_large(trace)
    assert is_large(replace(trace, records=[(b"", payload + bytes(10 << 20), envelope)]))
