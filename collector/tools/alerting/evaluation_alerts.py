"""Alerts on evaluations that give no verdicts (silent, broken, without what they need) or only failures."""

from collector.tools.alerting.agent_series import ERRORS, EVALUATION, NOT_EVALUATED, OUTCOMES, RUNS
from collector.tools.alerting.alert_links import AlertLinks
from collector.tools.alerting.evaluation_series import CHANGED, MUTED, UNCONDITIONAL
from collector.tools.alerting.objectives import Thresholds
from collector.tools.alerting.routed_alert import WHO, condition, routed, unmuted
from collector.tools.alerting.rule_file import AlertRule, promql
from collector.tools.alerting.time_scale import TimeScale

SILENT = "AgentEvaluationsSilent"
BROKEN = "AgentEvaluationErrors"
WITHOUT_VERDICT = "AgentEvaluationsNotEvaluated"
IN_A_ROW = "AgentEvaluationFailingInARow"

_AGENT = "job, gen_ai_agent_name"


def evaluation_alerts(
    scale: TimeScale, thresholds: Thresholds, links: AlertLinks, *, has_unconditional: bool
) -> list[AlertRule]:
    """The alerts; with one on single silent evaluations where some are known to apply to every run."""
    return [
        _silent(scale, thresholds, links),
        *([_silent_evaluation(scale, thresholds, links)] if has_unconditional else []),
        _errors(scale, thresholds, links),
        _not_evaluated(scale, thresholds, links),
        _in_a_row(thresholds, links),
    ]


def _silent(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> AlertRule:
    """Agents with criteria that run, and get no result of any outcome."""
    return AlertRule(
        alert=SILENT,
        expression=promql(
            f"""
              (
                  max by ({_AGENT}) ({RUNS}) >= {thresholds.min_results}
                unless on ({_AGENT})
                  {OUTCOMES} > 0
                unless on ({_AGENT})
                  increase(tracegrade_shadow_evaluation_results_total[{scale.scaled("1h")}]) > 0
              )
            * on ({_AGENT}) group_left (owner, contact)
              topk by ({_AGENT}) (1, count by ({_AGENT}, owner, contact) (tracegrade_evaluation_info)) ^ 0
            """
        ),
        hold=scale.scaled("15m"),
        labels={"severity": "ticket", "scope": "agent"},
        annotations=links.of_agent(
            SILENT,
            "{{ $labels.gen_ai_agent_name }} runs and is not graded",
            f"{{{{ $value | humanize }}}} runs in {scale.scaled('1h')}, criteria are in force, and there is "
            "no result of any outcome.",
        ),
    )


def _silent_evaluation(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> AlertRule:
    """Evaluations without any result, of agents that have results of others."""
    expression = promql(
        f"""
          group by ({EVALUATION}, owner, contact) ({UNCONDITIONAL}{{severity=~"page|ticket"}})
        * on ({_AGENT}) group_left ()
          (
              max by ({_AGENT}) ({RUNS}) >= {thresholds.min_results}
            and on ({_AGENT})
              {OUTCOMES} > 0
          )
        unless on ({EVALUATION})
          {OUTCOMES} > 0
        unless on ({EVALUATION})
          {MUTED}
        unless on ({EVALUATION})
          {CHANGED}
        """
    )
    return AlertRule(
        alert=SILENT,
        expression=expression,
        hold=scale.scaled("15m"),
        labels={"severity": "ticket", "scope": "evaluation"},
        annotations=links.of_evaluation(
            SILENT,
            f"{WHO} gives no results",
            f"{{{{ $value | humanize }}}} runs of the agent in {scale.scaled('1h')}, the evaluation applies "
            "to all of them, and it gave no result of any outcome.",
        ),
    )


def _errors(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> AlertRule:
    expression = condition(
        f"{ERRORS} > {thresholds.errors:g}", f"{OUTCOMES} >= {thresholds.min_results}", unless=unmuted()
    )
    return AlertRule(
        alert=BROKEN,
        expression=routed(expression),
        hold=scale.scaled("15m"),
        labels={"severity": "ticket"},
        annotations=links.of_evaluation(
            BROKEN,
            f"{WHO} breaks",
            "The evaluator broke in {{ $value | humanizePercentage }} of the runs of "
            f"{scale.scaled('1h')}.",
        ),
    )


def _not_evaluated(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> AlertRule:
    """A rise against yesterday or last week: that some evaluations never find what they need is no news."""
    rises = [
        promql(
            f"""
              {NOT_EVALUATED} - ({NOT_EVALUATED} offset {scale.scaled(offset)}) > {thresholds.not_evaluated:g}
            and
              ({OUTCOMES} offset {scale.scaled(offset)}) >= {thresholds.min_results}
            """
        )
        for offset in ("1d", "7d")
    ]
    either = "(\n" + "\n  or\n".join("    " + rise.replace("\n", "\n    ") for rise in rises) + "\n)"
    expression = condition(either, f"{OUTCOMES} >= {thresholds.min_results}", unless=unmuted(CHANGED))
    return AlertRule(
        alert=WITHOUT_VERDICT,
        expression=routed(expression),
        hold=scale.scaled("15m"),
        labels={"severity": "ticket"},
        annotations=links.of_evaluation(
            WITHOUT_VERDICT,
            f"{WHO} cannot be evaluated as before",
            f"The share of runs without a verdict over {scale.scaled('1h')} rose by "
            "{{ $value | humanizePercentage }} of all runs.",
        ),
    )


def _in_a_row(thresholds: Thresholds, links: AlertLinks) -> AlertRule:
    expression = condition(
        f"max by ({EVALUATION}) (tracegrade_consecutive_failures) >= {thresholds.failures_in_a_row}",
        unless=unmuted(CHANGED),
    )
    return AlertRule(
        alert=IN_A_ROW,
        expression=routed(expression),
        labels={"severity": "ticket"},
        annotations=links.of_evaluation(
            IN_A_ROW,
            f"{WHO} fails again and again",
            "The last {{ $value }} results with a verdict were failures.",
        ),
    )
