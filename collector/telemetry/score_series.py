"""Counts graded traces by agent: runs, durations, tokens, scores, outcomes and tool calls."""

import logging
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from collector.clock import Clock
from collector.telemetry.agent_series import AgentSeries, EvaluationSeries, KnownAgents, trimmed
from collector.telemetry.metrics import Labels, Metrics, observed_span
from collector.trace import GradedTrace
from processors.criteria import AgentCriteria, CriteriaSet, Evaluation
from processors.model import EvaluationResult, GradedRun, NotEvaluatedReason, Outcome, Stage

DEFAULT_EXPIRY_SECONDS = 86_400.0

_OPEN_CLASSES = frozenset({"binary-classification"})
CLASSIFIERS = frozenset({"multiclass-classification"}) | _OPEN_CLASSES
"""Evaluators whose details contain classes; those of open ones may be any output, and are content."""
_FAIL = Outcome.FAIL
_SHADOW = Stage.SHADOW
_NO_CRITERIA, _NO_CONTENT = NotEvaluatedReason.NO_CRITERIA, NotEvaluatedReason.CONTENT_NOT_CAPTURED
_MAX_NAMES = 20
_INTERVAL_SECONDS = 10.0

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class ScoreSeries:
    """Counts graded traces into `Metrics`.

    Shadow results are in series of their own and in no other. Muted results count as usual; another series
    has the end of the mute, so that alerts can exclude them until then.

    A scrape shows new series at 0: whatever shows the metrics calls `before_scrape` and `after_scrape` around
    it.
    """

    metrics: Metrics
    clock: Clock
    resource_attributes: Sequence[str] = ()
    """Those that are labels."""
    expiry_seconds: float = DEFAULT_EXPIRY_SECONDS
    """After this time without a count series are removed."""

    def __post_init__(self) -> None:
        self._known = KnownAgents(self.metrics, self.clock, self.resource_attributes, self.expiry_seconds)
        self._without_criteria = _AgentsWithoutCriteria(self.metrics, self.clock)
        self._evaluations_shown: dict[str, frozenset[Labels]] = {}
        self._criteria = CriteriaSet()
        self._has_criteria = False

    def set_criteria(self, criteria: CriteriaSet) -> None:
        """Create the counters of agents named exactly in criteria, and show the evaluations in force.

        Series of the first call count from the first result on; series added later are first shown at 0 like
        any other. Counts remain until they expire. Gauges of evaluations that are no longer in force are
        removed at once.
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
        self._without_criteria.log()
        if not self._has_criteria:
            self._has_criteria = True
            self.flush()

    def record(self, trace: GradedTrace) -> None:
        """Count every run, result and tool call of the trace.

        The live results of a backfilled trace only count by outcome in `backfill_results`.
        """
        if trace.backfill:
            for run in trace.graded_runs:
                for result in run.results:
                    if result.reason is not _NO_CRITERIA and result.stage is not _SHADOW:
                        self.metrics.backfill_results.add(1, result.outcome.value)
            return
        now = self.clock.unix_nano()
        for graded, shown in zip(trace.graded_runs, trace.runs, strict=True):
            self._count_run(graded, shown, now)
        self._without_criteria.log()

    def record_early(self, agent_name: str, evaluation: str) -> None:
        """Count a failure of a run that goes on."""
        agent = self._known.agents.get(agent_name) or self._agent(agent_name)
        self._known.early_series(agent, evaluation).count()

    def before_scrape(self) -> None:
        """A scrape is to follow at once."""
        self._known.new.before_scrape()
        self._without_criteria.log()

    def after_scrape(self) -> None:
        """Everything was shown as it stood: remove what is idle, show what new series count."""
        expired = self._known.sweep()
        if expired:
            self.metrics.series_expired.add(expired)
            self._remove_stale_gauges()
        self.flush()

    def flush(self) -> None:
        """Let the next scrape show every series as it counts, the last one before the process ends."""
        self._known.new.after_scrape()

    def _apply_criteria(self, agent: AgentSeries) -> None:
        """Show the evaluations in force for `agent`, and create their series if it is named exactly."""
        sources = () if agent.is_overflow else self._criteria.sources_for(agent.name)
        self._show_evaluations(agent.name, sources)
        self._without_criteria.note(agent.name, has_evaluations=bool(sources) or agent.is_overflow)
        keys = [(evaluation.stage is _SHADOW, evaluation.name) for _, evaluation in sources]
        agent.lasting = frozenset(keys if agent.is_exact else ())
        if not agent.is_exact:
            return
        series = self._known.plain_series(agent)
        failures = self.metrics.consecutive_failures
        for _, evaluation in sources:
            if evaluation.early:
                self._known.early_series(agent, evaluation.name)
        for in_shadow, name in keys:
            self._known.evaluation_series(series, name, in_shadow=in_shadow)
            if not in_shadow:
                failures.set(failures.value(agent.name, name), agent.name, name)

    def _show_evaluations(self, agent: str, sources: Iterable[tuple[AgentCriteria, Evaluation]]) -> None:
        """Show the live evaluations of `sources` for `agent`; a changed one is a new series."""
        shown = frozenset(
            _info_labels(agent, source, evaluation)
            for source, evaluation in sources
            if evaluation.stage is Stage.LIVE
        )
        for labels in self._evaluations_shown.pop(agent, frozenset()) - shown:
            self.metrics.evaluation_info.remove(*labels)
        for labels in shown:
            self.metrics.evaluation_info.set(1, *labels)
        if shown:
            self._evaluations_shown[agent] = shown

    def _agent(self, name: str) -> AgentSeries:
        agent, is_new = self._known.agent(name)
        if is_new:
            self._apply_criteria(agent)
        return agent

    def _count_run(self, graded: GradedRun, shown: GradedRun, now: int) -> None:
        run = graded.run
        known = self._known
        agent = known.agents.get(run.agent.name) or self._agent(run.agent.name)
        series = known.series_of(agent, run)
        series.count()
        if agent.is_overflow and not self._criteria.evaluations_for(run.agent.name):
            self._without_criteria.note(agent.name, has_evaluations=False)
        span = observed_span(run.trace_id, run.carrier_span_id or run.span_id or b"", now)
        if run.has_all_spans:  # else time and tokens may be missing
            series.observe_run(run, span)
        evaluations, muted = series.evaluations, self.metrics.muted_until.values
        # Agents without a slot share their series: failures in a row mean nothing there.
        in_a_row = None if agent.is_overflow else self.metrics.consecutive_failures.values
        lacks_content = False
        for place, result in enumerate(graded.results):
            if result.muted_until_unix_nano or muted:
                self._note_mute(agent.name, result)
            in_shadow = result.stage is _SHADOW
            if result.reason is not None and not in_shadow:
                # Without criteria there is no event, and the evaluation stage has counted the run.
                if result.reason is _NO_CRITERIA:
                    continue
                self.metrics.not_evaluated.add(1, result.reason.value)
                lacks_content |= result.reason is _NO_CONTENT and result.counts
            outcome = evaluations.get((in_shadow, result.name)) or known.evaluation_series(
                series, result.name, in_shadow=in_shadow
            )
            outcome.count_result(result.outcome, result.score, span)
            if result.score is not None and not in_shadow:
                if in_a_row is not None:
                    labels = outcome.plain_labels
                    in_a_row[labels] = in_a_row.get(labels, 0) + 1 if result.outcome is _FAIL else 0
                if result.evaluator in CLASSIFIERS:
                    is_open = result.evaluator in _OPEN_CLASSES
                    self._count_classes(outcome, shown.results[place] if is_open else result)
        if lacks_content or self.metrics.agents_without_content.values:
            self._note_content(agent.name, run.dialect, lacks_content)
        for tool, count in run.call_counts.items():
            (agent.tools.get(tool) or known.tool_series(agent, *tool)).count(count)

    def _note_content(self, agent: str, dialect: str, is_missing: bool) -> None:
        if is_missing:
            self.metrics.agents_without_content.set(1, agent, dialect)
        else:
            self.metrics.agents_without_content.remove(agent, dialect)

    def _count_classes(self, series: EvaluationSeries, result: EvaluationResult) -> None:
        expected, predicted = result.details.get("expected"), result.details.get("actual")
        if isinstance(expected, str) and isinstance(predicted, str):
            self._known.class_series(series, expected, predicted).count()

    def _note_mute(self, agent: str, result: EvaluationResult) -> None:
        if result.muted_until_unix_nano:
            self.metrics.muted_until.set(result.muted_until_unix_nano / 1e9, agent, result.name)
        else:
            self.metrics.muted_until.remove(agent, result.name)

    def _remove_stale_gauges(self) -> None:
        """Remove gauges whose agent has no series any more, or whose evaluation is not in force."""
        agents = self._known.agents
        self._without_criteria.keep(agents)
        for name in list(self._evaluations_shown):
            if name not in agents:
                self._show_evaluations(name, ())
        for labels in list(self.metrics.agents_without_content.values):
            if labels[0] not in agents:
                self.metrics.agents_without_content.remove(*labels)
        in_force = {
            name: {evaluation.name for evaluation in self._criteria.evaluations_for(name)} for name in agents
        }
        for gauge in (self.metrics.consecutive_failures, self.metrics.muted_until):
            for labels in list(gauge.values):
                if labels[1] not in in_force.get(labels[0], ()):
                    gauge.remove(*labels)


def _info_labels(agent: str, source: AgentCriteria, evaluation: Evaluation) -> Labels:
    evaluator = evaluation.evaluator
    required = (agent, evaluation.name, evaluator.id, evaluator.version)
    optional = trimmed((source.owner, source.contact))
    return *required, evaluation.criteria_hash, evaluation.severity.value, *optional


class _AgentsWithoutCriteria:
    """The agents to which no evaluation applies, by their bounded label values.

    Each is logged once, several per line, and one line in ten seconds at most.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._shown = metrics.agents_without_criteria
        self._clock = clock
        self._unlogged: dict[str, None] = {}
        self._next_line = -_INTERVAL_SECONDS

    def note(self, agent: str, *, has_evaluations: bool) -> None:
        """Show whether anything applies to `agent`."""
        if has_evaluations:
            self._shown.remove(agent)
            self._unlogged.pop(agent, None)
        elif not self._shown.value(agent):
            self._shown.set(1, agent)
            self._unlogged[agent] = None

    def keep(self, agents: Container[str]) -> None:
        """Remove those that are not in `agents`."""
        for (agent,) in list(self._shown.values):
            if agent not in agents:
                self._shown.remove(agent)
                self._unlogged.pop(agent, None)

    def log(self) -> None:
        """Log the names that were not logged yet, if a line is due."""
        if not self._unlogged or self._clock.monotonic() < self._next_line:
            return
        self._next_line = self._clock.monotonic() + _INTERVAL_SECONDS
        names = list(self._unlogged)[:_MAX_NAMES]
        for name in names:
            del self._unlogged[name]
        left = f" and {len(self._unlogged)} more" if self._unlogged else ""
        _logger.warning(
            "No evaluation applies to these agents. Add builtin to processors.evaluation.criteria to grade "
            "every agent by the checks that need no reference.",
            extra={"agents": ", ".join(names) + left},
        )
