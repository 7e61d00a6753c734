"""A verdict's delay counts from the end of the run by the sender's clock, and never below 0."""

import pytest

from collector.telemetry import Metrics, observe_verdict_delays
from collector.trace import GradedTrace
from processors.model import (
    AgentIdentity,
    AgentRun,
    EvaluationResult,
    FinishReason,
    GradedRun,
    Outcome,
    ToolCall,
)

SECOND = 1_000_000_000
NOW = 1_800_000_000 * SECOND

PASSED = EvaluationResult(name="a", evaluator="a", evaluator_version="1", outcome=Outcome.PASS, score=1.0)


def graded_run(
    end: int, *, call_end: int | None = None, results: tuple[EvaluationResult, ...] = (PASSED,)
) -> GradedRun:
    calls = () if call_end is None else (ToolCall(name="t", end_unix_nano=call_end),)
    run = AgentRun(
        trace_id=bytes(16),
        span_id=None,
        agent=AgentIdentity(name="agent"),
        tool_calls=calls,
        finish_reason=FinishReason.ROOT,
        complete=True,
        end_unix_nano=end,
    )
    return GradedRun(run=run, results=results)


def observed(*runs: GradedRun, backfill: bool = False) -> tuple[int, float]:
    """How many delays were observed, and their sum in seconds."""
    metrics = Metrics()
    observe_verdict_delays(
        metrics, GradedTrace(trace_id=bytes(16), spans=(), runs=runs, backfill=backfill), NOW
    )
    row = metrics.verdict_delay_seconds.row()
    return int(sum(row[:-1])), row[-1]


def test_each_run_counts_from_its_end() -> None:
    assert (2, 5.0) == observed(graded_run(NOW - 2 * SECOND), graded_run(NOW - 3 * SECOND))


def test_a_call_that_ends_after_the_span_of_its_agent_ends_the_run() -> None:
    assert (1, 1.0) == observed(graded_run(NOW - 3 * SECOND, call_end=NOW - SECOND))


def test_an_end_in_the_future_counts_as_no_delay() -> None:
    assert (1, 0.0) == observed(graded_run(NOW + SECOND))


@pytest.mark.parametrize("run", [graded_run(0), graded_run(NOW - SECOND, results=())])
def test_runs_without_an_end_or_without_results_are_left_out(run: GradedRun) -> None:
    assert (0, 0.0) == observed(run)


def test_backfill_is_left_out() -> None:
    assert (0, 0.0) == observed(graded_run(NOW - SECOND), backfill=True)
