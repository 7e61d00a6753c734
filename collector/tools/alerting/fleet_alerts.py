"""Alerts that stand for many: one cause behind the regressions of many agents, and grading not to be trusted.

Alertmanager keeps the alerts of single agents back while one of these fires.
"""

from collector.tools.alerting.agent_series import results
from collector.tools.alerting.alert_links import AlertLinks
from collector.tools.alerting.burn_rate import BURN
from collector.tools.alerting.objectives import Thresholds
from collector.tools.alerting.rule_file import AlertRule, RecordingRule, promql
from collector.tools.alerting.score_alerts import BELOW_BASELINE, REGRESSION
from collector.tools.alerting.time_scale import TimeScale
from collector.tools.alerting.version_alerts import WORSE

FLEET = "AgentFleetRegression"
UNHEALTHY = "TracegradeGradingUnhealthy"

_SINGLE = f"{BELOW_BASELINE}|{REGRESSION}|{BURN}|{WORSE}"
_ACTIVE = "job:tracegrade_active_agents:count1h"
_REGRESSING = "job:tracegrade_regressing_agents:count"
_RESULTS = "gen_ai_evaluation_results_total"
_ERRORS = f'{_RESULTS}{{gen_ai_evaluation_score_label="error"}}'
_CUT_SHORT = 'tracegrade_not_evaluated_total{reason=~"incomplete_trace|over_limit"}'
_UNHEALTHY_SHARE = 0.3


def fleet_series() -> list[RecordingRule]:
    """How many agents gave results within an hour, and how many of them regress.

    Alerts that are pending count too: the fleet's alert is to fire before those that it stands for.
    """
    regressing = promql(
        f"""
        count by (job) (
          group by (job, gen_ai_agent_name) (ALERTS{{alertname=~"{_SINGLE}",alertstate=~"pending|firing"}})
        )
        """
    )
    active = f"count by (job) (group by (job, gen_ai_agent_name) ({results('1h')} > 0))"
    return [RecordingRule(_ACTIVE, active), RecordingRule(_REGRESSING, regressing)]


def fleet_alerts(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> list[AlertRule]:
    """The alerts, to be evaluated after those of single agents."""
    short = scale.scaled("15m")
    all_results = f"sum by (job) (increase({_RESULTS}[{short}]))"
    shares = {
        "evaluators break": (f"sum by (job) (increase({_ERRORS}[{short}]))", all_results),
        "traces are cut short": (f"sum by (job) (increase({_CUT_SHORT}[{short}]))", all_results),
        "traces cannot be read": (
            f"sum by (job) (increase(tracegrade_traces_failed_total[{short}]))",
            f"sum by (job) (increase(tracegrade_traces_finished_total[{short}]))",
        ),
    }
    return [
        _fleet(scale, thresholds, links),
        *(_unhealthy(scale, thresholds, links, cause, *share) for cause, share in shares.items()),
    ]


def _fleet(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> AlertRule:
    return AlertRule(
        alert=FLEET,
        expression=promql(
            f"""
              {_REGRESSING} >= {thresholds.fleet_agents}
            and
              {_REGRESSING} > {thresholds.fleet_share:g} * {_ACTIVE}
            """
        ),
        hold=scale.scaled("1m"),
        labels={"severity": "page"},
        annotations=links.of_fleet(
            FLEET,
            "Many agents regress at once",
            f"{{{{ $value }}}} agents regress, more than {thresholds.fleet_share:.4g} of the active ones: "
            "look for one cause, such as a model, a tool or a library that they share.",
        ),
    )


def _unhealthy(
    scale: TimeScale, thresholds: Thresholds, links: AlertLinks, cause: str, part: str, whole: str
) -> AlertRule:
    return AlertRule(
        alert=UNHEALTHY,
        expression=f"  {part} / {whole} > {_UNHEALTHY_SHARE}\nand\n  {whole} >= {thresholds.min_results}",
        hold=scale.scaled("5m"),
        labels={"severity": "page", "cause": cause},
        annotations=links.of_service(
            UNHEALTHY,
            f"Verdicts cannot be trusted: {cause}",
            f"{{{{ $value | humanizePercentage }}}} over {scale.scaled('15m')}, all agents together. Alerts "
            "about single agents are kept back.",
        ),
    )
