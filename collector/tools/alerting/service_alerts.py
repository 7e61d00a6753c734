"""Alerts about tracegrade itself: that it is there, receives, holds, grades and delivers."""

from collector.tools.alerting.alert_links import AlertLinks
from collector.tools.alerting.objectives import Thresholds
from collector.tools.alerting.rule_file import AlertRule, promql
from collector.tools.alerting.time_scale import TimeScale

JOB = "tracegrade"
"""The scrape job of the service."""

NORMAL_DROPS = ("duplicate", "self_check", "conflict")
"""Reasons of dropped spans that are no loss; `conflict` is a sender's mistake."""


def service_alerts(scale: TimeScale, thresholds: Thresholds, links: AlertLinks) -> list[AlertRule]:
    """The alerts, each for one process but those on what is not there at all."""
    occupancy = f"{thresholds.occupancy:g}"
    return [
        AlertRule(
            alert="TracegradeSpansDropped",
            expression=f"increase(tracegrade_spans_dropped_total"
            f'{{reason!~"{"|".join(NORMAL_DROPS)}"}}[{scale.scaled("15m")}]) > 0',
            labels={"severity": "ticket"},
            annotations=links.of_instance(
                "TracegradeSpansDropped",
                "Spans are lost: {{ $labels.reason }}",
                "{{ $value | humanize }} spans for exporter {{ $labels.exporter }} on {{ $labels.instance }} "
                f"in {scale.scaled('15m')}.",
            ),
        ),
        AlertRule(
            alert="TracegradeBufferNearLimit",
            expression=f"tracegrade_held_bytes / tracegrade_held_limit_bytes > {occupancy}",
            hold=scale.scaled("10m"),
            labels={"severity": "ticket"},
            annotations=links.of_instance(
                "TracegradeBufferNearLimit",
                "Held spans are near the memory limit",
                "{{ $value | humanizePercentage }} of the limit on {{ $labels.instance }}. At the limit "
                "senders are told to come back.",
            ),
        ),
        AlertRule(
            alert="TracegradeQueueNearLimit",
            expression=promql(
                f"""
                  tracegrade_queue_bytes
                / on (job, instance) group_left ()
                  tracegrade_held_limit_bytes
                > {thresholds.occupancy / 2:g}
                """
            ),
            hold=scale.scaled("10m"),
            labels={"severity": "ticket"},
            annotations=links.of_instance(
                "TracegradeQueueNearLimit",
                "A backend does not keep up",
                "The queue of exporter {{ $labels.exporter }} on {{ $labels.instance }} takes "
                "{{ $value | humanizePercentage }} of the memory limit.",
            ),
        ),
        AlertRule(
            alert="TracegradeCriteriaReloadFailed",
            expression="tracegrade_criteria_last_reload_successful == 0",
            hold=scale.scaled("5m"),
            labels={"severity": "ticket"},
            annotations=links.of_instance(
                "TracegradeCriteriaReloadFailed",
                "Criteria on disk are not in force",
                "{{ $labels.instance }} keeps the last good version of a file. Its log names file, line and "
                "path.",
            ),
        ),
        *_down(scale, links),
        AlertRule(
            alert="TracegradeAccountingError",
            expression="tracegrade_accounting_error_spans != 0",
            hold=scale.scaled("5m"),
            labels={"severity": "ticket"},
            annotations=links.of_instance(
                "TracegradeAccountingError",
                "Spans are not accounted for",
                "{{ $value }} spans of exporter {{ $labels.exporter }} on {{ $labels.instance }} are neither "
                "forwarded, dropped nor held.",
            ),
        ),
        AlertRule(
            alert="TracegradeSelfCheckFailing",
            expression="time() - tracegrade_self_check_last_success_timestamp_seconds "
            f"> {scale.seconds('5m')}",
            hold=scale.scaled("2m"),
            labels={"severity": "page"},
            annotations=links.of_instance(
                "TracegradeSelfCheckFailing",
                "The self-check fails",
                f"For more than {scale.scaled('5m')} {{{{ $labels.instance }}}} did not grade its own two "
                "traces as it must. Alerts about single agents are kept back.",
            ),
        ),
    ]


def _down(scale: TimeScale, links: AlertLinks) -> list[AlertRule]:
    return [
        AlertRule(
            alert="TracegradeDown",
            expression=f'label_replace(absent(up{{job="{JOB}"}} == 1), "job", "{JOB}", "", "")',
            hold=scale.scaled("2m"),
            labels={"severity": "page", "scope": "service"},
            annotations=links.of_service(
                "TracegradeDown", "tracegrade is down", "No process answers: nothing is graded or forwarded."
            ),
        ),
        AlertRule(
            alert="TracegradeDown",
            expression=promql(
                f"""
                  up{{job="{JOB}"}} == 0
                and on (job)
                  up{{job="{JOB}"}} == 1
                """
            ),
            hold=scale.scaled("10m"),
            labels={"severity": "ticket", "scope": "instance"},
            annotations=links.of_instance(
                "TracegradeDown",
                "A process of tracegrade is down",
                "{{ $labels.instance }} does not answer, others do.",
            ),
        ),
    ]
