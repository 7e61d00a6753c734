"""The dashboard *Service health*: whether tracegrade receives, grades and delivers, and loses nothing."""

from deploy.grafana.generator.dashboard import SERVICE_HEALTH, dashboard, process_variables
from deploy.grafana.generator.panels import (
    COUNT_OF_TROUBLE,
    Column,
    Query,
    stat,
    table,
    text,
    time_series,
)
from deploy.grafana.generator.promql import quantile, rate, select, total
from deploy.grafana.generator.service_stages import FULL, delivery, durability, grading, kafka, log_records
from processors.model import JsonObject

_LOST = 'reason!~"duplicate|self_check|conflict"'
"""Dropped spans that are missing: not second copies, not the service's own checks."""

_GOOD = """\
**Good:** *Lost spans* and *Accounting error* are 0, the self-check succeeded within the last two minutes,
held memory is well below its limit, and the oldest held span is younger than the grace that traces get (an
open trace without its root may be older, up to the idle timeout).

**When not:** lost spans have a reason (*Dropped spans by reason*). Growing queues with failing export
attempts mean that a backend is down: nothing is lost while memory lasts, and senders are rejected and retry
when it is full. A verdict delay or loop lag that grows without that means too much traffic for one process.
"""


def service_health() -> JsonObject:
    """The service itself."""
    return dashboard(
        SERVICE_HEALTH,
        "Service health",
        "Whether tracegrade receives, grades and delivers, and loses nothing.",
        variables=process_variables(),
        annotations=[],
        since="now-6h",
        rows=[
            ("", [text("What good looks like", _GOOD), *_numbers()]),
            ("Spans: received = forwarded + dropped + held", _spans()),
            ("Grading", grading()),
            ("Delivery", delivery()),
            ("Restarts", durability()),
            ("Log records", log_records()),
            ("Kafka", kafka()),
            ("Process, criteria, self-check", _process()),
        ],
    )


def _numbers() -> list[JsonObject]:
    # Other jobs have `up`, too: only what was a process of tracegrade within the last day counts.
    scraped = f"{select('up')} and on (job, instance) last_over_time({select('tracegrade_build_info')}[1d])"
    lost = select("tracegrade_spans_dropped_total", _LOST)
    received = select("tracegrade_spans_received_total")
    checked = f"min({select('tracegrade_self_check_last_success_timestamp_seconds')})"
    held, limit = select("tracegrade_held_bytes"), select("tracegrade_held_limit_bytes")
    return [
        stat(
            "Instances down",
            "Processes of the last day that Prometheus still has as targets and could not scrape just now.",
            f"count(({scraped}) == 0) or 0 * count({scraped})",
            thresholds=COUNT_OF_TROUBLE,
            runbook="TracegradeDown",
        ),
        stat(
            "Lost spans",
            "Spans dropped over the time range, second copies, conflicting copies and self-checks left out.",
            f"sum(increase({lost}[$__range])) or 0 * sum(increase({received}[$__range]))",
            thresholds=COUNT_OF_TROUBLE,
            runbook="TracegradeSpansDropped",
        ),
        stat(
            "Accounting error",
            "Received less forwarded, dropped and held spans, the largest of all exporters. Anything but 0 "
            "is a mistake of tracegrade.",
            f"max(abs({select('tracegrade_accounting_error_spans')}))",
            thresholds=COUNT_OF_TROUBLE,
            runbook="TracegradeAccountingError",
        ),
        stat(
            "Last self-check that succeeded",
            "How long ago a good and a bad trace were sent through a listener and graded as they must be; "
            "the process where this is longest ago.",
            f"(time() - ({checked} > 0)) or ({checked} * 0 - 1)",
            unit="s",
            thresholds=(("red", None), ("green", 0), ("orange", 120), ("red", 300)),
            mappings={"-1": ("never", "red")},
            runbook="TracegradeSelfCheckFailing",
        ),
        stat(
            "Memory for held spans",
            "Bytes of held spans, queues included, divided by the memory limit; the fullest process. At "
            "100 % senders are rejected and retry.",
            f"max({held} / {limit})",
            unit="percentunit",
            thresholds=FULL,
            runbook="TracegradeBufferNearLimit",
        ),
        stat(
            "Criteria",
            "Whether the criteria in force are those on disk, in all processes.",
            f"min({select('tracegrade_criteria_last_reload_successful')})",
            mappings={"1": ("as on disk", "green"), "0": ("old ones in force", "red")},
            runbook="TracegradeCriteriaReloadFailed",
        ),
    ]


def _spans() -> list[JsonObject]:
    in_buffer = select("tracegrade_spans_held", 'exporter=""')
    in_queues = select("tracegrade_spans_held", 'exporter!=""')
    oldest = select("tracegrade_oldest_held_span_timestamp_seconds")
    return [
        time_series(
            "Spans received, forwarded, late",
            "Spans a second: admitted (duplicates included), delivered by each exporter, and those that "
            "came after their trace was graded (forwarded at once). Beside them traces that went on after a "
            "part of them was graded.",
            [
                Query(rate(select("tracegrade_spans_received_total")), "received"),
                Query(
                    rate(select("tracegrade_spans_forwarded_total"), "exporter"), "forwarded by {{exporter}}"
                ),
                Query(rate(select("tracegrade_late_spans_total")), "late"),
                Query(rate(select("tracegrade_traces_continued_total")), "traces that went on"),
            ],
            unit="cps",
        ),
        time_series(
            "Dropped spans by reason",
            "Spans a second that were admitted and not delivered; without an exporter: before they reached "
            "one. duplicate, conflict and self_check are no losses.",
            [
                Query(
                    rate(select("tracegrade_spans_dropped_total"), "reason", "exporter"),
                    "{{reason}} {{exporter}}",
                )
            ],
            unit="cps",
            runbook="TracegradeSpansDropped",
        ),
        time_series(
            "Refused spans by reason",
            "Spans a second of refused requests, as far as they could be counted, and spans with invalid "
            "ids. Refused for lack of memory or at shutdown: senders come back.",
            [Query(rate(select("tracegrade_spans_refused_total"), "reason"), "{{reason}}")],
            unit="cps",
            width=8,
        ),
        time_series(
            "Requests by answer",
            "Export requests a second, by transport and status code.",
            [Query(rate(select("tracegrade_requests_total"), "transport", "code"), "{{transport}} {{code}}")],
            unit="reqps",
            width=8,
        ),
        time_series(
            "Held spans and verdicts",
            "Spans in the buffer, in each exporter's queue, and kept for grading; log records and spans of "
            "verdicts that wait in a queue.",
            [
                Query(f"sum({in_buffer})", "buffer"),
                Query(f"sum by (exporter) ({in_queues})", "queue of {{exporter}}"),
                Query(f"sum({select('tracegrade_spans_awaiting_verdict')})", "kept for grading"),
                Query(
                    f"sum by (exporter, form) ({select('tracegrade_results_held')})",
                    "verdicts for {{exporter}}: {{form}}",
                ),
            ],
            width=8,
        ),
        time_series(
            "Age of the oldest held span",
            "How long ago the oldest span in the buffer came. It grows for as long as a trace stays open: "
            "up to the grace where its root came, up to the idle timeout where it did not.",
            [Query(f"clamp_min(time() - {oldest}, 0)", "{{instance}}")],
            unit="s",
            runbook="TracegradeGradingUnhealthy",
        ),
        time_series(
            "Accounting error by exporter",
            "Received less forwarded, dropped and held spans. Always 0.",
            [
                Query(
                    f"max by (exporter) (abs({select('tracegrade_accounting_error_spans')}))", "{{exporter}}"
                )
            ],
            runbook="TracegradeAccountingError",
        ),
    ]


def _process() -> list[JsonObject]:
    # Every job that is scraped has metrics of its process.
    ours = f" and on (job, instance) {select('tracegrade_build_info')}"
    resident, cpu = select("process_resident_memory_bytes"), select("process_cpu_seconds_total")
    started = select("process_start_time_seconds")
    held, limit = select("tracegrade_held_bytes"), select("tracegrade_held_limit_bytes")
    return [
        time_series(
            "Memory",
            "Bytes of held spans against their limit, and resident memory, by process.",
            [
                Query(f"max by (instance) ({held})", "held {{instance}}"),
                Query(f"max by (instance) ({limit})", "limit {{instance}}"),
                Query(f"max by (instance) ({resident}{ours})", "resident {{instance}}"),
            ],
            unit="bytes",
            runbook="TracegradeBufferNearLimit",
            width=8,
        ),
        time_series(
            "CPU",
            "Processor seconds a second by process; a process of tracegrade uses little more than one "
            "processor.",
            [Query(f"sum by (instance) (rate({cpu}[$__rate_interval]){ours})", "{{instance}}")],
            unit="percentunit",
            width=8,
        ),
        time_series(
            "Loop lag",
            "How late timers of the event loop fired: half of them, and 99 %. While it is high every "
            "sender waits.",
            [
                Query(quantile(0.5, "tracegrade_event_loop_lag_seconds"), "50 %"),
                Query(quantile(0.99, "tracegrade_event_loop_lag_seconds"), "99 %"),
            ],
            unit="s",
            runbook="TracegradeGradingUnhealthy",
            width=8,
        ),
        time_series(
            "Self-checks by outcome",
            "Self-checks between two points.",
            [
                Query(
                    total(select("tracegrade_self_checks_total"), "outcome", window="$__rate_interval"),
                    "{{outcome}}",
                )
            ],
            bars=True,
            colors={"success": "green", "failure": "red"},
            runbook="TracegradeSelfCheckFailing",
            width=8,
        ),
        time_series(
            "Reloads of criteria by outcome",
            "Reloads between two points. A stale file counts with its last good version.",
            [
                Query(
                    total(select("tracegrade_criteria_reloads_total"), "outcome", window="$__rate_interval"),
                    "{{outcome}}",
                ),
                Query(f"sum({select('tracegrade_criteria_file_stale')})", "stale files"),
            ],
            bars=True,
            runbook="TracegradeCriteriaReloadFailed",
            width=8,
        ),
        time_series(
            "Expired series",
            "Series a second that were taken away because nothing was counted in them for long.",
            [Query(rate(select("tracegrade_series_expired_total")), "expired")],
            unit="cps",
            width=8,
        ),
        time_series(
            "Looks at runs that go on",
            "Processor seconds a second spent on failures that are certain early, at most 0.05, and looks a "
            "second that came more than a second late.",
            [
                Query(rate(select("tracegrade_early_look_seconds_total")), "processor time"),
                Query(rate(select("tracegrade_early_looks_postponed_total")), "postponed"),
            ],
            width=24,
            height=6,
        ),
        table(
            "Processes",
            "Version, native reader, criteria and start of each process. More than one value of criteria: "
            "the processes disagree.",
            [
                Query(f"max by (job, instance, version) ({select('tracegrade_build_info')})", "build"),
                Query(
                    f"max by (job, instance, criteria_hash) ({select('tracegrade_criteria_info')})",
                    "criteria",
                ),
                Query(f"1000 * max by (job, instance) ({started}{ours})", "started"),
                Query(
                    f"max by (job, instance, native_version) ({select('tracegrade_native_info')})", "native"
                ),
            ],
            [
                Column("job", "Job"),
                Column("instance", "Instance"),
                Column("version", "Version"),
                Column("native_version", "Native reader"),
                Column("criteria_hash", "Criteria"),
                Column("started", "Started", "dateTimeAsIso"),
            ],
            sort_by="Instance",
            descending=False,
            height=7,
        ),
    ]
