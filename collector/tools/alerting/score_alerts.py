"""Alerts on mean scores: below the pinned baseline, and below the same hour last week.

A drop counts when it is large (`score_drop`) and no chance (`standard_errors`), with enough results on both
sides. The standard error is the largest that scores in [0, 1] with that mean can have: sqrt(m (1 - m) / n).
The comparison with last week heals itself after a week, when the bad week is what it compares with; the
baseline does not.
"""

from collections.abc import Sequence

from collector.tools.alerting.agent_series import (
    SHADOW_FAILURE_RATIO,
    SHADOW_RESULTS,
    failure_ratio,
    mean,
    results,
)
from collector.tools.alerting.alert_links import AlertLinks
from collector.tools.alerting.baselines import BASELINE
from collector.tools.alerting.evaluation_series import changed_within
from collector.tools.alerting.objectives import Thresholds
from collector.tools.alerting.routed_alert import ADVISORY, WHO, condition, routed, unmuted
from collector.tools.alerting.rule_file import AlertRule, RecordingRule, promql
from collector.tools.alerting.time_scale import TimeScale

BELOW_BASELINE = "AgentEvaluationScoreBelowBaseline"
REGRESSION = "AgentEvaluationScoreRegression"
WEEK = "7d"


def score_series(scale: TimeScale, windows: Sequence[str]) -> list[RecordingRule]:
    """How far scores fell, over each of `windows`: series that the alerts and dashboards look at."""
    week = scale.scaled(WEEK)
    rules = []
    for window in windows:
        rules += [
            RecordingRule(
                _baseline_drop(window),
                promql(
                    f"""
                      {BASELINE}
                    - on (gen_ai_agent_name, gen_ai_evaluation_name) group_right (release)
                      {mean(window)}
                    """
                ),
            ),
            RecordingRule(_week_drop(window), f"({mean(window)} offset {week}) - {mean(window)}"),
            RecordingRule(_error(window), f"sqrt({variance(mean(window), results(window))})"),
        ]
    return rules


def score_alerts(
    scale: TimeScale, thresholds: Thresholds, links: AlertLinks, windows: Sequence[str]
) -> list[AlertRule]:
    """The alerts over each of `windows`, and those on the rate of evaluations that do not count otherwise."""
    return [
        *(_below_baseline(scale, thresholds, links, window) for window in windows),
        *(_regression(scale, thresholds, links, window) for window in windows),
        *_rate_changes(scale, thresholds, links),
    ]


def variance(score: str, count: str) -> str:
    """The largest variance that the mean `score` of `count` scores in [0, 1] can have."""
    return f"clamp_min({score} * (1 - {score}), 0) / {count}"


def hold(scale: TimeScale, window: str) -> str:
    """How long a drop over a window must last."""
    return scale.scaled("15m" if window == "1h" else "1h")


def _below_baseline(scale: TimeScale, thresholds: Thresholds, links: AlertLinks, window: str) -> AlertRule:
    drop = _baseline_drop(window)
    expression = condition(
        f"{drop} > {thresholds.score_drop:g}",
        f"{drop} > ignoring (release) {thresholds.standard_errors:g} * {_error(window)}",
        f"{results(window)} >= {thresholds.min_results}",
        unless=unmuted(changed_within(scale, window)),
        ignoring="release",
    )
    return AlertRule(
        alert=BELOW_BASELINE,
        expression=routed(expression),
        hold=hold(scale, window),
        labels={"window": scale.scaled(window)},
        annotations=links.of_evaluation(
            BELOW_BASELINE,
            f"{WHO} scores below its baseline",
            f'The mean score over {scale.scaled(window)} is {{{{ printf "%.2f" $value }}}} below that of '
            "release {{ $labels.release }}.",
        ),
    )


def _regression(scale: TimeScale, thresholds: Thresholds, links: AlertLinks, window: str) -> AlertRule:
    week, drop = scale.scaled(WEEK), _week_drop(window)
    before = variance(f"({mean(window)} offset {week})", f"({results(window)} offset {week})")
    expression = condition(
        f"{drop} > {thresholds.score_drop:g}",
        f"{drop} > {thresholds.standard_errors:g} * sqrt({_error(window)} ^ 2 + {before})",
        f"{results(window)} >= {thresholds.min_results}",
        f"({results(window)} offset {week}) >= {thresholds.min_results}",
        unless=unmuted(changed_within(scale, window, WEEK)),
    )
    return AlertRule(
        alert=REGRESSION,
        expression=routed(expression),
        hold=hold(scale, window),
        labels={"window": scale.scaled(window)},
        annotations=links.of_evaluation(
            REGRESSION,
            f"{WHO} scores lower than last week",
            f'The mean score over {scale.scaled(window)} is {{{{ printf "%.2f" $value }}}} below that of the '
            f"same time {week} ago.",
        ),
    )


def _rate_changes(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> list[AlertRule]:
    """Evaluations that only have their rate watched: advisory ones, and those in shadow."""
    watched = (
        ("advisory", failure_ratio("1h"), results("1h"), ADVISORY),
        ("shadow", SHADOW_FAILURE_RATIO, SHADOW_RESULTS, "page|ticket|advisory"),
    )
    week = scale.scaled(WEEK)
    return [
        AlertRule(
            alert=REGRESSION,
            expression=routed(
                condition(
                    f"({ratio} - ({ratio} offset {week})) > {thresholds.rate_change:g}",
                    promql(
                        f"""
                        ({ratio} - ({ratio} offset {week})) > {thresholds.standard_errors:g} * sqrt(
                            {variance(ratio, count)}
                          +
                            {variance(f"({ratio} offset {week})", f"({count} offset {week})")}
                        )
                        """
                    ),
                    f"{count} >= {thresholds.min_results}",
                    f"({count} offset {week}) >= {thresholds.min_results}",
                    unless=unmuted(changed_within(scale, "1h", WEEK)),
                ),
                severities,
            ),
            hold=scale.scaled("15m"),
            labels={"severity": "ticket", "window": scale.scaled("1h"), "watched": kind},
            annotations=links.of_evaluation(
                REGRESSION,
                f"The {kind} evaluation {WHO} fails more often than last week",
                f"Its share of failures over {scale.scaled('1h')} is {{{{ $value | humanizePercentage }}}} "
                f"of all runs above that of the same time {week} ago.",
            ),
        )
        for kind, ratio, count, severities in watched
    ]


def _baseline_drop(window: str) -> str:
    return f"agent:gen_ai_evaluation_score:baseline_drop{window}"


def _week_drop(window: str) -> str:
    return f"agent:gen_ai_evaluation_score:week_drop{window}"


def _error(window: str) -> str:
    return f"agent:gen_ai_evaluation_score:standard_error{window}"
