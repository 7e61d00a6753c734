"""The two traces of a self-check are graded as they are meant to be, and only that passes."""

from dataclasses import replace

import pytest

from collector.clock import ManualClock
from collector.grading import Grader, GradingStage
from collector.otlp import records_by_trace, split_records, split_request
from collector.telemetry import Metrics
from collector.tools.self_check.traces import misgrading, self_check_criteria, self_check_requests
from collector.trace import FinishedTrace, GradedTrace
from processors.model import FinishReason, Outcome
from tests.support.held_spans import START_UNIX_NANO, trace_id

EXPECTED = {trace_id(1): Outcome.PASS, trace_id(2): Outcome.FAIL}


REQUESTS = self_check_requests(EXPECTED, START_UNIX_NANO)


def finished(number: int, reason: FinishReason = FinishReason.ROOT) -> FinishedTrace:
    spans = split_request(REQUESTS["traces"]).traces[trace_id(number)]
    records = records_by_trace(split_records(REQUESTS["logs"]).records)[trace_id(number)]
    return FinishedTrace(trace_id=trace_id(number), spans=spans, reason=reason, records=records)


def graded(trace: FinishedTrace) -> GradedTrace:
    criteria = self_check_criteria()
    clock = ManualClock()
    grader = Grader(criteria=lambda: criteria, clock=clock, instance="test")
    return GradingStage(grader=grader, metrics=Metrics(), clock=clock).grade_now(trace)


def test_each_request_holds_something_for_each_id() -> None:
    request = split_request(REQUESTS["traces"])
    records = split_records(REQUESTS["logs"])

    assert EXPECTED.keys() == request.traces.keys() == records_by_trace(records.records).keys()
    assert 0 == request.rejected == records.rejected
    assert ["logs", "traces"] == [*REQUESTS], "a record that comes after its span could come too late"


@pytest.mark.parametrize(("number", "expected"), [(1, Outcome.PASS), (2, Outcome.FAIL)])
def test_a_trace_is_graded_as_expected(number: int, expected: Outcome) -> None:
    trace = finished(number)

    assert misgrading(trace, graded(trace), expected) is None


@pytest.mark.parametrize(("number", "expected"), [(1, Outcome.FAIL), (2, Outcome.PASS)])
def test_a_verdict_turned_around_is_told(number: int, expected: Outcome) -> None:
    trace = finished(number)

    problem = misgrading(trace, graded(trace), expected)

    assert problem is not None
    assert f"the trace to {expected.value} (finish reason root) got" in problem


def test_a_trace_that_was_cut_short_is_not_evaluated() -> None:
    trace = finished(1, FinishReason.PRESSURE)

    problem = misgrading(trace, graded(trace), Outcome.PASS)

    assert "the trace to pass (finish reason pressure) got not_evaluated from tool-call-order" == problem


@pytest.mark.parametrize(("number", "expected"), [(1, Outcome.PASS), (2, Outcome.FAIL)])
def test_a_trace_without_its_log_record_is_not_evaluated(number: int, expected: Outcome) -> None:
    trace = replace(finished(number), records=())

    problem = misgrading(trace, graded(trace), expected)

    assert problem is not None
    assert problem.endswith("got not_evaluated from tool-call-args")


def test_a_missing_result_is_told() -> None:
    trace = finished(1)
    whole = graded(trace)
    (run,) = whole.runs
    less = replace(whole, runs=[replace(run, results=run.results[:1])])

    problem = misgrading(trace, less, Outcome.PASS)

    assert problem is not None
    assert problem.endswith("got no result from tool-call-args")


def test_results_without_their_events_are_told() -> None:
    trace = finished(1)

    problem = misgrading(trace, replace(graded(trace), spans=trace.spans), Outcome.PASS)

    assert problem is not None
    assert problem.endswith("carries other than one event for each result")


def test_a_trace_left_ungraded_is_told() -> None:
    trace = finished(1)

    problem = misgrading(trace, replace(graded(trace), runs=()), Outcome.PASS)

    assert problem is not None
    assert "gave 0 agent runs" in problem
