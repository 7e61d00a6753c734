"""The alerts: on scores, on objectives, on versions, on what gives no verdicts, on the fleet, on tracegrade.

Each is a row of what it tells and when. Expressions and texts leave open what `Blanks` fills in; they hold
nothing that users wrote.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent

from collector.tools.alerting.objectives import PlacedObjective
from collector.tools.alerting.series import (
    ACTIVE_AGENTS,
    AGENT,
    CHANGED,
    ERRORS,
    EVALUATION,
    INFO,
    MUTED,
    NOT_EVALUATED,
    OBJECTIVE,
    OUTCOMES,
    PREVIOUS,
    PREVIOUS_RESULTS,
    REGRESSING_AGENTS,
    RESULTS,
    ROUTING,
    RUNS,
    SHADOW,
    SHADOW_FAILURE_RATIO,
    SHADOW_RESULTS,
    UNCONDITIONAL,
    VERSION,
    VERSION_WINDOWS,
    Rule,
    baseline_drop,
    changed_within,
    failure_ratio,
    mean,
    promql,
    results,
    standard_error,
    variance,
    version_drop,
    week_drop,
)
from collector.tools.alerting.windows import Blanks

RUNBOOK_BASE = "https://github.com/tracegrade/tracegrade/blob/main/docs/runbooks.md"
DASHBOARD_BASE = "http://localhost:3000"

BELOW_BASELINE = "AgentEvaluationScoreBelowBaseline"
REGRESSION = "AgentEvaluationScoreRegression"
BURN = "AgentEvaluationObjectiveBurn"
WORSE = "AgentVersionWorseThanPrevious"

JOB = "tracegrade"
"""The scrape job of the service."""

_WHO = "{{ $labels.gen_ai_evaluation_name }} of {{ $labels.gen_ai_agent_name }}"

_VARIABLES = {
    "job": "job",
    "agent": "gen_ai_agent_name",
    "evaluation": "gen_ai_evaluation_name",
    "version": VERSION,
    "instance": "instance",
}
_DASHBOARDS = {
    "evaluation": ("one-agent", "job", "agent", "evaluation"),
    "version": ("one-agent", "job", "agent", "evaluation", "version"),
    "agent": ("one-agent", "job", "agent"),
    "fleet": ("agent-quality", "job"),
    "service": ("service-health", "job"),
    "instance": ("service-health", "job", "instance"),
}
"""What an alert can be about, with the dashboard that shows it and the variables that are set there."""


@dataclass(frozen=True, slots=True)
class AlertLinks:
    """Where runbooks and dashboards are. Texts may hold Prometheus templates."""

    runbook_base: str = RUNBOOK_BASE
    dashboard_base: str = DASHBOARD_BASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A condition that people are told of once it has held for the duration `hold` (empty: at once).

    `about` is a key of `_DASHBOARDS`. Without the label `severity` that of the evaluation counts.
    """

    name: str
    about: str = "evaluation"
    expression: str
    hold: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    summary: str
    description: str

    def rule(self, blanks: Blanks, links: AlertLinks) -> Rule:
        """The rule, with everything filled in."""
        fill = blanks.fill
        board, *variables = _DASHBOARDS[self.about]
        query = "&".join(f"var-{name}={{{{ $labels.{_VARIABLES[name]} | urlquery }}}}" for name in variables)
        return {
            "alert": self.name,
            "expr": fill(promql(self.expression)),
            "for": fill(self.hold),
            "labels": {name: fill(value) for name, value in self.labels.items()},
            "annotations": {
                "summary": fill(self.summary),
                "description": fill(self.description),
                "runbook_url": f"{links.runbook_base}#{self.name.lower()}",
                "dashboard_url": f"{links.dashboard_base.rstrip('/')}/d/tracegrade-{board}?{query}",
            },
        }


@dataclass(frozen=True, slots=True)
class BurnPair:
    """A long and a short window and by how much the budget is burnt too fast over both, for how long.

    A fast pair asks of people what the objective or the evaluation says, another one is always a ticket.
    """

    long: str
    short: str
    factor: float
    hold: str
    is_fast: bool

    def threshold(self, target: float) -> float:
        """The share of failures above which the budget of an objective burns too fast."""
        return round(self.factor * (1 - target), 10)

    def can_fire(self, target: float) -> bool:
        """Whether there can be such a share of failures."""
        return self.threshold(target) < 1


PAIRS = (
    BurnPair("1h", "5m", 14.4, "2m", is_fast=True),
    BurnPair("6h", "30m", 6.0, "15m", is_fast=True),
    BurnPair("1d", "2h", 3.0, "1h", is_fast=False),
    BurnPair("3d", "6h", 1.0, "3h", is_fast=False),
)
"""The windows and factors of multi-window burn-rate alerts for a budget of 30 days."""


def agent_alerts(
    windows: Sequence[str], objectives: Sequence[PlacedObjective], *, has_unconditional: bool
) -> list[Alert]:
    """The alerts on agents, with mean scores looked at over each of `windows`.

    There is one on single silent evaluations where some are known to apply to every run.
    """
    return [
        *map(_below_baseline, windows),
        *map(_regression, windows),
        _rate_change("advisory", failure_ratio("1h"), results("1h"), "advisory"),
        _rate_change("shadow", SHADOW_FAILURE_RATIO, SHADOW_RESULTS, "page|ticket|advisory"),
        *_burns(objectives),
        *map(_worse, VERSION_WINDOWS),
        _SILENT,
        *([_SILENT_EVALUATION] if has_unconditional else []),
        *_WITHOUT_VERDICTS,
    ]


def unreachable(placed: PlacedObjective, pairs: Iterable[BurnPair] = PAIRS) -> list[str]:
    """Which pairs can never fire for an objective, a line for people each."""
    budget = 1 - placed.objective.target
    return [
        f"{BURN} over {pair.long} and {pair.short} can never fire for {placed.agent.text}: "
        f"{placed.evaluation.text}: {pair.factor:g} times the budget of {budget:.4g} is "
        f"{pair.threshold(placed.objective.target):.4g}, and no share of failures is larger than 1"
        for pair in pairs
        if not pair.can_fire(placed.objective.target)
    ]


def _condition(
    *terms: str,
    severities: str = "page|ticket",
    only: Sequence[str] = (),
    unless: Sequence[str] = (),
    ignoring: str = "",
) -> str:
    """The first of `terms` where all others hold too, with `severity`, `owner` and `contact`.

    Terms have all labels in common but those that `ignoring` names. Those evaluations stay that have one of
    `severities`, that every one of `only` selects, and that are neither muted nor selected by `unless`.
    """
    operator = f"and ignoring ({ignoring})" if ignoring else "and"
    text = f"\n{operator}\n".join(indent(promql(term), "  ") for term in terms)
    text += "".join(f"\nand on ({EVALUATION})\n  {selected}" for selected in only)
    text += "".join(f"\nunless on ({EVALUATION})\n  {selected}" for selected in (MUTED, *unless))
    matches = "=~" if "|" in severities else "="
    return (
        f"  (\n{indent(text, '    ')}\n  )\n* on ({EVALUATION}) group_left (severity, owner, contact)\n"
        f'  {ROUTING}{{severity{matches}"{severities}"}}'
    )


# Mean scores. A drop counts when it is large (`score_drop`) and no chance (`standard_errors`), with enough
# results on both sides. The standard error is the largest that scores in [0, 1] with that mean can have:
# sqrt(m (1 - m) / n). The comparison with last week heals itself after a week, when the bad week is what it
# compares with; the baseline does not.


def _below_baseline(window: str) -> Alert:
    drop = baseline_drop(window)
    return Alert(
        name=BELOW_BASELINE,
        expression=_condition(
            f"{drop} > <score_drop>",
            f"{drop} > ignoring (release) <standard_errors> * {standard_error(window)}",
            f"{results(window)} >= <min_results>",
            unless=[changed_within(window)],
            ignoring="release",
        ),
        hold="<15m>" if window == "1h" else "<1h>",
        labels={"window": f"<{window}>"},
        summary=f"{_WHO} scores below its baseline",
        description=f'The mean score over <{window}> is {{{{ printf "%.2f" $value }}}} below that of '
        "release {{ $labels.release }}.",
    )


def _regression(window: str) -> Alert:
    before = variance(f"({mean(window)} offset <7d>)", f"({results(window)} offset <7d>)")
    return Alert(
        name=REGRESSION,
        expression=_condition(
            f"{week_drop(window)} > <score_drop>",
            f"{week_drop(window)} > <standard_errors> * sqrt({standard_error(window)} ^ 2 + {before})",
            f"{results(window)} >= <min_results>",
            f"({results(window)} offset <7d>) >= <min_results>",
            unless=[changed_within(window, "7d")],
        ),
        hold="<15m>" if window == "1h" else "<1h>",
        labels={"window": f"<{window}>"},
        summary=f"{_WHO} scores lower than last week",
        description=f'The mean score over <{window}> is {{{{ printf "%.2f" $value }}}} below that of the '
        "same time <7d> ago.",
    )


def _rate_change(kind: str, ratio: str, count: str, severities: str) -> Alert:
    """On evaluations that only have their rate watched: advisory ones, and those in shadow."""
    rise = f"({ratio} - ({ratio} offset <7d>))"
    return Alert(
        name=REGRESSION,
        expression=_condition(
            f"{rise} > <rate_change>",
            f"""
            {rise} > <standard_errors> * sqrt(
                {variance(ratio, count)}
              +
                {variance(f"({ratio} offset <7d>)", f"({count} offset <7d>)")}
            )
            """,
            f"{count} >= <min_results>",
            f"({count} offset <7d>) >= <min_results>",
            unless=[changed_within("1h", "7d")],
            severities=severities,
        ),
        hold="<15m>",
        labels={"severity": "ticket", "window": "<1h>", "watched": kind},
        summary=f"The {kind} evaluation {_WHO} fails more often than last week",
        description="Its share of failures over <1h> is {{ $value | humanizePercentage }} of all runs above "
        "that of the same time <7d> ago.",
    )


def _worse(window: str) -> Alert:
    """On a new version of an agent that scores worse than the version before it."""
    of, drop = "agent_version", version_drop(window)
    return Alert(
        name=WORSE,
        about="version",
        expression=_condition(
            f"{drop} > <score_drop>",
            f"""
            {drop} > ignoring (previous_version) <standard_errors> * sqrt(
                {variance(mean(window, of), results(window, of))}
              + ignoring ({VERSION}) group_left ()
                max without (previous_version) ({variance(PREVIOUS, PREVIOUS_RESULTS)})
            )
            """,
            f"{results(window, of)} >= <min_results>",
            unless=[changed_within("1h", "7d")],
            ignoring="previous_version",
        ),
        hold="<15m>",
        labels={"window": f"<{window}>"},
        summary=f"Version {{{{ $labels.{VERSION} }}}} of {{{{ $labels.gen_ai_agent_name }}}} is worse in "
        "{{ $labels.gen_ai_evaluation_name }}",
        description=f'The mean score over <{window}> is {{{{ printf "%.2f" $value }}}} below that of '
        "version {{ $labels.previous_version }}.",
    )


# Objectives. Failures that use up the budget `1 - target` too fast, over two windows each: the failure share
# of the long one says that it matters, that of the short one that it goes on. A pair whose factor times the
# budget is 1 or more asks for more failures than there are results: it can never fire, and no rule is made.


def _burns(objectives: Sequence[PlacedObjective]) -> list[Alert]:
    """An alert for every different target, every pair that can fire for it, and every severity asked for."""
    severities: dict[float, dict[str | None, None]] = {}
    for placed in objectives:
        severities.setdefault(placed.objective.target, {})[placed.objective.severity] = None
    return [
        _burn(target, pair, severity)
        for target, asked in severities.items()
        for pair in PAIRS
        if pair.can_fire(target)
        for severity in (asked if pair.is_fast else ["ticket"])
    ]


def _burn(target: float, pair: BurnPair, severity: str | None) -> Alert:
    threshold = f"{pair.threshold(target):.10g}"
    matcher = f'{{severity="{severity or ""}"}}' if pair.is_fast else ""
    return Alert(
        name=BURN,
        expression=_condition(
            f"{failure_ratio(pair.long)} > {threshold}",
            f"{failure_ratio(pair.short)} > {threshold}",
            f"{results(pair.long)} >= <min_results>",
            only=[f"{OBJECTIVE}{matcher} == {target!r}"],
            unless=[changed_within(pair.long)],
        ),
        hold=f"<{pair.hold}>",
        labels={
            **({"severity": severity} if severity else {}),
            "window": f"<{pair.long}>/<{pair.short}>",
            "target": f"{target!r}",
        },
        summary=f"{_WHO} fails too often for its objective",
        description=f"{{{{ $value | humanizePercentage }}}} of the results over <{pair.long}> failed; "
        f"the objective is {target:.6g} passing.",
    )


# Evaluations that give no verdicts (silent, broken, without what they need) or only failures.

_SILENT = Alert(
    name="AgentEvaluationsSilent",
    about="agent",
    expression=f"""
          (
              max by ({AGENT}) ({RUNS}) >= <min_results>
            unless on ({AGENT})
              {OUTCOMES} > 0
            unless on ({AGENT})
              increase({SHADOW}[<1h>]) > 0
          )
        * on ({AGENT}) group_left (owner, contact)
          topk by ({AGENT}) (1, count by ({AGENT}, owner, contact) ({INFO})) ^ 0
        """,
    hold="<15m>",
    labels={"severity": "ticket", "scope": "agent"},
    summary="{{ $labels.gen_ai_agent_name }} runs and is not graded",
    description="{{ $value | humanize }} runs in <1h>, criteria are in force, and there is no result of any "
    "outcome.",
)
"""Agents with criteria that run, and get no result of any outcome."""

_SILENT_EVALUATION = Alert(
    name=_SILENT.name,
    expression=f"""
          group by ({EVALUATION}, owner, contact) ({UNCONDITIONAL}{{severity=~"page|ticket"}})
        * on ({AGENT}) group_left ()
          (
              max by ({AGENT}) ({RUNS}) >= <min_results>
            and on ({AGENT})
              {OUTCOMES} > 0
          )
        unless on ({EVALUATION})
          {OUTCOMES} > 0
        unless on ({EVALUATION})
          {MUTED}
        unless on ({EVALUATION})
          {CHANGED}
        """,
    hold="<15m>",
    labels={"severity": "ticket", "scope": "evaluation"},
    summary=f"{_WHO} gives no results",
    description="{{ $value | humanize }} runs of the agent in <1h>, the evaluation applies to all of them, "
    "and it gave no result of any outcome.",
)
"""Evaluations without any result, of agents that have results of others."""

_RISE = """
      {share} - ({share} offset <{before}>) > <not_evaluated>
    and
      ({results} offset <{before}>) >= <min_results>
"""
_RISES = "\n  or\n".join(
    indent(promql(_RISE.format(share=NOT_EVALUATED, results=OUTCOMES, before=before)), "    ")
    for before in ("1d", "7d")
)
"""A rise against yesterday or last week: that some evaluations never find what they need is no news."""

_WITHOUT_VERDICTS = (
    Alert(
        name="AgentEvaluationErrors",
        expression=_condition(f"{ERRORS} > <errors>", f"{OUTCOMES} >= <min_results>"),
        hold="<15m>",
        labels={"severity": "ticket"},
        summary=f"{_WHO} breaks",
        description="The evaluator broke in {{ $value | humanizePercentage }} of the runs of <1h>.",
    ),
    Alert(
        name="AgentEvaluationsNotEvaluated",
        expression=_condition(f"(\n{_RISES}\n)", f"{OUTCOMES} >= <min_results>", unless=[CHANGED]),
        hold="<15m>",
        labels={"severity": "ticket"},
        summary=f"{_WHO} cannot be evaluated as before",
        description="The share of runs without a verdict over <1h> rose by "
        "{{ $value | humanizePercentage }} of all runs.",
    ),
    Alert(
        name="AgentEvaluationFailingInARow",
        expression=_condition(
            f"max by ({EVALUATION}) (tracegrade_consecutive_failures) >= <failures_in_a_row>",
            unless=[CHANGED],
        ),
        labels={"severity": "ticket"},
        summary=f"{_WHO} fails again and again",
        description="The last {{ $value }} results with a verdict were failures.",
    ),
)

# Alerts that stand for many: one cause behind the regressions of many agents, and grading not to be trusted.
# Alertmanager keeps the alerts of single agents back while one of these fires.

SINGLE = "|".join((BELOW_BASELINE, REGRESSION, BURN, WORSE))
"""The alerts, each on one agent, that are one cause when there are many of them."""


def _untrusted(cause: str, part: str, whole: str) -> Alert:
    share, of = (f"sum by (job) (increase({series}[<15m>]))" for series in (part, whole))
    return Alert(
        name="TracegradeGradingUnhealthy",
        about="service",
        expression=f"  {share} / {of} > 0.3\nand\n  {of} >= <min_results>",
        hold="<5m>",
        labels={"severity": "page", "cause": cause},
        summary=f"Verdicts cannot be trusted: {cause}",
        description="{{ $value | humanizePercentage }} over <15m>, all agents together. Alerts about single "
        "agents are kept back.",
    )


_CUT_SHORT = 'tracegrade_not_evaluated_total{reason=~"incomplete_trace|over_limit"}'

FLEET_ALERTS = (
    Alert(
        name="AgentFleetRegression",
        about="fleet",
        expression=f"""
              {REGRESSING_AGENTS} >= <fleet_agents>
            and
              {REGRESSING_AGENTS} > <fleet_share> * {ACTIVE_AGENTS}
            """,
        hold="<1m>",
        labels={"severity": "page"},
        summary="Many agents regress at once",
        description="{{ $value }} agents regress, more than <fleet_share:.4g> of the active ones: look for "
        "one cause, such as a model, a tool or a library that they share.",
    ),
    _untrusted("evaluators break", f'{RESULTS}{{gen_ai_evaluation_score_label="error"}}', RESULTS),
    _untrusted("traces are cut short", _CUT_SHORT, RESULTS),
    _untrusted("traces cannot be read", "tracegrade_traces_failed_total", "tracegrade_traces_finished_total"),
)
"""To be evaluated after the alerts on single agents."""

NORMAL_DROPS = "duplicate|self_check|conflict"
"""Reasons of dropped spans that are no loss; `conflict` is a sender's mistake."""

SERVICE_ALERTS = (
    Alert(
        name="TracegradeSpansDropped",
        about="instance",
        expression=f'increase(tracegrade_spans_dropped_total{{reason!~"{NORMAL_DROPS}"}}[<15m>]) > 0',
        labels={"severity": "ticket"},
        summary="Spans are lost: {{ $labels.reason }}",
        description="{{ $value | humanize }} spans for exporter {{ $labels.exporter }} on "
        "{{ $labels.instance }} in <15m>.",
    ),
    Alert(
        name="TracegradeBufferNearLimit",
        about="instance",
        expression="tracegrade_held_bytes / tracegrade_held_limit_bytes > <occupancy>",
        hold="<10m>",
        labels={"severity": "ticket"},
        summary="Held spans are near the memory limit",
        description="{{ $value | humanizePercentage }} of the limit on {{ $labels.instance }}. At the limit "
        "senders are told to come back.",
    ),
    Alert(
        name="TracegradeQueueNearLimit",
        about="instance",
        expression="""
              tracegrade_queue_bytes
            / on (job, instance) group_left ()
              tracegrade_held_limit_bytes
            > <half_occupancy>
            """,
        hold="<10m>",
        labels={"severity": "ticket"},
        summary="A backend does not keep up",
        description="The queue of exporter {{ $labels.exporter }} on {{ $labels.instance }} takes "
        "{{ $value | humanizePercentage }} of the memory limit.",
    ),
    Alert(
        name="TracegradeCriteriaReloadFailed",
        about="instance",
        expression="tracegrade_criteria_last_reload_successful == 0",
        hold="<5m>",
        labels={"severity": "ticket"},
        summary="Criteria on disk are not in force",
        description="{{ $labels.instance }} keeps the last good version of a file. Its log names file, line "
        "and path.",
    ),
    Alert(
        name="TracegradeDown",
        about="service",
        expression=f'label_replace(absent(up{{job="{JOB}"}} == 1), "job", "{JOB}", "", "")',
        hold="<2m>",
        labels={"severity": "page", "scope": "service"},
        summary="tracegrade is down",
        description="No process answers: nothing is graded or forwarded.",
    ),
    Alert(
        name="TracegradeDown",
        about="instance",
        expression=f'  up{{job="{JOB}"}} == 0\nand on (job)\n  up{{job="{JOB}"}} == 1',
        hold="<10m>",
        labels={"severity": "ticket", "scope": "instance"},
        summary="A process of tracegrade is down",
        description="{{ $labels.instance }} does not answer, others do.",
    ),
    Alert(
        name="TracegradeAccountingError",
        about="instance",
        expression="tracegrade_accounting_error_spans != 0",
        hold="<5m>",
        labels={"severity": "ticket"},
        summary="Spans are not accounted for",
        description="{{ $value }} spans of exporter {{ $labels.exporter }} on {{ $labels.instance }} are "
        "neither forwarded, dropped nor held.",
    ),
    Alert(
        name="TracegradeSelfCheckFailing",
        about="instance",
        expression="time() - tracegrade_self_check_last_success_timestamp_seconds > <5m:seconds>",
        hold="<2m>",
        labels={"severity": "page"},
        summary="The self-check fails",
        description="For more than <5m> {{ $labels.instance }} did not grade its own two traces as it must. "
        "Alerts about single agents are kept back.",
    ),
)
"""On tracegrade itself: that it is there, receives, holds, grades and delivers. Each is on one process but
those on what is not there at all."""
