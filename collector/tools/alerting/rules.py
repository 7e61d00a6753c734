"""Renders the rule file from `rules.yaml` in this folder, and reports what it cannot alert on.

Everything that does not depend on the arguments is there. Here is what depends on names that users wrote:
these must not meet what is filled in there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from string import Template
from textwrap import dedent, indent
from typing import Any

import yaml

from collector.tools.alerting.objectives import (
    PAIRS,
    BaselinesFile,
    ObjectivesFile,
    PlacedObjective,
    Volume,
)
from collector.tools.alerting.selectors import Pair, pair_matchers, pattern_matchers, quoted
from collector.tools.alerting.windows import WINDOWS, TimeScale, hours, window_for

RUNBOOK_BASE = "https://github.com/tracegrade/tracegrade/blob/main/docs/runbooks.md"
DASHBOARD_BASE = "http://localhost:3000"

_HEADING = """\
# Recording and alert rules of tracegrade, for Prometheus 2.42 and newer.
# Written by `tracegrade rules`; objectives, baselines and volume are its arguments. Do not edit.
# docs/runbooks.md says what each alert means.
groups:
  # Agents: series, then the alerts on them. One group, so that alerts see what was just recorded.
  - name: tracegrade-agents
    rules:
"""
_SERVICE_HEADING = """\

  # tracegrade itself.
  - name: tracegrade-service
    rules:
"""
_SAFE_IN_YAML = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:()[]<>=.,+-*/ ")

_MAX_SHOWN = 12
_BURN = "AgentEvaluationObjectiveBurn"
_EVALUATION = "job, gen_ai_agent_name, gen_ai_evaluation_name"
"""The labels that name one evaluation of one agent, for `on` and `by`."""
_RESULTS = "gen_ai_evaluation_results_total"
_ROUTING = "agent:tracegrade_evaluation_routing:info"
_UNCONDITIONAL = "agent:tracegrade_evaluation_unconditional:info"
"""As `_ROUTING`, for the evaluations alone that give a result for every run of their agent."""
_MUTED = "agent:tracegrade_evaluation_muted:info"
_CHANGED = "agent:tracegrade_evaluation_definitions:count1h"
_OBJECTIVE = "agent:gen_ai_evaluation_objective:ratio"
"""The share of runs that is to pass; with `severity` where the objective names one."""
_BASELINE = "agent:gen_ai_evaluation_score:baseline"
_COUNT, _SUM = "agent:gen_ai_evaluation_results:increase", "agent:gen_ai_evaluation_score_sum:increase1h"
_ALWAYS_COUNTED = ("6h", "1d", "3d")
"""The longer windows of which `rules.yaml` has the number of results."""

_OF_THE_SERVICE = ("service", "instance")
"""What alerts that keep their durations at any scale are about."""

_Rule = Mapping[str, str | Mapping[str, str]]
"""A rule as Prometheus names its parts: `record` or `alert`, `expr`, `for`, `labels`, `annotations`."""

_Several = dict[str, list[dict[str, str]]]
"""What the names in `each` of `rules.yaml` stand for: variables, for each of which there is an alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInputs:
    """What rules are made from.

    `volume` is in results an hour. `unconditional` are the evaluations that give a result for every run of
    their agent, as far as criteria show; `quiet` those that never alert, with the reason. The bases are the
    URLs of runbooks, dashboards and the page; without the last, alerts have no link to it.
    """

    objectives: ObjectivesFile = field(default_factory=ObjectivesFile)
    baselines: BaselinesFile | None = None
    volume: Volume = field(default_factory=dict)
    unconditional: Sequence[Pair] = ()
    quiet: Mapping[Pair, str] = field(default_factory=dict)
    scale: TimeScale = field(default_factory=TimeScale)
    runbook_base: str = RUNBOOK_BASE
    dashboard_base: str = DASHBOARD_BASE
    page_base: str = ""


def rules_text(inputs: RuleInputs) -> str:
    """The rule file: YAML for Prometheus."""
    template = _RuleTemplate(inputs)
    objectives = inputs.objectives.placed()
    by_window = _pairs_by_window(inputs)
    longer = [window for window in WINDOWS if window in by_window]
    windows = [{"window": window, "hold": "1h"} for window in longer]
    windows.insert(0, {"window": WINDOWS[0], "hold": "15m"})
    several: _Several = {"windows": windows, "burns": _burns(objectives)}
    several["unconditional"] = [{}] if inputs.unconditional else []
    of_agents = [
        *template.series("agents"),
        *(template.series("sums") if longer else []),
        *(rule for window in longer for rule in _means(window, by_window[window], inputs.scale)),
        *template.series("evaluations"),
        *_recorded(_OBJECTIVE, map(_target, objectives), f" on ({_EVALUATION})"),
        *_recorded(_UNCONDITIONAL, [f"{_ROUTING}{{{one}}}" for one in pair_matchers(inputs.unconditional)]),
        *_baselines(inputs.baselines, inputs.objectives.thresholds.min_results),
        *(rule for window in windows for rule in template.series("drops", window)),
        *template.series("versions"),
        *template.alerts("agents", several),
        *template.series("fleet"),
        *template.alerts("fleet"),
    ]
    of_service = template.alerts("service")
    return "".join([_HEADING, *map(_rule_text, of_agents), _SERVICE_HEADING, *map(_rule_text, of_service)])


def never_firing(inputs: RuleInputs) -> list[str]:
    """What no rule of the file can alert on, in lines for people."""
    minimum = inputs.objectives.thresholds.min_results
    objectives = inputs.objectives.placed()
    lines = [line for placed in objectives for line in unreachable(placed)]
    lines += _quiet(inputs.quiet)
    for (agent, evaluation), an_hour in sorted(inputs.volume.items()):
        objective = next((one.objective for one in objectives if one.matches(agent, evaluation)), None)
        for pair in PAIRS if objective else ():
            expected = an_hour * hours(pair.long)
            if expected < minimum and objective is not None and pair.can_fire(objective.target):
                lines.append(
                    f"{_BURN} over {pair.long} and {pair.short} can hardly fire for {agent}: {evaluation}: "
                    f"it expects {expected:.3g} results in {pair.long}, and {minimum} are needed"
                )
        if window_for(an_hour, minimum) is None:
            lines.append(
                f"score alerts can hardly fire for {agent}: {evaluation}: it expects "
                f"{an_hour * hours(WINDOWS[-1]):.3g} results in {WINDOWS[-1]}, and {minimum} are needed"
            )
    return lines


def _quiet(quiet: Mapping[Pair, str]) -> Iterator[str]:
    """A line for each reason for which only a change of the rate of evaluations can alert, with some."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for (agent, evaluation), reason in sorted(quiet.items()):
        by_reason.setdefault(reason, {}).setdefault(evaluation, []).append(agent)
    for reason, evaluations in by_reason.items():
        shown = [
            f"{evaluation} ({agents[0] if len(agents) == 1 else f'{len(agents)} agents'})"
            for evaluation, agents in list(evaluations.items())[:_MAX_SHOWN]
        ]
        if len(evaluations) > _MAX_SHOWN:
            shown.append(f"{len(evaluations) - _MAX_SHOWN} more")
        yield f"only a change of the rate can alert on evaluations that are {reason}: {', '.join(shown)}"


def unreachable(placed: PlacedObjective) -> list[str]:
    """Which pairs can never fire for an objective, a line for people each."""
    budget = 1 - placed.objective.target
    return [
        f"{_BURN} over {pair.long} and {pair.short} can never fire for {placed.agent.text}: "
        f"{placed.evaluation.text}: {pair.factor:g} times the budget of {budget:.4g} is "
        f"{pair.threshold(placed.objective.target):.4g}, and no share of failures is larger than 1"
        for pair in PAIRS
        if not pair.can_fire(placed.objective.target)
    ]


class _RuleTemplate:
    """`rules.yaml`, filled in from `inputs`."""

    def __init__(self, inputs: RuleInputs) -> None:
        self._inputs = inputs
        self._content: dict[str, Any] = yaml.safe_load(
            Path(__file__).with_name("rules.yaml").read_text("utf-8")
        )

    def series(self, part: str, variables: Mapping[str, str] | None = None) -> list[_Rule]:
        """The recording rules of a part."""
        return [
            {
                "record": self._filled(record, variables or {}),
                "expr": self._filled(expression, variables or {}),
            }
            for record, expression in self._content["series"][part].items()
        ]

    def alerts(self, part: str, several: _Several | None = None) -> list[_Rule]:
        """The alert rules of a part."""
        rules = []
        for row in self._content["alerts"][part]:
            each = row.get("each", [{}])
            for variables in (several or {})[each] if isinstance(each, str) else each:
                rules.append(self._alert(row, variables))
        return rules

    def _alert(self, row: Mapping[str, Any], own: Mapping[str, str]) -> _Rule:
        scale = TimeScale() if row["about"] in _OF_THE_SERVICE else self._inputs.scale
        fill = partial(self._filled, variables=own, scale=scale)
        dashboard = self._content["dashboards"][row["about"]]
        query = _query_of({f"var-{name}": label for name, label in dashboard["variables"].items()})
        base = self._inputs.dashboard_base.rstrip("/")
        return {
            "alert": row["alert"],
            "expr": fill(row["expr"] if "expr" in row else self._condition(row, own)),
            "for": fill(row.get("for", "")),
            "labels": {name: filled for name, text in row["labels"].items() if (filled := fill(text))},
            "annotations": {
                "summary": fill(row["summary"]),
                "description": fill(row["description"]),
                "runbook_url": f"{self._inputs.runbook_base}#{row['alert'].lower()}",
                "dashboard_url": f"{base}/d/tracegrade-{dashboard['uid']}?{query}",
                **self._page_link(row, fill),
            },
        }

    def _page_link(self, row: Mapping[str, Any], fill: Callable[[str], str]) -> dict[str, str]:
        """The page's view of exactly the runs that an alert is about, if it is about runs."""
        labels = self._content["pages"].get(row["about"])
        if labels is None or not self._inputs.page_base:
            return {}
        # A duration would count from the click, hours after the alert perhaps: the moment is looked up.
        seconds = fill(f"<{fill(row.get('since', '1h'))}:seconds>")
        since = (
            f'{{{{ (query "time() - {seconds}" | first | value | toTime).Format "2006-01-02T15:04:05Z" }}}}'
        )
        outcome = row.get("outcome", "fail")
        parts = [_query_of(labels), f"outcome={outcome}" if outcome else "", f"since={since}"]
        return {"page_url": f"{self._inputs.page_base}/find?{'&'.join(filter(None, parts))}"}

    def _condition(self, row: Mapping[str, Any], variables: Mapping[str, str]) -> str:
        """The first of the row's terms where all others hold too, for the evaluations that it is about."""
        operator = f"and ignoring ({row['ignoring']})" if "ignoring" in row else "and"
        text = f"\n{operator}\n".join(indent(_promql(term), "  ") for term in row["terms"])
        if "only" in row:
            text += f"\nand on ({_EVALUATION})\n  {row['only']}"
        unless = [_MUTED]
        if "changed_within" in row:
            # The series is there for an hour after a change, so it is looked back for an hour less.
            within = Template(row["changed_within"]).substitute(variables)
            unless.append(_CHANGED if within == "1h" else f"present_over_time({_CHANGED}[<{within}-1h>])")
        text += "".join(f"\nunless on ({_EVALUATION})\n  {selected}" for selected in unless)
        severities = Template(row.get("severities", "page|ticket")).substitute(variables)
        matches = "=~" if "|" in severities else "="
        return (
            f"  (\n{indent(text, '    ')}\n  )\n* on ({_EVALUATION}) group_left (severity, owner, contact)\n"
            f'  {_ROUTING}{{severity{matches}"{severities}"}}'
        )

    def _filled(self, text: str, variables: Mapping[str, str], scale: TimeScale | None = None) -> str:
        filled = _promql(Template(text).safe_substitute({**self._content["names"], **variables}))
        return (scale or self._inputs.scale).fill(filled, self._inputs.objectives.thresholds)


def _query_of(labels: Mapping[str, str]) -> str:
    """A query whose parameters an alert fills in from its labels."""
    return "&".join(f"{name}={{{{ $labels.{label} | urlquery }}}}" for name, label in labels.items())


def _promql(text: str) -> str:
    """An indented text without common indentation and empty lines."""
    return "\n".join(line.rstrip() for line in dedent(text).splitlines() if line.strip())


def _means(window: str, pairs: Iterable[Pair], scale: TimeScale) -> list[_Rule]:
    """Means over a longer window, for the pairs alone that need them."""
    span = f"[{scale.scaled(window)}:{scale.scaled('1h')}]"
    selections = [f"{{{matchers}}}{span}" for matchers in pair_matchers(pairs)]
    counts = [f"sum_over_time({_COUNT}1h{selection})" for selection in selections]
    means = [
        f"sum_over_time({_SUM}{selection}) / ({count} > 0)"
        for selection, count in zip(selections, counts, strict=True)
    ]
    return [
        *_recorded(f"agent:gen_ai_evaluation_score:mean{window}", means),
        *([] if window in _ALWAYS_COUNTED else _recorded(_COUNT + window, counts)),
    ]


def _target(placed: PlacedObjective) -> str:
    matchers = pattern_matchers(placed.agent, placed.evaluation)
    selector = f"{_RESULTS}{{{matchers}}}" if matchers else _RESULTS
    target = f"group by ({_EVALUATION}) ({selector}) * {placed.objective.target!r}"
    if placed.objective.severity:
        target = f'label_replace({target}, "severity", "{placed.objective.severity}", "", "")'
    return target


def _baselines(baselines: BaselinesFile | None, min_samples: int) -> list[_Rule]:
    """A series for every score that is pinned from at least `min_samples` results."""
    if baselines is None:
        return []
    return [
        {
            "record": _BASELINE,
            "expr": f"vector({score.mean!r})",
            "labels": {
                "gen_ai_agent_name": agent,
                "gen_ai_evaluation_name": evaluation,
                "release": baselines.release,
            },
        }
        for agent, evaluations in sorted(baselines.agents.items())
        for evaluation, score in sorted(evaluations.items())
        if score.samples >= min_samples
    ]


def _burns(objectives: Iterable[PlacedObjective]) -> list[dict[str, str]]:
    """An alert for every different target, every pair that can fire for it, and every severity."""
    severities: dict[float, dict[str, None]] = {}
    for placed in objectives:
        severities.setdefault(placed.objective.target, {})[placed.objective.severity or ""] = None
    return [
        {
            "long": pair.long,
            "short": pair.short,
            "hold": pair.hold,
            "threshold": f"{pair.threshold(target):.10g}",
            "matcher": f'{{severity="{severity}"}}' if pair.is_fast else "",
            "severity": severity,
            "target": f"{target!r}",
            "share": f"{target:.6g}",
        }
        for target, requested in severities.items()
        for pair in PAIRS
        if pair.can_fire(target)
        for severity in (requested if pair.is_fast else ["ticket"])
    ]


def _recorded(name: str, expressions: Iterable[str], on: str = "") -> list[_Rule]:
    """A rule, unless there are no `expressions`, that records the series of each of them as `name`.

    Of series that agree in the labels of `on` (all), the first one counts.
    """
    text = f"\nor{on}\n".join(f"  {expression}" for expression in expressions)
    return [{"record": name, "expr": text}] if text else []


def _pairs_by_window(inputs: RuleInputs) -> dict[str, list[Pair]]:
    """The evaluations that are looked at over a longer window than the first."""
    minimum = inputs.objectives.thresholds.min_results
    pairs: dict[str, list[Pair]] = {}
    for pair, an_hour in sorted(inputs.volume.items()):
        window = window_for(an_hour, minimum) or WINDOWS[-1]
        if window != WINDOWS[0]:
            pairs.setdefault(window, []).append(pair)
    return pairs


def _rule_text(rule: _Rule) -> str:
    lines = []
    for name, value in rule.items():
        if not value:
            continue
        if not isinstance(value, str):
            lines += [f"{name}:", *(f"  {key}: {quoted(text)}" for key, text in value.items())]
        elif name == "expr":
            lines += _expression_lines(value)
        else:
            lines.append(f"{name}: {value}")
    return f"      - {lines[0]}\n" + "".join(f"        {line}\n" for line in lines[1:])


def _expression_lines(expression: str) -> list[str]:
    expression = expression if "\n" in expression else expression.strip()
    if "\n" not in expression and ": " not in expression and _SAFE_IN_YAML.issuperset(expression):
        return [f"expr: {expression}"]
    return ["expr: |2", *(f"  {line}" for line in expression.splitlines())]
