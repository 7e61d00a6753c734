"""From graded traces to series: bounds, the first increment, and that nothing is lost."""

from array import array
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.clock import ManualClock
from collector.monitoring import MetricsRegistry
from collector.telemetry import OVERFLOW, Limits, Metrics, ScoreSeries
from collector.trace import GradedTrace
from processors.model import (
    AgentIdentity,
    AgentRun,
    CallCategory,
    EvaluationResult,
    GradedRun,
    JsonValue,
    NotEvaluatedReason,
    Outcome,
    Stage,
    ToolCall,
    ToolError,
)
from tests.support.metric_table import rendered
from tests.support.named_criteria import criteria_with

TRACE_ID = bytes(range(16))
SPAN_ID = bytes(range(8))


def result(
    outcome: Outcome = Outcome.PASS, score: float | None = None, name: str = "order"
) -> EvaluationResult:
    if score is None and outcome in (Outcome.PASS, Outcome.FAIL):
        score = 1.0 if outcome is Outcome.PASS else 0.0
    reason = NotEvaluatedReason.INCOMPLETE_TRACE if outcome is Outcome.NOT_EVALUATED else None
    return EvaluationResult(
        name=name,
        evaluator="tool-call-order",
        evaluator_version="1",
        outcome=outcome,
        score=score,
        reason=reason,
    )


def graded(
    *results: EvaluationResult,
    agent: str = "weather_agent",
    tool_calls: tuple[ToolCall, ...] = (),
    backfill: bool = False,
    version: str | None = None,
    resource: Mapping[str, JsonValue] | None = None,
) -> GradedTrace:
    run = AgentRun(
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        agent=AgentIdentity(name=agent, version=version),
        tool_calls=tool_calls,
        resource=resource or {},
    )
    return GradedTrace(
        trace_id=TRACE_ID, spans=(), runs=(GradedRun(run=run, results=results),), backfill=backfill
    )


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(unix_nano=1_700_000_000_000_000_000)


@pytest.fixture
def series(metrics: Metrics, clock: ManualClock) -> ScoreSeries:
    return ScoreSeries(metrics, clock)


def test_series_of_exact_agents_exist_at_zero_from_the_start(metrics: Metrics, series: ScoreSeries) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order", "args"]}))

    assert {
        ("weather_agent", evaluation, outcome.value): 0
        for evaluation in ("order", "args")
        for outcome in Outcome
    } == metrics.results.values
    assert {} == metrics.score.values, "no alert needs those of scores before there is one"


def test_a_series_that_was_there_from_the_start_counts_at_once(metrics: Metrics, series: ScoreSeries) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))

    series.record(graded(result(Outcome.FAIL, 0.25)))

    assert 1 == metrics.results.shown()["weather_agent", "order", "fail"]
    assert 0.25 == metrics.score.values["weather_agent", "order"][-1]


def test_a_new_series_is_shown_at_zero_and_counts_after_the_scrape(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.record(graded(result(Outcome.PASS), result(Outcome.FAIL, 0.5)))
    series.before_scrape()
    results = metrics.results.shown()
    scraped = {outcome.value: results["weather_agent", "order", outcome] for outcome in Outcome}
    scraped_scores = list(array("d", metrics.score.shown()["weather_agent", "order"]))
    series.after_scrape()

    assert {"pass": 0, "fail": 0, "error": 0, "not_evaluated": 0} == scraped
    assert [0.0] * 14 == scraped_scores
    assert 1 == metrics.results.shown()["weather_agent", "order", "pass"]
    assert 1 == metrics.results.shown()["weather_agent", "order", "fail"]
    assert 1.5 == metrics.score.values["weather_agent", "order"][-1]


def test_a_new_series_is_shown_without_an_exemplar_before_it_counts(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.record(graded(result(Outcome.PASS)))
    series.before_scrape()
    first = rendered(MetricsRegistry(metrics).snapshot(), "application/openmetrics-text")
    series.after_scrape()
    second = rendered(MetricsRegistry(metrics).snapshot(), "application/openmetrics-text")

    assert b"trace_id" not in first
    assert b"trace_id" in second


def test_without_a_scrape_a_new_series_counts_after_fifteen_seconds(
    metrics: Metrics, series: ScoreSeries, clock: ManualClock
) -> None:
    series.record(graded(result()))
    clock.advance(14.9)
    series.record(graded(result()))
    series.before_scrape()
    before = metrics.results.shown()["weather_agent", "order", "pass"]
    clock.advance(0.1)
    series.before_scrape()

    assert 0 == before
    assert 2 == metrics.results.shown()["weather_agent", "order", "pass"]


def test_a_series_waits_only_once(metrics: Metrics, series: ScoreSeries) -> None:
    series.record(graded(result()))
    series.after_scrape()

    series.record(graded(result()))

    assert 2 == metrics.results.shown()["weather_agent", "order", "pass"]


def test_series_that_a_reload_adds_wait_like_any_new_one(metrics: Metrics, series: ScoreSeries) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))
    series.set_criteria(criteria_with({"weather_agent": ["order"], "travel_agent": ["order"]}))

    series.record(graded(result(), agent="travel_agent"))
    waiting = metrics.results.shown()["travel_agent", "order", "pass"]
    series.after_scrape()

    assert 0 == waiting
    assert 1 == metrics.results.shown()["travel_agent", "order", "pass"]


def test_flush_applies_everything(metrics: Metrics, series: ScoreSeries) -> None:
    series.record(graded(result(), tool_calls=(ToolCall(name="get_forecast"),)))

    series.flush()

    assert 1 == metrics.results.shown()["weather_agent", "order", "pass"]
    assert 1 == metrics.tool_calls.shown()["weather_agent", "get_forecast", "ok"]


def test_only_pass_and_fail_enter_the_scores(metrics: Metrics, series: ScoreSeries) -> None:
    series.record(graded(*(result(outcome) for outcome in Outcome)))
    series.flush()

    assert 2 == sum(metrics.score.values["weather_agent", "order"][:-1])
    assert {1} == {metrics.results.value("weather_agent", "order", outcome.value) for outcome in Outcome}
    assert 1 == metrics.not_evaluated.value("incomplete_trace")


def test_a_result_for_want_of_criteria_is_no_result(metrics: Metrics, series: ScoreSeries) -> None:
    no_criteria = EvaluationResult(
        name="order",
        evaluator="tool-call-order",
        evaluator_version="1",
        outcome=Outcome.NOT_EVALUATED,
        reason=NotEvaluatedReason.NO_CRITERIA,
    )

    series.record(graded(no_criteria))
    series.record(graded(no_criteria, backfill=True))
    series.flush()

    assert {} == metrics.results.values
    assert 0 == metrics.backfill_results.value("not_evaluated")


def test_backfill_never_enters_live_series(metrics: Metrics, series: ScoreSeries) -> None:
    series.record(
        graded(
            result(Outcome.FAIL),
            result(Outcome.NOT_EVALUATED),
            tool_calls=(ToolCall(name="get_forecast"),),
            backfill=True,
        )
    )
    series.flush()

    assert 1 == metrics.backfill_results.value("fail")
    assert 1 == metrics.backfill_results.value("not_evaluated")
    assert {} == metrics.results.values
    assert {} == metrics.score.values
    assert {} == metrics.tool_calls.values
    assert 0 == metrics.not_evaluated.value("incomplete_trace")


def test_tool_calls_are_counted_by_status_and_without_handoffs(metrics: Metrics, series: ScoreSeries) -> None:
    calls = (
        ToolCall(name="search"),
        ToolCall(name="search", error=ToolError(type="Timeout", message="")),
        ToolCall(name="search", executed=False),
        ToolCall(name="to_billing", category=CallCategory.HANDOFF),
    )

    series.record(graded(tool_calls=calls))
    series.flush()

    assert {
        ("weather_agent", "search", "ok"): 1,
        ("weather_agent", "search", "error"): 1,
        ("weather_agent", "search", "not_executed"): 1,
    } == metrics.tool_calls.values


def test_ten_thousand_hostile_agent_names_make_a_bounded_number_of_series(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))
    for number in range(10_000):
        series.record(graded(result(), agent=f'agent "{number}"\n\\'))
    series.record(graded(result(), agent="weather_agent"))
    series.flush()

    agents = {agent for agent, _, _ in metrics.results.values}
    assert Limits.AGENTS + 2 == len(agents)
    assert 10_000 - Limits.AGENTS == metrics.results.value(OVERFLOW, "order", "pass")
    assert 1 == metrics.results.value("weather_agent", "order", "pass")
    assert 10_001 == sum(metrics.results.values.values())


def test_an_agent_named_exactly_after_all_slots_are_taken_still_gets_its_series(
    metrics: Metrics, series: ScoreSeries
) -> None:
    for number in range(Limits.AGENTS + 1):
        series.record(graded(result(), agent=f"agent{number}"))
    late = f"agent{Limits.AGENTS}"

    series.set_criteria(criteria_with({late: ["order"]}))
    series.record(graded(result(), agent=late))
    series.flush()

    assert 1 == metrics.results.value(late, "order", "pass")
    assert 1 == metrics.results.value(OVERFLOW, "order", "pass")


def test_hostile_tool_names_are_bounded_for_an_agent_and_over_all(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))
    for agent in range(60):
        calls = tuple(ToolCall(name=f"tool{number}") for number in range(150))
        series.record(graded(agent=f"agent{agent}", tool_calls=calls))
    series.record(graded(tool_calls=(ToolCall(name="get_forecast"),)))
    series.flush()

    by_agent = Counter(agent for agent, tool, _ in metrics.tool_calls.values if tool != OVERFLOW)
    assert {Limits.TOOLS_PER_AGENT, 1} == set(by_agent.values())
    assert Limits.TOOLS + 1 == by_agent.total()
    assert 60 * 150 + 1 == sum(metrics.tool_calls.values.values())
    assert 1 == metrics.tool_calls.value("weather_agent", "get_forecast", "ok")


@pytest.mark.parametrize("name", ["\ud800", "a\udfff", "x" * 1_000_000, "", "\x00", "\r\n", "__overflow__"])
def test_no_name_can_make_a_scrape_fail(metrics: Metrics, series: ScoreSeries, name: str) -> None:
    series.record(graded(result(), agent=name, tool_calls=(ToolCall(name=name),)))
    series.flush()

    text = rendered(MetricsRegistry(metrics).snapshot())

    assert len(text) < 50_000
    assert 1 == sum(metrics.results.values.values())


def test_the_last_score_in_a_bucket_names_its_span(
    metrics: Metrics, series: ScoreSeries, clock: ManualClock
) -> None:
    series.record(graded(result(Outcome.FAIL, 0.42)))
    clock.advance(1)
    series.record(graded(result(Outcome.FAIL, 0.45)))
    series.flush()

    ((score, span),) = metrics.score.exemplars["weather_agent", "order"].values()
    assert (0.45, TRACE_ID, SPAN_ID) == (score, span.trace_id, span.span_id)
    assert 1_700_000_001_000_000_000 == span.unix_nano


@given(
    steps=st.lists(
        st.one_of(
            st.just("scrape"),
            st.floats(0, 20).map(lambda seconds: ("advance", seconds)),
            st.tuples(
                st.sampled_from(["a", "b", "c"]), st.sampled_from([Outcome.PASS, Outcome.FAIL, Outcome.ERROR])
            ),
        ),
        max_size=40,
    )
)
def test_every_count_arrives_and_no_series_is_first_scraped_above_zero_within_the_hold(
    steps: list[str | tuple[str, float | Outcome]],
) -> None:
    metrics, clock = Metrics(), ManualClock()
    series = ScoreSeries(metrics, clock)
    expected: Counter[tuple[str, str]] = Counter()
    recorded_since_hold: dict[tuple[str, ...], float] = {}
    seen: set[tuple[str, ...]] = set()

    for step in steps:
        if step == "scrape":
            series.before_scrape()
            for labels, value in metrics.results.shown().items():
                if labels not in seen and clock.monotonic() - recorded_since_hold[labels] < 15:
                    assert 0 == value
                seen.add(labels)
            series.after_scrape()
        elif isinstance(step[1], Outcome):
            agent, outcome = step[0], step[1]
            series.record(graded(result(outcome), agent=agent))
            expected[agent, outcome.value] += 1
            for labels in metrics.results.values:
                recorded_since_hold.setdefault(labels, clock.monotonic())
        else:
            clock.advance(float(step[1]))
    series.flush()

    counted = {
        (agent, outcome): value for (agent, _, outcome), value in metrics.results.shown().items() if value
    }
    assert expected == counted


def test_results_in_shadow_are_in_series_of_their_own_and_in_no_other(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}, {"weather_agent": ["trial"]}))
    trial = replace(result(Outcome.FAIL, 0.25, "trial"), stage=Stage.SHADOW)
    open_trial = replace(result(Outcome.NOT_EVALUATED, name="trial"), stage=Stage.SHADOW)

    series.record(graded(result(Outcome.PASS), trial, open_trial))

    assert 1 == metrics.shadow_results.value("weather_agent", "trial", "fail")
    assert 1 == metrics.shadow_results.value("weather_agent", "trial", "not_evaluated")
    assert 0.25 == metrics.shadow_score.row("weather_agent", "trial")[-1]
    assert {"order"} == {evaluation for _, evaluation, _ in metrics.results.values}
    assert [("weather_agent", "order")] == list(metrics.score.values)
    assert 0 == sum(metrics.not_evaluated.values.values())


def test_a_new_series_in_shadow_is_shown_at_zero_first(metrics: Metrics, series: ScoreSeries) -> None:
    series.record(graded(replace(result(Outcome.PASS), stage=Stage.SHADOW)))

    assert 0 == metrics.shadow_results.shown()["weather_agent", "order", "pass"]
    series.after_scrape()
    assert 1 == metrics.shadow_results.shown()["weather_agent", "order", "pass"]
    assert 1 == metrics.shadow_score.row("weather_agent", "order")[-1]


def test_muted_results_count_and_tell_when_their_mute_ends(metrics: Metrics, series: ScoreSeries) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))

    series.record(graded(replace(result(Outcome.FAIL), muted_until_unix_nano=1_800_000_000_500_000_000)))

    assert 1 == metrics.results.value("weather_agent", "order", "fail")
    assert 1_800_000_000.5 == metrics.muted_until.value("weather_agent", "order")

    series.record(graded(result(Outcome.PASS)))

    assert {} == metrics.muted_until.values


def test_backfilled_results_in_shadow_are_not_counted_as_live_ones(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.record(graded(replace(result(Outcome.FAIL), stage=Stage.SHADOW), backfill=True))

    assert 0 == metrics.backfill_results.value("fail")


def test_runs_are_counted_graded_or_not_and_without_backfill(metrics: Metrics, series: ScoreSeries) -> None:
    series.record(graded(result()))
    series.record(graded())
    series.record(graded(result(), backfill=True))
    series.flush()

    assert {("weather_agent",): 2} == metrics.agent_runs.values


def test_failures_in_a_row_end_with_a_pass_and_nothing_else(metrics: Metrics, series: ScoreSeries) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))
    counts = [metrics.consecutive_failures.value("weather_agent", "order")]

    for outcome in (Outcome.FAIL, Outcome.ERROR, Outcome.FAIL, Outcome.NOT_EVALUATED, Outcome.PASS):
        series.record(graded(result(outcome), version=f"1.{len(counts)}"))
        counts.append(metrics.consecutive_failures.value("weather_agent", "order"))

    assert [0, 1, 1, 2, 2, 0] == counts


def test_failures_in_a_row_leave_out_shadow_backfill_and_agents_without_a_slot(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.record(graded(replace(result(Outcome.FAIL), stage=Stage.SHADOW)))
    series.record(graded(result(Outcome.FAIL), backfill=True))
    series.record(graded(result(Outcome.FAIL), agent=OVERFLOW))

    assert {} == metrics.consecutive_failures.values


def test_failures_in_a_row_go_with_their_evaluation(metrics: Metrics, series: ScoreSeries) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"], "travel*": ["order"]}))
    series.record(graded(result(Outcome.FAIL)))
    series.record(graded(result(Outcome.FAIL), agent="travel_agent"))

    series.set_criteria(criteria_with({"weather_agent": ["args"], "travel*": ["order"]}))

    assert {
        ("weather_agent", "args"): 0,
        ("travel_agent", "order"): 1,
    } == metrics.consecutive_failures.values
    assert 1 == metrics.results.value("weather_agent", "order", "fail")


def classified(
    expected: str, predicted: str, evaluator: str = "multiclass-classification"
) -> EvaluationResult:
    outcome = Outcome.PASS if expected == predicted else Outcome.FAIL
    details = {"expected": expected, "actual": predicted}
    return replace(result(outcome, name="topic"), evaluator=evaluator, details=details)


def test_classifications_are_counted_by_expected_and_predicted_class(
    metrics: Metrics, series: ScoreSeries
) -> None:
    for predicted in ("refund", "complaint", "complaint"):
        series.record(graded(classified("refund", predicted), version="2"))
    series.record(graded(classified("spam", "ham", "binary-classification")))
    series.record(graded(classified("spam", "ham", "exact-match")))
    series.flush()

    assert {
        ("weather_agent", "topic", "refund", "refund", "2"): 1,
        ("weather_agent", "topic", "refund", "complaint", "2"): 2,
        ("weather_agent", "topic", "spam", "ham"): 1,
    } == metrics.classifications.values


def test_classes_are_bounded(metrics: Metrics, series: ScoreSeries) -> None:
    for number in range(1000):
        series.record(graded(classified("refund", f"text number {number}")))
    series.record(graded(classified("refund", "a text that is no class " * 10)))
    series.flush()

    assert Limits.CLASSES == len(metrics.classifications.values)
    assert 1001 == sum(metrics.classifications.values.values())
    assert 1001 - (Limits.CLASSES - 1) == metrics.classifications.value(
        "weather_agent", "topic", "refund", OVERFLOW
    )


def test_the_version_of_an_agent_is_a_label_where_it_is_known(metrics: Metrics, series: ScoreSeries) -> None:
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))
    series.record(graded(result(), version="1.2"))
    series.record(graded(result()))
    series.flush()

    assert 1 == metrics.results.value("weather_agent", "order", "pass", "1.2")
    assert 1 == metrics.results.value("weather_agent", "order", "pass")
    assert {("weather_agent", "1.2"): 1, ("weather_agent",): 1} == metrics.agent_runs.values


def test_listed_resource_attributes_are_labels_and_no_others(clock: ManualClock) -> None:
    metrics = Metrics(("service_version", "replica"))
    series = ScoreSeries(metrics, clock, resource_attributes=("service.version", "replica"))

    resources: list[Mapping[str, JsonValue]] = [
        {"service.version": "7", "host": "a"},
        {"replica": 3},
        {"replica": ["a"]},
    ]
    for resource in resources:
        series.record(graded(result(), resource=resource))
    series.flush()

    assert {
        ("weather_agent", "", "7"): 1,
        ("weather_agent", "", "", "3"): 1,
        ("weather_agent",): 1,
    } == metrics.agent_runs.values
    text = rendered(MetricsRegistry(metrics).snapshot()).decode()
    assert 'tracegrade_agent_runs_total{gen_ai_agent_name="weather_agent",service_version="7"} 1.0\n' in text
    assert 'tracegrade_agent_runs_total{gen_ai_agent_name="weather_agent",replica="3"} 1.0\n' in text
    assert 'tracegrade_agent_runs_total{gen_ai_agent_name="weather_agent"} 1.0\n' in text


def test_versions_and_resource_values_are_bounded_for_each_and_over_all(clock: ManualClock) -> None:
    metrics = Metrics(("build",))
    series = ScoreSeries(metrics, clock, resource_attributes=("build",))
    series.set_criteria(criteria_with({"weather_agent": ["order"]}))

    for agent in range(30):
        for number in range(200):
            series.record(
                graded(agent=f"agent{agent}", version=f"v{number}", resource={"build": f"b{number}"})
            )
    series.record(graded(result(), version="1.0", resource={"build": "b1"}))
    series.flush()

    runs = metrics.agent_runs.values
    assert Limits.LABEL_SETS + 30 + 2 >= len(runs)
    assert 30 * 200 + 1 == sum(runs.values())
    assert Limits.RESOURCE_VALUES + 1 == len({labels[2] for labels in runs if len(labels) > 2})
    assert 1 == metrics.results.value("weather_agent", "order", "pass", OVERFLOW, OVERFLOW)


def test_evaluations_in_force_are_shown_with_what_they_are(metrics: Metrics, series: ScoreSeries) -> None:
    criteria = criteria_with(
        {"weather_agent": ["order"], "travel*": ["args"]},
        {"weather_agent": ["trial"]},
        owner="team-weather",
        severity="page",
    )
    series.set_criteria(criteria)
    before = set(metrics.evaluation_info.values)
    series.record(graded(agent="travel_agent"))
    series.record(graded(agent="unknown_agent"))

    by_agent = {labels[0]: labels for labels in metrics.evaluation_info.values}
    order = criteria.evaluations_for("weather_agent")[0]
    expected = "order", "ascii-printable-only", order.evaluator.version, order.criteria_hash, "page"
    assert {("weather_agent", *expected, "team-weather")} == before
    assert {"weather_agent", "travel_agent"} == set(by_agent)
    assert "args" == by_agent["travel_agent"][1]


def test_a_changed_evaluation_is_another_series_and_the_old_one_goes(
    metrics: Metrics, series: ScoreSeries
) -> None:
    series.set_criteria(criteria_with({"weather*": ["order"]}))
    series.record(graded())
    before = list(metrics.evaluation_info.values)

    series.set_criteria(criteria_with({"weather*": ["order"]}, pass_threshold=0.5, contact="#weather"))

    after = list(metrics.evaluation_info.values)
    assert 1 == len(before) == len(after)
    assert before[0][4] != after[0][4]
    assert ("", "#weather") == after[0][6:]
