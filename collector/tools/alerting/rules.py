"""Puts the rule file together, and says what it cannot alert on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collector.tools.alerting.agent_series import agent_series
from collector.tools.alerting.alert_links import AlertLinks
from collector.tools.alerting.baselines import BaselinesFile, baseline_rules
from collector.tools.alerting.burn_rate import BURN, PAIRS, burn_alerts, unreachable
from collector.tools.alerting.evaluation_alerts import evaluation_alerts
from collector.tools.alerting.evaluation_series import evaluation_series
from collector.tools.alerting.fleet_alerts import fleet_alerts, fleet_series
from collector.tools.alerting.objectives import ObjectivesFile
from collector.tools.alerting.rule_file import RecordingRule, Rule, RuleGroup, rule_file_text
from collector.tools.alerting.score_alerts import score_alerts, score_series
from collector.tools.alerting.series_selector import Pair
from collector.tools.alerting.service_alerts import service_alerts
from collector.tools.alerting.time_scale import TimeScale, hours
from collector.tools.alerting.version_alerts import version_alerts, version_series
from collector.tools.alerting.volume import WINDOWS, Volume, window_for

_HEADING = (
    "Recording and alert rules of tracegrade, for Prometheus 2.42 and newer.",
    "Written by `tracegrade rules`; objectives, baselines and volume are its arguments. Do not edit.",
    "docs/runbooks.md says what each alert means.",
)


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
    """The rule file."""
    scale, links, thresholds = inputs.scale, inputs.links, inputs.objectives.thresholds
    objectives = inputs.objectives.placed()
    by_window = _pairs_by_window(inputs)
    windows = [window for window in WINDOWS if window == WINDOWS[0] or window in by_window]
    pinned = baseline_rules(inputs.baselines, thresholds.min_results) if inputs.baselines else []
    series: list[RecordingRule] = [
        *agent_series(scale, by_window),
        *evaluation_series(scale, objectives, inputs.unconditional),
        *pinned,
        *score_series(scale, windows),
        *version_series(scale, thresholds),
    ]
    alerts: list[Rule] = [
        *score_alerts(scale, thresholds, links, windows),
        *burn_alerts(scale, thresholds, links, objectives),
        *version_alerts(scale, thresholds, links),
        *evaluation_alerts(scale, thresholds, links, has_unconditional=bool(inputs.unconditional)),
        *fleet_series(),
        *fleet_alerts(scale, thresholds, links),
    ]
    groups = [
        RuleGroup(
            "tracegrade-agents",
            "Agents: series, then the alerts on them. One group, so that alerts see what was just recorded.",
            [*series, *alerts],
        ),
        RuleGroup("tracegrade-service", "tracegrade itself.", service_alerts(scale, thresholds, links)),
    ]
    return rule_file_text(groups, _HEADING)


def never_firing(inputs: RuleInputs) -> list[str]:
    """What no rule of the file can alert on, a line for people each."""
    lines = []
    minimum = inputs.objectives.thresholds.min_results
    objectives = inputs.objectives.placed()
    for placed in objectives:
        lines += unreachable(placed)
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
