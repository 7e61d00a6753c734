"""From graded traces to series: runs, scores, outcomes and tool calls by agent.

Label values are bounded, every series is shown at 0 before it counts, and series in which nothing is counted
for long are taken away. The tenant would join where a run gets its labels: `KnownAgents.series_of`.
"""

from collections.abc import Sequence

from collector.clock import Clock
from collector.telemetry.evaluation_info import EvaluationInfo
from collector.telemetry.first_sight import FirstSightCounter, FirstSightHistogram
from collector.telemetry.instruments import Exemplar
from collector.telemetry.metrics import Metrics
from collector.telemetry.run_series import AgentSeries, EvaluationSeries, KnownAgents, RunSeries
from collector.telemetry.series_expiry import RunCounters, SeriesExpiry
from collector.trace import GradedTrace
from processors.criteria.agent_criteria import CriteriaSet
from processors.model.agent_run import EVALUATED_CATEGORIES
from processors.model.evaluation_result import EvaluationResult, NotEvaluatedReason, Outcome, Stage
from processors.model.graded_run import GradedRun

DEFAULT_EXPIRY_SECONDS = 86_400.0

_CLASSIFICATIONS = frozenset({"binary-classification", "multiclass-classification"})
_PASS, _FAIL, _ERROR = Outcome.PASS, Outcome.FAIL, Outcome.ERROR
_SHADOW = Stage.SHADOW
_NO_CRITERIA = NotEvaluatedReason.NO_CRITERIA


class ScoreSeries:
    """Counts graded traces into `Metrics`.

    Results in shadow are in series of their own and in no other. Muted results count as ever; when their mute
    ends is a series beside them, for alerts to leave them out until then.

    `record` may leave increments of a new series out of `Metrics` for a while: whoever shows the metrics
    calls `before_scrape` and `after_scrape` around it, and `flush` when nothing more is to come.

    Args:
        metrics: Where everything is counted, made for the labels of `resource_attributes`.
        clock: Says what is new and what is idle.
        resource_attributes: The attributes of agents' resources that are labels.
        expiry_seconds: After how long without a count series are taken away.
    """

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        *,
        resource_attributes: Sequence[str] = (),
        expiry_seconds: float = DEFAULT_EXPIRY_SECONDS,
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._counters = RunCounters(
            runs=FirstSightCounter(metrics.agent_runs, clock),
            scores=FirstSightHistogram(metrics.score, clock),
            results=FirstSightCounter(metrics.results, clock),
            shadow_scores=FirstSightHistogram(metrics.shadow_score, clock),
            shadow_results=FirstSightCounter(metrics.shadow_results, clock),
            classifications=FirstSightCounter(metrics.classifications, clock),
            tool_calls=FirstSightCounter(metrics.tool_calls, clock),
        )
        self._known = KnownAgents(resource_attributes)
        self._expiry = SeriesExpiry(self._known, self._counters, clock, expiry_seconds)
        self._info = EvaluationInfo(metrics.evaluation_info)
        self._criteria = CriteriaSet()
        self._has_criteria = False

    def set_criteria(self, criteria: CriteriaSet) -> None:
        """Give agents named exactly in criteria their series, at 0, and show what is in force for whom.

        Series of the first call count from the first result on; series that a later call adds are new to
        whoever scrapes and wait like any other. What was counted stays until it expires. Gauges of
        evaluations that are not in force any more go at once.
        """
        self._criteria = criteria
        exact = criteria.exact_names()
        self._known.reserve(exact)
        for agent in self._known.agents.values():
            agent.is_exact = False
        for name in exact:
            agent, _ = self._known.agent(name)
            agent.is_exact = True
        for agent in self._known.agents.values():
            self._apply_criteria(agent)
        self._remove_stale_gauges()
        if not self._has_criteria:
            self._has_criteria = True
            self.flush()

    def record(self, trace: GradedTrace) -> None:
        """Count every run, every result and every tool call of the trace.

        The live results of a backfilled trace are counted by outcome in `backfill_results`; nothing of it
        enters any other series.
        """
        if trace.backfill:
            for run in trace.runs:
                for result in run.results:
                    if result.reason is not _NO_CRITERIA and result.stage is not _SHADOW:
                        self._metrics.backfill_results.add(1, result.outcome.value)
            return
        self._counters.release(everything=False)
        for run in trace.runs:
            self._count_run(run)

    def before_scrape(self) -> None:
        """Apply what has been held for long enough; the scrape is to follow at once."""
        self._counters.release(everything=False)
        self._counters.show()

    def after_scrape(self) -> None:
        """Take away what is idle, and apply what was held: everything has been shown as it stood."""
        expired = self._expiry.sweep()
        if expired:
            self._metrics.series_expired.add(expired)
            self._remove_stale_gauges()
        self._counters.release(everything=True)

    def flush(self) -> None:
        """Apply everything now, for the last look at the metrics."""
        self._counters.release(everything=True)

    def _apply_criteria(self, agent: AgentSeries) -> None:
        """Let the evaluations in force for `agent` be seen, and have their series if it is named exactly."""
        sources = () if agent.is_overflow else self._criteria.sources_for(agent.name)
        self._info.show(agent.name, sources)
        agent.lasting = agent.lasting_shadow = frozenset()
        if not agent.is_exact:
            return
        agent.lasting = frozenset(found.name for _, found in sources if found.stage is not _SHADOW)
        agent.lasting_shadow = frozenset(found.name for _, found in sources if found.stage is _SHADOW)
        series = self._known.plain_series(agent)
        self._counters.runs.appear(series.labels)
        for _, evaluation in sources:
            if evaluation.stage is _SHADOW:
                self._appear_in_shadow(series, evaluation.name)
            else:
                self._appear(series, evaluation.name)
                failures = self._metrics.consecutive_failures
                failures.set(failures.value(agent.name, evaluation.name), agent.name, evaluation.name)

    def _agent(self, name: str) -> AgentSeries:
        agent, is_new = self._known.agent(name)
        if is_new:
            self._apply_criteria(agent)
        return agent

    def _appear(self, runs: RunSeries, evaluation: str) -> EvaluationSeries:
        series = runs.evaluations.get(evaluation)
        if series is None:
            series = runs.evaluations[evaluation] = EvaluationSeries(runs.agent, evaluation, runs.optional)
            self._counters.scores.appear(series.score)
            for labels in series.outcomes:
                self._counters.results.appear(labels)
        return series

    def _appear_in_shadow(self, runs: RunSeries, evaluation: str) -> EvaluationSeries:
        series = runs.shadow.get(evaluation)
        if series is None:
            series = runs.shadow[evaluation] = EvaluationSeries(runs.agent, evaluation, runs.optional)
            self._counters.shadow_scores.appear(series.score)
            for labels in series.outcomes:
                self._counters.shadow_results.appear(labels)
        return series

    def _count_run(self, graded: GradedRun) -> None:
        run = graded.run
        counters = self._counters
        known = self._known
        agent = known.agents.get(run.agent.name) or self._agent(run.agent.name)
        series = known.series_of(agent, run)
        counters.runs.add(1, series.labels)
        span_id = run.carrier_span_id or run.span_id or b""
        now = self._clock.unix_nano()
        muted = self._metrics.muted_until.values
        for result in graded.results:
            if result.muted_until_unix_nano or muted:
                self._note_mute(agent.name, result)
            score = result.score
            if result.stage is _SHADOW:
                found = series.shadow.get(result.name) or self._appear_in_shadow(series, result.name)
                counters.shadow_results.add(1, _outcome_labels(found, result.outcome))
                if score is not None:
                    counters.shadow_scores.observe(Exemplar(score, run.trace_id, span_id, now), found.score)
                continue
            if result.reason is not None:
                # Without criteria there is no event, and the evaluation stage has counted the run.
                if result.reason is _NO_CRITERIA:
                    continue
                self._metrics.not_evaluated.add(1, result.reason.value)
            found = series.evaluations.get(result.name) or self._appear(series, result.name)
            counters.results.add(1, _outcome_labels(found, result.outcome))
            if score is not None:
                counters.scores.observe(Exemplar(score, run.trace_id, span_id, now), found.score)
                self._count_failures(agent, result)
                if result.evaluator in _CLASSIFICATIONS:
                    self._count_classes(series, found, result)
        for call in run.tool_calls:
            if call.category in EVALUATED_CATEGORIES:
                status = "error" if call.error is not None else "ok" if call.executed else "not_executed"
                tool = agent.tools.get((call.name, status)) or known.tool_series(agent, call.name, status)
                counters.tool_calls.add(1, tool.labels)

    def _count_failures(self, agent: AgentSeries, result: EvaluationResult) -> None:
        """Count failures in a row; those of agents without a slot would be of different agents in turn."""
        if not agent.is_overflow:
            failures = self._metrics.consecutive_failures.values
            labels = agent.name, result.name
            failures[labels] = failures.get(labels, 0) + 1 if result.outcome is _FAIL else 0

    def _count_classes(self, runs: RunSeries, series: EvaluationSeries, result: EvaluationResult) -> None:
        expected, predicted = result.details.get("expected"), result.details.get("actual")
        if isinstance(expected, str) and isinstance(predicted, str):
            pair = self._known.class_series(runs, series, expected, predicted)
            self._counters.classifications.add(1, pair.labels)

    def _note_mute(self, agent: str, result: EvaluationResult) -> None:
        if result.muted_until_unix_nano:
            self._metrics.muted_until.set(result.muted_until_unix_nano / 1e9, agent, result.name)
        else:
            self._metrics.muted_until.remove(agent, result.name)

    def _remove_stale_gauges(self) -> None:
        """Let gauges go whose agent is not known any more, or whose evaluation is not in force."""
        agents = self._known.agents
        for name in self._info.agents:
            if name not in agents:
                self._info.remove(name)
        in_force = {
            name: {evaluation.name for evaluation in self._criteria.evaluations_for(name)} for name in agents
        }
        for gauge in (self._metrics.consecutive_failures, self._metrics.muted_until):
            for labels in list(gauge.values):
                if labels[1] not in in_force.get(labels[0], ()):
                    gauge.remove(*labels)


def _outcome_labels(series: EvaluationSeries, outcome: Outcome) -> tuple[str, ...]:
    if outcome is _PASS:
        return series.passed
    if outcome is _FAIL:
        return series.failed
    return series.error if outcome is _ERROR else series.not_evaluated
