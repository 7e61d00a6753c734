"""Idle series go, what was counted is never lost to whoever scrapes, and freed names are free for others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.clock import ManualClock
from collector.telemetry import OVERFLOW, Limits, Metrics, ScoreSeries
from collector.trace import GradedTrace
from processors.model import (
    AgentIdentity,
    AgentRun,
    EvaluationResult,
    GradedRun,
    Outcome,
    Stage,
    TokenUsage,
    ToolCall,
)
from tests.support.named_criteria import criteria_with

EXPIRY_SECONDS = 3600.0
FAILED = EvaluationResult(
    name="order", evaluator="tool-call-order", evaluator_version="1", outcome=Outcome.FAIL, score=0.0
)


class Scraped:
    """Series as a Prometheus sees them: by scrapes."""

    def __init__(self, expiry_seconds: float = EXPIRY_SECONDS) -> None:
        self.metrics = Metrics()
        self.clock = ManualClock()
        self.series = ScoreSeries(self.metrics, self.clock, expiry_seconds=expiry_seconds)

    def record(
        self,
        *results: EvaluationResult,
        agent: str = "weather_agent",
        version: str | None = None,
        tools: tuple[str, ...] = (),
        usage: TokenUsage | None = None,
        cost: float | None = None,
    ) -> None:
        run = AgentRun(
            trace_id=bytes(range(16)),
            span_id=bytes(range(8)),
            agent=AgentIdentity(name=agent, version=version),
            tool_calls=[ToolCall(name=tool) for tool in tools],
            usage=usage,
            cost=cost,
        )
        graded = GradedRun(run=run, results=results)
        self.series.record(GradedTrace(trace_id=run.trace_id, spans=(), runs=(graded,)))

    def scrape(self) -> dict[tuple[str, ...], float]:
        """The results that a scrape shows."""
        self.series.before_scrape()
        shown = dict(self.metrics.results.shown())
        self.series.after_scrape()
        return shown

    def scrape_for(self, seconds: float, interval: float = 60.0) -> None:
        while seconds > 0:
            self.clock.advance(interval)
            self.scrape()
            seconds -= interval

    def labels(self) -> list[tuple[str, ...]]:
        """All series with the name of an agent."""
        metrics = self.metrics
        return [
            labels
            for instrument in (
                metrics.agent_runs,
                metrics.run_duration_seconds,
                metrics.run_tokens,
                metrics.run_cost,
                metrics.score,
                metrics.results,
                metrics.shadow_score,
                metrics.shadow_results,
                metrics.classifications,
                metrics.consecutive_failures,
                metrics.evaluation_info,
                metrics.tool_calls,
            )
            for labels in instrument.values
        ]


@pytest.fixture
def scraped() -> Scraped:
    return Scraped()


def test_series_go_when_nothing_was_counted_in_them_for_long(scraped: Scraped) -> None:
    scraped.series.set_criteria(criteria_with({"weather*": ["order"]}))
    classified = replace(
        FAILED, name="topic", evaluator="binary-classification", details={"expected": "a", "actual": "b"}
    )
    scraped.record(
        FAILED,
        classified,
        replace(FAILED, stage=Stage.SHADOW),
        tools=("search",),
        version="1",
        usage=TokenUsage(10, 20),
        cost=0.5,
    )

    scraped.scrape_for(EXPIRY_SECONDS - 120)
    before = scraped.labels()
    scraped.scrape_for(600)

    taken = 2 + 1  # input and output tokens, cost; nothing states how long it took
    assert 1 + taken + 2 + 8 + 1 + 4 + 1 + 2 + 1 + 1 == len(before)
    assert [] == scraped.labels()
    assert {} == scraped.metrics.score.exemplars
    assert 1 + taken + 2 + 8 + 1 + 4 + 1 + 1 == scraped.metrics.series_expired.value()


def test_series_in_which_something_is_counted_stay_whole(scraped: Scraped) -> None:
    for _ in range(30):
        scraped.record(FAILED, tools=("search",))
        scraped.scrape_for(300)

    assert 0 == scraped.metrics.series_expired.value()
    assert 30 == scraped.metrics.results.value("weather_agent", "order", "fail")
    assert 0 == scraped.metrics.results.value("weather_agent", "order", "pass")


def test_series_of_agents_named_exactly_stay_but_not_those_of_their_versions_and_tools(
    scraped: Scraped,
) -> None:
    scraped.series.set_criteria(criteria_with({"weather_agent": ["order"]}, {"weather_agent": ["trial"]}))
    lasting = scraped.labels()
    scraped.record(FAILED, version="1", tools=("search",))

    scraped.scrape_for(2 * EXPIRY_SECONDS)

    assert lasting == scraped.labels()
    assert 1 == scraped.metrics.consecutive_failures.value("weather_agent", "order")


def test_series_of_an_evaluation_that_criteria_name_no_more_go_as_well(scraped: Scraped) -> None:
    scraped.series.set_criteria(criteria_with({"weather_agent": ["order", "args"]}))
    scraped.series.set_criteria(criteria_with({"weather_agent": ["args"]}))

    scraped.scrape_for(2 * EXPIRY_SECONDS)

    assert {"args"} == {evaluation for _, evaluation, _ in scraped.metrics.results.values}


def test_nothing_goes_that_no_scrape_has_shown(scraped: Scraped) -> None:
    scraped.record(FAILED)
    scraped.scrape()
    scraped.clock.advance(10 * EXPIRY_SECONDS)

    first = scraped.scrape()
    scraped.scrape_for(EXPIRY_SECONDS + 120)

    assert 1 == first["weather_agent", "order", "fail"]
    assert [] == scraped.labels()


def test_a_series_that_comes_back_is_shown_at_zero_first(scraped: Scraped) -> None:
    scraped.record(FAILED)
    scraped.scrape_for(2 * EXPIRY_SECONDS)

    scraped.record(FAILED)
    shown = [scraped.scrape(), scraped.scrape()]

    assert [0, 1] == [scrape["weather_agent", "order", "fail"] for scrape in shown]


def test_a_series_that_comes_back_before_a_scrape_missed_it_waits_for_the_scrape(scraped: Scraped) -> None:
    scraped.record(FAILED)
    scraped.scrape_for(EXPIRY_SECONDS)
    while scraped.labels():
        scraped.scrape_for(60)

    scraped.record(FAILED)
    scraped.clock.advance(50)
    scraped.record(FAILED)
    shown = [scraped.scrape(), scraped.scrape()]

    assert [0, 2] == [scrape["weather_agent", "order", "fail"] for scrape in shown]


def test_names_of_expired_series_give_their_slots_to_others(scraped: Scraped) -> None:
    tools = tuple(f"tool{number}" for number in range(Limits.TOOLS_PER_AGENT))
    for number in range(Limits.AGENTS):
        scraped.record(agent=f"agent{number}")
    for number in range(Limits.VERSIONS):
        scraped.record(agent="agent0", version=f"v{number}", tools=tools)
    scraped.record(agent="late_agent")
    scraped.record(agent="agent0", version="new", tools=("late_tool",))
    in_overflow = [labels for labels in scraped.metrics.agent_runs.values if OVERFLOW in labels]

    scraped.scrape_for(2 * EXPIRY_SECONDS)
    scraped.record(agent="late_agent")
    scraped.record(agent="agent0", version="new", tools=("late_tool",))

    assert [(OVERFLOW,), ("agent0", OVERFLOW)] == in_overflow
    assert {("late_agent",), ("agent0", "new")} == set(scraped.metrics.agent_runs.values)
    assert {("agent0", "late_tool", "ok")} == set(scraped.metrics.tool_calls.values)


_STEPS = st.lists(
    st.one_of(
        st.sampled_from(["a", "b", "c"]),
        st.floats(0, 200).map(lambda seconds: ("advance", seconds)),
        st.just(("scrape", 0.0)),
    ),
    max_size=60,
)


@given(_STEPS)
def test_what_scrapes_saw_adds_up_to_everything_counted(steps: list[str | tuple[str, float]]) -> None:
    scraped = Scraped(expiry_seconds=60.0)
    last: dict[tuple[str, ...], float] = {}
    increase = recorded = 0.0

    for step in [*steps, ("scrape", 0.0), ("scrape", 0.0)]:
        if isinstance(step, str):
            scraped.record(FAILED, agent=step)
            recorded += 1
        elif step[0] == "advance":
            scraped.clock.advance(step[1])
        else:
            shown = scraped.scrape()
            # What `increase()` adds up: differences, where a series is new or began anew from 0.
            for labels, value in shown.items():
                began_anew = value < last.get(labels, 0)
                increase += value if began_anew else value - last.get(labels, 0)
                assert not (began_anew and value), "what began anew is to be shown at 0 first"
            last = shown

    assert recorded == increase
