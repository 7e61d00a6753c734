"""The alert on a new version of an agent that scores worse than the version before it.

The newest version is the one whose first result is the latest. The version before it is, of those whose first
result is older, the one whose first result is the latest and that has enough results within a week; a
version that hardly ran is passed over. When a version gave its first result is a series that is recorded out
of itself: `last_over_time(first[7d]) or timestamp(results > 0)` keeps the first moment for as long as the
version is there, and for a week after. Where two versions were first seen at the same moment, for example
when Prometheus was started, neither is before the other.

The newest version is looked at over an hour and over up to a week since it came, so that agents with little
traffic are compared too; the version before it over a week.
"""

from collector.tools.alerting.agent_series import UNVERSIONED
from collector.tools.alerting.alert_links import AlertLinks
from collector.tools.alerting.evaluation_series import changed_within
from collector.tools.alerting.objectives import Thresholds
from collector.tools.alerting.routed_alert import condition, routed, unmuted
from collector.tools.alerting.rule_file import AlertRule, RecordingRule, promql
from collector.tools.alerting.score_alerts import hold, variance
from collector.tools.alerting.time_scale import TimeScale

WORSE = "AgentVersionWorseThanPrevious"
WINDOWS = ("1h", "7d")

_VERSION = "gen_ai_agent_version"
_KEPT = ", ".join(label for label in UNVERSIONED.split(", ") if label != _VERSION)
_SOME = f'{{{_VERSION}!=""}}'
_FIRST = "agent_version:gen_ai_evaluation_results:first_timestamp_seconds"
_PREVIOUS = "agent:gen_ai_evaluation_score:previous_version_mean7d"
_PREVIOUS_RESULTS = "agent:gen_ai_evaluation_results:previous_version_increase7d"
_SUM = "agent_version:gen_ai_evaluation_score_sum:increase1h"


def version_series(scale: TimeScale, thresholds: Thresholds) -> list[RecordingRule]:
    """Scores by version, which version came when, and how far the newest fell below the one before it."""
    hour, week = scale.scaled("1h"), scale.scaled("7d")
    span = f"[{week}:{hour}]"
    before = promql(
        f"""
          topk without ({_VERSION}) (
            1,
              {_FIRST} < ignoring ({_VERSION}) group_left () max without ({_VERSION}) ({_FIRST})
            and
              {_results("7d")} >= {thresholds.min_results}
          )
        """
    )
    return [
        RecordingRule(
            _mean("1h"),
            promql(
                f"""
                  sum without ({_KEPT}) (rate(gen_ai_evaluation_score_sum{_SOME}[{hour}]))
                /
                  (sum without ({_KEPT}) (rate(gen_ai_evaluation_score_count{_SOME}[{hour}])) > 0)
                """
            ),
        ),
        RecordingRule(
            _results("1h"), f"sum without ({_KEPT}) (increase(gen_ai_evaluation_score_count{_SOME}[{hour}]))"
        ),
        RecordingRule(_SUM, f"sum without ({_KEPT}) (increase(gen_ai_evaluation_score_sum{_SOME}[{hour}]))"),
        RecordingRule(_results("7d"), f"sum_over_time({_results('1h')}{span})"),
        RecordingRule(_mean("7d"), f"sum_over_time({_SUM}{span}) / ({_results('7d')} > 0)"),
        RecordingRule(
            _FIRST,
            promql(
                f"""
                  (
                      last_over_time({_FIRST}[{week}])
                    or
                      timestamp({_results("1h")} > 0)
                  )
                and
                  {_results("1h")}
                """
            ),
        ),
        RecordingRule(_PREVIOUS, _of_previous(_mean("7d"), before)),
        RecordingRule(_PREVIOUS_RESULTS, _of_previous(_results("7d"), before)),
        *(RecordingRule(_drop(window), _drop_of_newest(window)) for window in WINDOWS),
    ]


def version_alerts(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> list[AlertRule]:
    """The alert over each of the two windows."""
    return [_worse(scale, thresholds, links, window) for window in WINDOWS]


def _worse(scale: TimeScale, thresholds: Thresholds, links: AlertLinks, window: str) -> AlertRule:
    own = variance(_mean(window), _results(window))
    previous = variance(_PREVIOUS, _PREVIOUS_RESULTS)
    expression = condition(
        f"{_drop(window)} > {thresholds.score_drop:g}",
        promql(
            f"""
            {_drop(window)} > ignoring (previous_version) {thresholds.standard_errors:g} * sqrt(
                {own}
              + ignoring ({_VERSION}) group_left ()
                max without (previous_version) ({previous})
            )
            """
        ),
        f"{_results(window)} >= {thresholds.min_results}",
        unless=unmuted(changed_within(scale, "1h", "7d")),
        ignoring="previous_version",
    )
    return AlertRule(
        alert=WORSE,
        expression=routed(expression),
        hold=hold(scale, "1h"),
        labels={"window": scale.scaled(window)},
        annotations=links.of_version(
            WORSE,
            f"Version {{{{ $labels.{_VERSION} }}}} of {{{{ $labels.gen_ai_agent_name }}}} is worse in "
            "{{ $labels.gen_ai_evaluation_name }}",
            f'The mean score over {scale.scaled(window)} is {{{{ printf "%.2f" $value }}}} below that of '
            "version {{ $labels.previous_version }}.",
        ),
    )


def _of_previous(series: str, before: str) -> str:
    """`series` of the version before the newest, whose name is the label `previous_version`."""
    named = f'"previous_version", "$1", "{_VERSION}", "(.*)"'
    inner = "\n".join("    " + line for line in before.splitlines())
    newest = f"      {series}\n    and\n{inner}"
    return f"max without ({_VERSION}) (\n  label_replace(\n{newest},\n    {named}\n  )\n)"


def _drop_of_newest(window: str) -> str:
    return promql(
        f"""
          {_PREVIOUS}
        - ignoring ({_VERSION}, previous_version) group_right (previous_version)
          (
              {_mean(window)}
            and
              {_FIRST} == ignoring ({_VERSION}) group_left () max without ({_VERSION}) ({_FIRST})
          )
        """
    )


def _mean(window: str) -> str:
    return f"agent_version:gen_ai_evaluation_score:mean{window}"


def _results(window: str) -> str:
    return f"agent_version:gen_ai_evaluation_results:increase{window}"


def _drop(window: str) -> str:
    return f"agent_version:gen_ai_evaluation_score:version_drop{window}"
