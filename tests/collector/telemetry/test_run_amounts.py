"""What runs took, as series: which runs count, under which labels, and which span an observation names."""

from typing import Any

import pytest

from collector.clock import ManualClock
from collector.monitoring import MetricsRegistry
from collector.telemetry import Histogram, Metrics, ScoreSeries
from collector.trace import GradedTrace
from processors.model import AgentIdentity, AgentRun, GradedRun, TokenUsage
from tests.support.metric_table import rendered
from tests.support.named_criteria import criteria_with

TRACE_ID, SPAN_ID = bytes(range(16)), bytes(range(8))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def series(metrics: Metrics) -> ScoreSeries:
    return ScoreSeries(metrics, ManualClock())


def _record(series: ScoreSeries, *, backfill: bool = False, version: str | None = None, **run: Any) -> None:
    made = AgentRun(
        trace_id=TRACE_ID, span_id=SPAN_ID, agent=AgentIdentity(name="helper", version=version), **run
    )
    graded = GradedRun(run=made, results=())
    series.record(GradedTrace(trace_id=TRACE_ID, spans=(), runs=(graded,), backfill=backfill))


def _taken(histogram: Histogram) -> dict[tuple[str, ...], tuple[float, float]]:
    """For each series: how many observations there were, and their sum."""
    return {labels: (sum(row[:-1]), row[-1]) for labels, row in histogram.values.items()}


def test_time_tokens_and_cost_of_a_run_are_counted_each_in_its_series(
    metrics: Metrics, series: ScoreSeries
) -> None:
    for _ in range(2):
        _record(
            series,
            version="2",
            start_unix_nano=10**9,
            end_unix_nano=4 * 10**9,
            usage=TokenUsage(1000, 50),
            cost=0.25,
        )
    series.flush()

    assert {("helper", "2"): (2, 6.0)} == _taken(metrics.run_duration_seconds)
    assert {("helper", "input", "2"): (2, 2000), ("helper", "output", "2"): (2, 100)} == _taken(
        metrics.run_tokens
    )
    assert {("helper", "2"): (2, 0.5)} == _taken(metrics.run_cost)
    ((cost, span),) = metrics.run_cost.exemplars["helper", "2"].values()
    assert (0.25, TRACE_ID, SPAN_ID) == (cost, span.trace_id, span.span_id)


def test_what_is_not_told_makes_no_series_and_no_zeros(metrics: Metrics, series: ScoreSeries) -> None:
    _record(series)
    series.flush()

    assert {} == metrics.run_duration_seconds.values
    assert {} == metrics.run_tokens.values
    assert {} == metrics.run_cost.values


@pytest.mark.parametrize("left_out", [{"complete": False}, {"backfill": True}])
def test_runs_whose_spans_may_be_missing_and_old_ones_are_left_out(
    metrics: Metrics, series: ScoreSeries, left_out: dict[str, Any]
) -> None:
    _record(series, **left_out, start_unix_nano=1, end_unix_nano=10**9, usage=TokenUsage(1, 1), cost=1.0)
    series.flush()

    assert not any(count for count, _ in _taken(metrics.run_duration_seconds).values())
    assert {} == metrics.run_tokens.values
    assert {} == metrics.run_cost.values


def test_a_new_series_is_shown_at_zero_before_it_counts(metrics: Metrics, series: ScoreSeries) -> None:
    _record(series, usage=TokenUsage(1, 2), cost=1.0)

    series.before_scrape()
    shown = {*metrics.run_tokens.shown().values(), *metrics.run_cost.shown().values()}
    assert {b""} == {row.strip(b"\0") for row in shown}
    series.after_scrape()

    assert (1, 2) == _taken(metrics.run_tokens)["helper", "output"]
    assert (1, 1.0) == _taken(metrics.run_cost)["helper",]


def test_agents_named_exactly_have_the_series_of_their_runs_from_the_start_and_of_durations_with_the_first(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.set_criteria(criteria_with({"helper": ["order"]}))
    before = dict(metrics.run_duration_seconds.values)
    _record(series, start_unix_nano=1, end_unix_nano=10**9 + 1)
    series.before_scrape()
    (shown,) = metrics.run_duration_seconds.shown().values()

    assert {("helper",): 1} == metrics.agent_runs.shown()
    assert {} == before
    assert not any(shown)
    assert {("helper",): (1, 1.0)} == _taken(metrics.run_duration_seconds)


def test_a_scrape_shows_them_with_their_labels(metrics: Metrics, series: ScoreSeries) -> None:
    _record(series, usage=TokenUsage(1000, 50))
    series.flush()

    text = rendered(MetricsRegistry(metrics).snapshot()).decode()

    assert (
        'tracegrade_agent_run_tokens_sum{gen_ai_agent_name="helper",gen_ai_token_type="input"} 1000' in text
    )
