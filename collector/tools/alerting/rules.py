"""Puts the rule file together, and says what it cannot alert on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collector.tools.alerting.alerts import (
    BURN,
    FLEET_ALERTS,
    PAIRS,
    SERVICE_ALERTS,
    SINGLE,
    Alert,
    AlertLinks,
    agent_alerts,
    unreachable,
)
from collector.tools.alerting.objectives import BaselinesFile, ObjectivesFile, Volume
from collector.tools.alerting.selectors import Pair, quoted
from collector.tools.alerting.series import Rule, fleet_rules, recorded
from collector.tools.alerting.windows import WINDOWS, Blanks, TimeScale, hours, window_for

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInputs:
    """What rules are made from.

    `volume` is in results an hour. `unconditional` are the evaluations that give a result for every run of
    their agent, as far as criteria tell; `quiet` those that never alert, with the reason.
    """

    objectives: ObjectivesFile = field(default_factory=ObjectivesFile)
    baselines: BaselinesFile | None = None
    volume: Volume = field(default_factory=dict)
    unconditional: Sequence[Pair] = ()
    quiet: Mapping[Pair, str] = field(default_factory=dict)
    scale: TimeScale = field(default_factory=TimeScale)
    links: AlertLinks = field(default_factory=AlertLinks)


def rules_text(inputs: RuleInputs) -> str:
    """The rule file: YAML for Prometheus."""
    thresholds, objectives = inputs.objectives.thresholds, inputs.objectives.placed()
    blanks = Blanks(inputs.scale, thresholds)
    by_window = _pairs_by_window(inputs)

    def rules(alerts: Sequence[Alert]) -> list[Rule]:
        return [alert.rule(blanks, inputs.links) for alert in alerts]

    windows = [window for window in WINDOWS if window == WINDOWS[0] or window in by_window]
    of_agents = [
        *recorded(
            blanks, by_window, objectives, inputs.unconditional, inputs.baselines, thresholds.min_results
        ),
        *rules(agent_alerts(windows, objectives, has_unconditional=bool(inputs.unconditional))),
        *fleet_rules(blanks, SINGLE),
        *rules(FLEET_ALERTS),
    ]
    of_service = rules(SERVICE_ALERTS)
    return "".join([_HEADING, *map(_rule_text, of_agents), _SERVICE_HEADING, *map(_rule_text, of_service)])


def never_firing(inputs: RuleInputs) -> list[str]:
    """What no rule of the file can alert on, a line for people each."""
    minimum = inputs.objectives.thresholds.min_results
    objectives = inputs.objectives.placed()
    lines = [line for placed in objectives for line in unreachable(placed)]
    for (agent, evaluation), reason in sorted(inputs.quiet.items()):
        lines.append(
            f"no alert but on a change of its rate can fire for {agent}: {evaluation}: it is {reason}"
        )
    for (agent, evaluation), an_hour in sorted(inputs.volume.items()):
        objective = next((one.objective for one in objectives if one.matches(agent, evaluation)), None)
        for pair in PAIRS if objective else ():
            expected = an_hour * hours(pair.long)
            if expected < minimum and objective is not None and pair.can_fire(objective.target):
                lines.append(
                    f"{BURN} over {pair.long} and {pair.short} can hardly fire for {agent}: {evaluation}: "
                    f"it expects {expected:.3g} results in {pair.long}, and {minimum} are needed"
                )
        if window_for(an_hour, minimum) is None:
            lines.append(
                f"score alerts can hardly fire for {agent}: {evaluation}: it expects "
                f"{an_hour * hours(WINDOWS[-1]):.3g} results in {WINDOWS[-1]}, and {minimum} are needed"
            )
    return lines


def _pairs_by_window(inputs: RuleInputs) -> dict[str, list[Pair]]:
    """The evaluations that are looked at over a longer window than the first."""
    minimum = inputs.objectives.thresholds.min_results
    found: dict[str, list[Pair]] = {}
    for pair, an_hour in sorted(inputs.volume.items()):
        window = window_for(an_hour, minimum) or WINDOWS[-1]
        if window != WINDOWS[0]:
            found.setdefault(window, []).append(pair)
    return found


def _rule_text(rule: Rule) -> str:
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
