"""From graded traces to series: runs, their times and tokens, scores, outcomes and tool calls by agent.

The tenant would join where a run gets its labels: `KnownAgents.series_of`.
"""

import logging
from collections.abc import Container, Iterable, Sequence

from collector.clock import Clock
from collector.telemetry.agent_series import AgentSeries, EvaluationSeries, KnownAgents, RunSeries
from collector.telemetry.metrics import Exemplar, Labels, Metrics
from collector.trace import GradedTrace
from processors.criteria import AgentCriteria, CriteriaSet, Evaluation
from processors.model import (
    EvaluationResult,
    GradedRun,
    NotEvaluatedReason,
    Outcome,
    Stage,
)

DEFAULT_EXPIRY_SECONDS = 86_400.0

_DECLARED_CLASSES = frozenset({"multiclass-classification"})
_OPEN_CLASSES = frozenset({"binary-classification"})
"""Evaluators whose details name a class; that of an open one may be any output, and is content."""
CLASSIFIERS = _DECLARED_CLASSES | _OPEN_CLASSES
_FAIL = Outcome.FAIL
_SHADOW = Stage.SHADOW
_NO_CRITERIA = NotEvaluatedReason.NO_CRITERIA
_MAX_NAMES = 20
_INTERVAL_SECONDS = 10.0

_logger = logging.getLogger(__name__)


class ScoreSeries:
    """Counts graded traces into `Metrics`.

    Results in shadow are in series of their own and in no other. Muted results count as ever; when their mute
    ends is a series beside them, for alerts to leave them out until then.

    A scrape shows new series at 0: whatever shows the metrics calls `before_scrape` and `after_scrape` around
    it.

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
        self._known = KnownAgents(metrics, clock, resource_attributes, expiry_seconds)
        self._without_criteria = _AgentsWithoutCriteria(metrics, clock)
        self._evaluations_shown: dict[str, frozenset[Labels]] = {}
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
        self._without_criteria.tell()
        if not self._has_criteria:
            self._has_criteria = True
            self.flush()

    def record(self, trace: GradedTrace) -> None:
        """Count every run with what it took, every result and every tool call of the trace.

        The live results of a backfilled trace are counted by outcome in `backfill_results`; nothing of it
        enters any other series.
        """
        if trace.backfill:
            for run in trace.graded_runs:
                for result in run.results:
                    if result.reason is not _NO_CRITERIA and result.stage is not _SHADOW:
                        self._metrics.backfill_results.add(1, result.outcome.value)
            return
        for graded, shown in zip(trace.graded_runs, trace.runs, strict=True):
            self._count_run(graded, shown)
        self._without_criteria.tell()

    def before_scrape(self) -> None:
        """A scrape is to follow at once."""
        self._known.new.before_scrape()
        self._without_criteria.tell()

    def after_scrape(self) -> None:
        """Everything was shown as it stood: remove what is idle, show what new series count."""
        expired = self._known.sweep()
        if expired:
            self._metrics.series_expired.add(expired)
            self._remove_stale_gauges()
        self.flush()

    def flush(self) -> None:
        """Let the next scrape show every series as it counts, the last one before the process ends."""
        self._known.new.after_scrape()

    def _apply_criteria(self, agent: AgentSeries) -> None:
        """Let the evaluations in force for `agent` be seen, and have their series if it is named exactly."""
        sources = () if agent.is_overflow else self._criteria.sources_for(agent.name)
        self._show_evaluations(agent.name, sources)
        self._without_criteria.note(agent.name, has_evaluations=bool(sources) or agent.is_overflow)
        agent.lasting = frozenset()
        if not agent.is_exact:
            return
        agent.lasting = frozenset((found.stage is _SHADOW, found.name) for _, found in sources)
        series = self._known.plain_series(agent)
        failures = self._metrics.consecutive_failures
        for in_shadow, name in ((found.stage is _SHADOW, found.name) for _, found in sources):
            self._known.evaluation_series(series, name, in_shadow=in_shadow)
            if not in_shadow:
                failures.set(failures.value(agent.name, name), agent.name, name)

    def _show_evaluations(self, agent: str, sources: Iterable[tuple[AgentCriteria, Evaluation]]) -> None:
        """Make the live evaluations among `sources` the ones that are shown of `agent`.

        A changed evaluation is a new series, and its old one goes.
        """
        shown = frozenset(
            _info_labels(agent, source, evaluation)
            for source, evaluation in sources
            if evaluation.stage is Stage.LIVE
        )
        for labels in self._evaluations_shown.pop(agent, frozenset()) - shown:
            self._metrics.evaluation_info.remove(*labels)
        for labels in shown:
            self._metrics.evaluation_info.set(1, *labels)
        if shown:
            self._evaluations_shown[agent] = shown

    def _agent(self, name: str) -> AgentSeries:
        agent, is_new = self._known.agent(name)
        if is_new:
            self._apply_criteria(agent)
        return agent

    def _count_run(self, graded: GradedRun, shown: GradedRun) -> None:
        run = graded.run
        known = self._known
        agent = known.agents.get(run.agent.name) or self._agent(run.agent.name)
        series = known.series_of(agent, run)
        series.count()
        if agent.is_overflow and not self._criteria.evaluations_for(run.agent.name):
            self._without_criteria.note(agent.name, has_evaluations=False)
        span_id = run.carrier_span_id or run.span_id or b""
        now = self._clock.unix_nano()
        if run.has_all_spans:  # else time and tokens may be missing
            series.observe_run(run, span_id, now)
        muted = self._metrics.muted_until.values
        for place, result in enumerate(graded.results):
            if result.muted_until_unix_nano or muted:
                self._note_mute(agent.name, result)
            in_shadow = result.stage is _SHADOW
            if result.reason is not None and not in_shadow:
                # Without criteria there is no event, and the evaluation stage has counted the run.
                if result.reason is _NO_CRITERIA:
                    continue
                self._metrics.not_evaluated.add(1, result.reason.value)
            found = series.evaluations.get((in_shadow, result.name)) or known.evaluation_series(
                series, result.name, in_shadow=in_shadow
            )
            score = None if result.score is None else Exemplar(result.score, run.trace_id, span_id, now)
            found.count_result(result.outcome, score)
            if score is not None and not in_shadow:
                self._count_failures(agent, result)
                if result.evaluator in _DECLARED_CLASSES:
                    self._count_classes(series, found, result)
                elif result.evaluator in _OPEN_CLASSES:
                    self._count_classes(series, found, shown.results[place])
        for (name, ended), count in run.call_counts.items():
            (agent.tools.get((name, ended)) or known.tool_series(agent, name, ended)).count(count)

    def _count_failures(self, agent: AgentSeries, result: EvaluationResult) -> None:
        """Count failures in a row; those of agents without a slot would be of different agents in turn."""
        if not agent.is_overflow:
            failures = self._metrics.consecutive_failures.values
            labels = agent.name, result.name
            failures[labels] = failures.get(labels, 0) + 1 if result.outcome is _FAIL else 0

    def _count_classes(self, runs: RunSeries, series: EvaluationSeries, result: EvaluationResult) -> None:
        expected, predicted = result.details.get("expected"), result.details.get("actual")
        if isinstance(expected, str) and isinstance(predicted, str):
            self._known.class_series(runs, series, expected, predicted).count()

    def _note_mute(self, agent: str, result: EvaluationResult) -> None:
        if result.muted_until_unix_nano:
            self._metrics.muted_until.set(result.muted_until_unix_nano / 1e9, agent, result.name)
        else:
            self._metrics.muted_until.remove(agent, result.name)

    def _remove_stale_gauges(self) -> None:
        """Let gauges go whose agent is not known any more, or whose evaluation is not in force."""
        agents = self._known.agents
        self._without_criteria.keep(agents)
        for name in list(self._evaluations_shown):
            if name not in agents:
                self._show_evaluations(name, ())
        in_force = {
            name: {evaluation.name for evaluation in self._criteria.evaluations_for(name)} for name in agents
        }
        for gauge in (self._metrics.consecutive_failures, self._metrics.muted_until):
            for labels in list(gauge.values):
                if labels[1] not in in_force.get(labels[0], ()):
                    gauge.remove(*labels)


def _info_labels(agent: str, source: AgentCriteria, evaluation: Evaluation) -> Labels:
    required = (
        agent,
        evaluation.name,
        evaluation.evaluator.id,
        evaluation.evaluator.version,
        evaluation.criteria_hash,
        evaluation.severity.value,
    )
    if source.contact:
        return *required, source.owner, source.contact
    return (*required, source.owner) if source.owner else required


class _AgentsWithoutCriteria:
    """Knows the agents to which no evaluation applies; their names are label values, which are bounded.

    The log names each once, some of them in a line and a line in ten seconds at most.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._shown = metrics.agents_without_criteria
        self._clock = clock
        self._untold: dict[str, None] = {}
        self._next_line = -_INTERVAL_SECONDS

    def note(self, agent: str, *, has_evaluations: bool) -> None:
        """Show whether anything applies to `agent`."""
        if has_evaluations:
            self._shown.remove(agent)
            self._untold.pop(agent, None)
        elif not self._shown.value(agent):
            self._shown.set(1, agent)
            self._untold[agent] = None

    def keep(self, agents: Container[str]) -> None:
        """Forget those that are not among `agents`."""
        for (agent,) in list(self._shown.values):
            if agent not in agents:
                self._shown.remove(agent)
                self._untold.pop(agent, None)

    def tell(self) -> None:
        """Log the names that were not told yet, if it is time for a line."""
        if not self._untold or self._clock.monotonic() < self._next_line:
            return
        self._next_line = self._clock.monotonic() + _INTERVAL_SECONDS
        names = list(self._untold)[:_MAX_NAMES]
        for name in names:
            del self._untold[name]
        left = f" and {len(self._untold)} more" if self._untold else ""
        _logger.warning(
            "No evaluation applies to these agents. With builtin in processors.evaluation.criteria every "
            "agent gets the checks that need no reference.",
            extra={"agents": ", ".join(names) + left},
        )
