"""From graded traces to series: scores, outcomes and tool calls by agent.

Label values are bounded, and every series is shown at 0 before it counts. Labels from resource attributes,
the agent's version and the tenant would join in `_count_run`, the one place that turns a run into labels.
"""

from collections.abc import Mapping, Sequence

from collector.clock import Clock
from collector.telemetry.first_sight import FirstSightCounter, FirstSightHistogram
from collector.telemetry.label_values import OVERFLOW, LabelValues
from collector.telemetry.metrics import Exemplar, Metrics
from collector.trace import GradedRun, GradedTrace
from processors.agent_run import EVALUATED_CATEGORIES
from processors.evaluation_result import EvaluationResult, NotEvaluatedReason, Outcome, Stage

MAX_AGENTS = 1000
"""Agents with series of their own beside those named exactly in criteria."""

MAX_TOOLS_PER_AGENT = 100
MAX_TOOLS = 5000
"""Pairs of agent and tool, over all agents not named exactly; beyond either bound tools share one value."""

_OUTCOMES = tuple(outcome.value for outcome in Outcome)


class ScoreSeries:
    """Counts graded traces into `Metrics`.

    Results in shadow are in series of their own and in no other. Muted results count as ever; when their mute
    ends is a series beside them, for alerts to leave them out until then.

    `record` may leave increments of a new series out of `Metrics` for a while: whoever shows the metrics
    calls `before_scrape` and `after_scrape` around it, and `flush` when nothing more is to come.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._scores = FirstSightHistogram(metrics.score, clock)
        self._results = FirstSightCounter(metrics.results, clock)
        self._shadow_scores = FirstSightHistogram(metrics.shadow_score, clock)
        self._shadow_results = FirstSightCounter(metrics.shadow_results, clock)
        self._tool_calls = FirstSightCounter(metrics.tool_calls, clock)
        self._agents = LabelValues(MAX_AGENTS)
        self._tools: dict[str, LabelValues] = {}
        self._tool_labels: dict[tuple[str, str], str] = {}
        self._exact_agents: set[str] = set()
        self._has_criteria = False

    def set_criteria(
        self,
        evaluations: Mapping[str, Sequence[str]],
        *,
        shadow: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Give agents named exactly in criteria their series, at 0.

        Series of the first call count from the first result on; series that a later call adds are new to
        whoever scrapes and wait like any other. Nothing is taken away: a series that was counted stays.

        Args:
            evaluations: The names of the live evaluations that apply to each agent named exactly, those from
                patterns included.
            shadow: The same of those in shadow.
        """
        self._agents.reserve(evaluations)
        for name, evaluation_names in evaluations.items():
            agent = self._agents.value(name)
            self._exact_agents.add(agent)
            for evaluation in evaluation_names:
                self._appear(agent, evaluation)
        for name, evaluation_names in (shadow or {}).items():
            self._agents.reserve((name,))
            for evaluation in evaluation_names:
                self._appear_in_shadow(self._agents.value(name), evaluation)
        if not self._has_criteria:
            self._has_criteria = True
            self.flush()

    def record(self, trace: GradedTrace) -> None:
        """Count every result and every tool call of the trace.

        A backfilled trace is counted by outcome in `backfill_results` and enters no other series.
        """
        if trace.backfill:
            for run in trace.runs:
                for result in run.results:
                    if result.reason is not NotEvaluatedReason.NO_CRITERIA:
                        self._metrics.backfill_results.add(1, result.outcome.value)
            return
        self._release(everything=False)
        for run in trace.runs:
            self._count_run(run)

    def before_scrape(self) -> None:
        """Apply what has been held for long enough."""
        self._release(everything=False)

    def after_scrape(self) -> None:
        """Apply what was held: the new series have been shown at 0."""
        self._release(everything=True)

    def flush(self) -> None:
        """Apply everything now, for the last look at the metrics."""
        self._release(everything=True)

    def _release(self, *, everything: bool) -> None:
        self._scores.release(everything=everything)
        self._results.release(everything=everything)
        self._shadow_scores.release(everything=everything)
        self._shadow_results.release(everything=everything)
        self._tool_calls.release(everything=everything)

    def _appear(self, agent: str, evaluation: str) -> None:
        self._scores.appear((agent, evaluation))
        for outcome in _OUTCOMES:
            self._results.appear((agent, evaluation, outcome))

    def _appear_in_shadow(self, agent: str, evaluation: str) -> None:
        self._shadow_scores.appear((agent, evaluation))
        for outcome in _OUTCOMES:
            self._shadow_results.appear((agent, evaluation, outcome))

    def _count_run(self, graded: GradedRun) -> None:
        run = graded.run
        agent = self._agents.value(run.agent.name)
        span_id = run.carrier_span_id or run.span_id or b""
        now = self._clock.unix_nano()
        known = self._metrics.score.values
        muted = self._metrics.muted_until.values
        for result in graded.results:
            if result.muted_until_unix_nano or (agent, result.name) in muted:
                self._note_mute(agent, result)
            if result.stage is Stage.SHADOW:
                self._count_in_shadow(agent, result)
                if result.score is not None:
                    exemplar = Exemplar(result.score, run.trace_id, span_id, now)
                    self._shadow_scores.observe(exemplar, (agent, result.name))
                continue
            if result.reason is not None:
                # Without criteria there is no event, and the evaluation stage has counted the run.
                if result.reason is NotEvaluatedReason.NO_CRITERIA:
                    continue
                self._metrics.not_evaluated.add(1, result.reason.value)
            if (agent, result.name) not in known:
                self._appear(agent, result.name)
            self._results.add(1, (agent, result.name, result.outcome.value))
            if result.score is not None:
                self._scores.observe(Exemplar(result.score, run.trace_id, span_id, now), (agent, result.name))
        for call in run.tool_calls:
            if call.category in EVALUATED_CATEGORIES:
                status = "error" if call.error is not None else "ok" if call.executed else "not_executed"
                self._tool_calls.add(1, (agent, self._tool(agent, call.name), status))

    def _count_in_shadow(self, agent: str, result: EvaluationResult) -> None:
        if (agent, result.name) not in self._metrics.shadow_score.values:
            self._appear_in_shadow(agent, result.name)
        self._shadow_results.add(1, (agent, result.name, result.outcome.value))

    def _note_mute(self, agent: str, result: EvaluationResult) -> None:
        if result.muted_until_unix_nano:
            self._metrics.muted_until.set(result.muted_until_unix_nano / 1e9, agent, result.name)
        else:
            self._metrics.muted_until.remove(agent, result.name)

    def _tool(self, agent: str, name: str) -> str:
        label = self._tool_labels.get((agent, name))
        if label is not None:
            return label
        if len(self._tool_labels) >= MAX_TOOLS and agent not in self._exact_agents:
            return OVERFLOW
        label = self._tools.setdefault(agent, LabelValues(MAX_TOOLS_PER_AGENT)).value(name)
        if label != OVERFLOW:
            self._tool_labels[agent, name] = label
        return label
