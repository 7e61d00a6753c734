"""Alerts on objectives: failures that use up the budget `1 - target` too fast, over two windows each.

The failure share of the long window says that it matters, that of the short one that it goes on. A pair whose
factor times the budget is 1 or more asks for more failures than there are results: it can never fire, and no
rule is made of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.tools.alerting.agent_series import failure_ratio, results
from collector.tools.alerting.alert_links import AlertLinks
from collector.tools.alerting.evaluation_series import OBJECTIVE, changed_within
from collector.tools.alerting.objectives import PlacedObjective, Thresholds
from collector.tools.alerting.routed_alert import WHO, condition, routed, unmuted
from collector.tools.alerting.rule_file import AlertRule
from collector.tools.alerting.time_scale import TimeScale

BURN = "AgentEvaluationObjectiveBurn"


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


def burn_alerts(
    scale: TimeScale, thresholds: Thresholds, links: AlertLinks, objectives: Sequence[PlacedObjective]
) -> list[AlertRule]:
    """An alert for every different target, every pair that can fire for it, and every severity asked for."""
    targets = dict.fromkeys(placed.objective.target for placed in objectives)
    rules = []
    for target in targets:
        severities = dict.fromkeys(
            placed.objective.severity for placed in objectives if placed.objective.target == target
        )
        for pair in PAIRS:
            if pair.can_fire(target):
                asked = severities if pair.is_fast else ["ticket"]
                rules += [_burn_alert(scale, thresholds, links, target, pair, severity) for severity in asked]
    return rules


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


def _burn_alert(
    scale: TimeScale,
    thresholds: Thresholds,
    links: AlertLinks,
    target: float,
    pair: BurnPair,
    severity: str | None,
) -> AlertRule:
    """`severity` None: that of the evaluation."""
    threshold = f"{pair.threshold(target):.10g}"
    windows = scale.scaled(pair.long), scale.scaled(pair.short)
    matcher = f'{{severity="{severity or ""}"}}' if pair.is_fast else ""
    of_objective = f"{OBJECTIVE}{matcher} == {target!r}"
    expression = condition(
        f"{failure_ratio(pair.long)} > {threshold}",
        f"{failure_ratio(pair.short)} > {threshold}",
        f"{results(pair.long)} >= {thresholds.min_results}",
        only=(of_objective,),
        unless=unmuted(changed_within(scale, pair.long)),
    )
    return AlertRule(
        alert=BURN,
        expression=routed(expression),
        hold=scale.scaled(pair.hold),
        labels={
            **({"severity": severity} if severity else {}),
            "window": "/".join(windows),
            "target": f"{target!r}",
        },
        annotations=links.of_evaluation(
            BURN,
            f"{WHO} fails too often for its objective",
            f"{{{{ $value | humanizePercentage }}}} of the results over {windows[0]} failed; "
            f"the objective is {target:.6g} passing.",
        ),
    )
