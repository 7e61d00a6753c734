"""Series in which nothing was counted for long are taken away, and their label values give back their slots.

A series goes only if a scrape showed what it counts a whole expiry ago and shows the same now, and nothing is
held back for it: no increment is lost to whoever scrapes.
"""

from dataclasses import dataclass

from collector.clock import Clock
from collector.telemetry.first_sight import FirstSightCounter, FirstSightHistogram
from collector.telemetry.run_series import (
    AgentSeries,
    EvaluationSeries,
    KnownAgents,
    RunSeries,
    WatchedSeries,
)

MAX_INTERVAL_SECONDS = 60.0
"""How often, at most, idle series are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounters:
    """What runs are counted in."""

    runs: FirstSightCounter
    scores: FirstSightHistogram
    results: FirstSightCounter
    shadow_scores: FirstSightHistogram
    shadow_results: FirstSightCounter
    classifications: FirstSightCounter
    tool_calls: FirstSightCounter

    def release(self, *, everything: bool) -> None:
        """Apply what was held for 15 s, or everything."""
        for counter in self._all():
            counter.release(everything=everything)

    def show(self) -> None:
        """A scrape shows everything as it stands."""
        for counter in self._all():
            counter.show()

    def _all(self) -> tuple[FirstSightCounter | FirstSightHistogram, ...]:
        return (
            self.runs,
            self.scores,
            self.results,
            self.shadow_scores,
            self.shadow_results,
            self.classifications,
            self.tool_calls,
        )


class SeriesExpiry:
    """Takes series of `agents` out of `counters` that were idle for `seconds`.

    The series without optional labels of agents named exactly in criteria stay, as far as criteria are in
    force for them; their versions, tools and classes go like any other series.
    """

    def __init__(self, agents: KnownAgents, counters: RunCounters, clock: Clock, seconds: float) -> None:
        self._agents = agents
        self._counters = counters
        self._clock = clock
        self._seconds = seconds
        self._interval = min(MAX_INTERVAL_SECONDS, seconds / 4)
        self._next = 0.0

    def sweep(self) -> int:
        """Look for idle series, if it is time to; the number of series taken away.

        To be called when a scrape has shown everything as it stands.
        """
        now = self._clock.monotonic()
        if now < self._next:
            return 0
        self._next = now + self._interval
        expired = sum([self._sweep_agent(agent, now) for agent in self._agents.agents.values()])
        if expired:
            self._agents.free_unused()
        return expired

    def _sweep_agent(self, agent: AgentSeries, now: float) -> int:
        counters = self._counters
        expired = 0
        for optional, runs in list(agent.runs.items()):
            lasts = not optional and agent.is_exact
            for name, series in list(runs.evaluations.items()):
                expired += self._sweep_classes(series, now)
                if lasts and name in agent.lasting:
                    continue
                if self._is_idle(series, _total(counters.results, series), now):
                    expired += _removed(counters.scores, counters.results, series)
                    expired += sum(
                        [counters.classifications.remove(pair.labels) for pair in series.classes.values()]
                    )
                    del runs.evaluations[name]
            for name, series in list(runs.shadow.items()):
                if lasts and name in agent.lasting_shadow:
                    continue
                if self._is_idle(series, _total(counters.shadow_results, series), now):
                    expired += _removed(counters.shadow_scores, counters.shadow_results, series)
                    del runs.shadow[name]
            if not lasts and self._is_unused(runs, now):
                expired += counters.runs.remove(runs.labels)
                del agent.runs[optional]
        for key, tool in list(agent.tools.items()):
            if self._is_idle(tool, counters.tool_calls.total(tool.labels), now):
                expired += counters.tool_calls.remove(tool.labels)
                del agent.tools[key]
        return expired

    def _sweep_classes(self, series: EvaluationSeries, now: float) -> int:
        expired = 0
        counter = self._counters.classifications
        for classes, pair in list(series.classes.items()):
            if self._is_idle(pair, counter.total(pair.labels), now):
                expired += counter.remove(pair.labels)
                del series.classes[classes]
        return expired

    def _is_unused(self, runs: RunSeries, now: float) -> bool:
        is_idle = self._is_idle(runs, self._counters.runs.total(runs.labels), now)
        return is_idle and not runs.evaluations and not runs.shadow

    def _is_idle(self, series: WatchedSeries, total: float | None, now: float) -> bool:
        if total is None or total != series.total:
            series.total = -1.0 if total is None else total
            series.idle_since = now
            return False
        return now - series.idle_since >= self._seconds


def _total(results: FirstSightCounter, series: EvaluationSeries) -> float | None:
    """All results of the evaluation, or None while some may be held."""
    sum_of_all = 0.0
    for labels in series.outcomes:
        total = results.total(labels)
        if total is None:
            return None
        sum_of_all += total
    return sum_of_all


def _removed(scores: FirstSightHistogram, results: FirstSightCounter, series: EvaluationSeries) -> int:
    return scores.remove(series.score) + sum([results.remove(labels) for labels in series.outcomes])
