"""Agents that nobody grades: seen in /metrics and in the log, and bounded in both."""

import logging

import pytest

from collector.clock import ManualClock
from collector.telemetry import OVERFLOW, Limits, Metrics, ScoreSeries
from collector.trace import GradedTrace
from processors.criteria import CriteriaSet
from processors.model import AgentIdentity, AgentRun, GradedRun
from tests.support.named_criteria import criteria_with


class Agents:
    """What is counted of runs of agents, by name."""

    def __init__(self, criteria: CriteriaSet) -> None:
        self.metrics = Metrics()
        self.clock = ManualClock()
        self.series = ScoreSeries(self.metrics, self.clock, expiry_seconds=3600.0)
        self.series.set_criteria(criteria)

    def see(self, *names: str) -> None:
        for name in names:
            run = AgentRun(trace_id=bytes(16), span_id=None, agent=AgentIdentity(name=name))
            self.series.record(
                GradedTrace(trace_id=bytes(16), spans=(), runs=(GradedRun(run=run, results=()),))
            )

    def scrape(self) -> list[str]:
        self.series.before_scrape()
        shown = {name: value for (name,), value in self.metrics.agents_without_criteria.values.items()}
        self.series.after_scrape()
        assert {1} >= set(shown.values())
        return sorted(shown)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.__dict__["agents"] for record in caplog.records if "agents" in record.__dict__]
    caplog.clear()
    return lines


def test_an_agent_that_no_pattern_matches_is_shown_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    agents = Agents(criteria_with({"weather": ["order"]}))

    agents.see("weather", "shop", "weather", "shop")

    assert ["shop"] == agents.scrape()
    assert ["shop"] == told(caplog)
    assert [] == told(caplog)


def test_many_come_in_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    agents = Agents(criteria_with({"weather": ["order"]}))

    agents.see(*(f"agent-{number:02}" for number in range(30)))
    assert ["agent-00"] == told(caplog)
    agents.clock.advance(10)
    agents.scrape()
    (line,) = told(caplog)
    assert line == ", ".join(f"agent-{number:02}" for number in range(1, 21)) + " and 9 more"
    agents.clock.advance(10)
    agents.see("weather")
    assert [", ".join(f"agent-{number}" for number in range(21, 30))] == told(caplog)


def test_criteria_that_are_reloaded_count_at_once(caplog: pytest.LogCaptureFixture) -> None:
    agents = Agents(criteria_with({"weather": ["order"]}))
    agents.see("weather", "shop")
    told(caplog)
    agents.clock.advance(10)

    agents.series.set_criteria(criteria_with({"shop": ["order"]}))

    assert ["weather"] == agents.scrape()
    assert ["weather"] == told(caplog)


def test_agents_beyond_the_slots_share_one_series() -> None:
    agents = Agents(criteria_with({"weather": ["order"]}))

    agents.see(*(f"agent-{number}" for number in range(Limits.AGENTS + 5)))

    shown = agents.scrape()
    assert Limits.AGENTS + 1 == len(shown)
    assert OVERFLOW in shown


def test_agents_beyond_the_slots_that_are_graded_are_not_shown() -> None:
    agents = Agents(criteria_with({"agent-*": ["order"]}))

    agents.see(*(f"agent-{number}" for number in range(Limits.AGENTS + 5)))

    assert [] == agents.scrape()


def test_an_agent_that_was_not_seen_for_long_goes() -> None:
    agents = Agents(criteria_with({"weather": ["order"]}))
    agents.see("shop")
    for _ in range(5):
        agents.scrape()
        agents.clock.advance(1800)

    assert [] == agents.scrape()


def test_nothing_is_told_of_agents_that_are_graded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    agents = Agents(criteria_with({"*": ["order"]}))

    agents.see("weather", "shop")

    assert [] == agents.scrape()
    assert [] == told(caplog)
