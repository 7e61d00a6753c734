"""Grading and delivery: the middle of the dashboard *Service health*."""

from deploy.grafana.generator.panels import (
    Query,
    heatmap,
    time_series,
)
from deploy.grafana.generator.promql import quantile, rate, select, total
from processors.model import JsonObject

FULL = (("green", None), ("orange", 0.7), ("red", 0.9))
"""Colours of what fills up."""


def grading() -> list[JsonObject]:
    """How long traces wait and grading takes, and what comes out of it."""
    return [
        time_series(
            "Finished traces by reason",
            "Traces a second. pressure, over_limit, max_age and shutdown cut traces short: their runs are "
            "mostly not evaluated.",
            [Query(rate(select("tracegrade_traces_finished_total"), "reason"), "{{reason}}")],
            unit="cps",
            width=8,
        ),
        time_series(
            "Verdict delay",
            "From the end of an agent run, by the sender's clock, to its verdict: half of the runs, and 99 "
            "%.",
            [
                Query(quantile(0.5, "tracegrade_verdict_delay_seconds"), "50 %"),
                Query(quantile(0.99, "tracegrade_verdict_delay_seconds"), "99 %"),
            ],
            unit="s",
            runbook="TracegradeGradingUnhealthy",
            width=8,
        ),
        heatmap(
            "Hold time",
            "How long traces were held, from their first span to their finish: traces by bucket between "
            "two points.",
            Query(total(select("tracegrade_hold_seconds_bucket"), "le", window="$__rate_interval"), "{{le}}"),
            unit="s",
            width=8,
        ),
        time_series(
            "Evaluation time of a trace",
            "The work of rebuilding and grading one trace: half of the traces, and 99 %.",
            [
                Query(quantile(0.5, "tracegrade_evaluation_seconds"), "50 %"),
                Query(quantile(0.99, "tracegrade_evaluation_seconds"), "99 %"),
            ],
            unit="s",
            width=8,
        ),
        time_series(
            "Results without a verdict, by reason",
            "Results a second that are neither pass nor fail. incomplete_trace, interrupted and over_limit "
            "speak of the service or its senders, content_not_captured of what the agent's telemetry leaves "
            "out.",
            [Query(rate(select("tracegrade_not_evaluated_total"), "reason"), "{{reason}}")],
            unit="cps",
            runbook="AgentEvaluationsNotEvaluated",
            width=8,
        ),
        time_series(
            "Interrupted traces by reason",
            "Traces a second of which spans may have been lost on the service's side: begun before it took "
            "spans, open during an outage, refused and not sent again, or under way while the replicas "
            "changed (orphaned: of these, parts without root or parents). Their runs are not evaluated.",
            [
                Query(rate(select("tracegrade_traces_interrupted_total"), "reason"), "{{reason}}"),
                Query(rate(select("tracegrade_traces_orphaned_total")), "orphaned"),
            ],
            unit="cps",
            runbook="TracegradeTracesInterrupted",
            width=8,
        ),
        time_series(
            "Replicas as each of them sees them",
            "How many replicas there are by the name that they share or by the list, and changes and "
            "problems of that name between two points; nothing where there is only one.",
            [
                Query(select("tracegrade_cluster_peers"), "{{instance}}"),
                Query(
                    total(select("tracegrade_cluster_changes_total"), "kind", window="$__rate_interval"),
                    "{{kind}}",
                ),
                Query(
                    total(
                        select("tracegrade_cluster_resolve_problems_total"),
                        "reason",
                        window="$__rate_interval",
                    ),
                    "{{reason}}",
                ),
            ],
            runbook="TracegradePeersUncertain",
            width=8,
        ),
        time_series(
            "Skipped evaluations by reason",
            "Evaluations a second that did not apply to a run, or were not drawn by their sample.",
            [Query(rate(select("tracegrade_evaluations_skipped_total"), "reason"), "{{reason}}")],
            unit="cps",
            width=8,
        ),
        time_series(
            "Grading that broke",
            "Traces a second that could not be evaluated and left unchanged, and worker processes of "
            "custom evaluators that were ended or did not start.",
            [
                Query(rate(select("tracegrade_traces_failed_total")), "traces"),
                Query(rate(select("tracegrade_worker_failures_total"), "reason"), "workers: {{reason}}"),
            ],
            unit="cps",
            runbook="TracegradeGradingUnhealthy",
            width=8,
        ),
        time_series(
            "Backfill and foreign results",
            "Results a second of traces that came too late for the live series, by outcome, and evaluation "
            "events that were on spans when they came.",
            [
                Query(
                    rate(select("tracegrade_backfill_results_total"), "gen_ai_evaluation_score_label"),
                    "backfill: {{gen_ai_evaluation_score_label}}",
                ),
                Query(rate(select("tracegrade_foreign_results_total")), "foreign"),
            ],
            unit="cps",
            width=8,
        ),
        time_series(
            "Traces held, and standstill of the finish clock",
            "Traces in the buffer; and the share of time in which no trace could get old because the "
            "service could not receive.",
            [
                Query(f"sum({select('tracegrade_traces_held')})", "traces held"),
                Query(
                    f"max by (instance) (rate({select('tracegrade_finish_clock_standstill_seconds_total')}"
                    "[$__rate_interval]))",
                    "standstill {{instance}}",
                ),
            ],
            width=8,
        ),
        time_series(
            "Learned waits",
            "How long a trace of a service must be quiet after its root, where root_grace is auto; nothing "
            "until enough was seen. The longest ten.",
            [
                Query(
                    f"topk(10, max by (service_name) ({select('tracegrade_learned_root_grace_seconds')}))",
                    "{{service_name}}",
                )
            ],
            unit="s",
            width=12,
        ),
        time_series(
            "Verdicts that late spans would have changed",
            "A second, by what was said, and graded traces with late spans by what grading them again came "
            "to; where root_grace is auto.",
            [
                Query(rate(select("tracegrade_verdicts_contradicted_total"), "outcome"), "{{outcome}}"),
                Query(rate(select("tracegrade_late_traces_checked_total"), "result"), "traces {{result}}"),
            ],
            unit="cps",
            runbook="TracegradeVerdictsContradicted",
            width=12,
        ),
    ]


def delivery() -> list[JsonObject]:
    """What waits for the backends, and what they answer."""
    queue, limit = select("tracegrade_queue_bytes"), select("tracegrade_held_limit_bytes")
    in_flight = f"{select('tracegrade_in_flight_bytes')} / {select('tracegrade_in_flight_limit_bytes')}"
    return [
        time_series(
            "Sending queues",
            "Bytes waiting in each exporter's queue, divided by the memory limit, and of requests being "
            "received by theirs; the fullest process.",
            [
                Query(
                    f"max by (exporter) ({queue} / on (job, instance) group_left () {limit})",
                    "{{exporter}}",
                ),
                Query(f"max ({in_flight})", "being received"),
            ],
            unit="percentunit",
            thresholds=FULL,
            runbook="TracegradeQueueNearLimit",
            width=8,
        ),
        time_series(
            "Export attempts by outcome",
            "Requests a second to each backend. retry: it did not answer or asked to wait, and is asked "
            "again. Dead letters are spans and verdicts a second that it refused for good, by whether the "
            "file has them.",
            [
                Query(
                    rate(select("tracegrade_export_attempts_total"), "exporter", "outcome"),
                    "{{exporter}} {{outcome}}",
                ),
                Query(
                    rate(select("tracegrade_dead_letters_total"), "exporter", "outcome"),
                    "dead letters: {{exporter}} {{outcome}}",
                ),
            ],
            unit="reqps",
            width=8,
        ),
        time_series(
            "Verdicts delivered apart from spans",
            "Log records and spans of verdicts a second that exporters delivered, by form, and what they "
            "could not write or deliver.",
            [
                Query(
                    rate(select("tracegrade_results_exported_total"), "exporter", "form"),
                    "{{exporter}} {{form}}",
                ),
                Query(
                    rate(select("tracegrade_results_dropped_total"), "reason", "exporter"),
                    "dropped: {{reason}} {{exporter}}",
                ),
            ],
            unit="cps",
            runbook="TracegradeRunsNotStored",
            width=8,
        ),
    ]


def durability() -> list[JsonObject]:
    """The journal, where there is one, and what restarts found in it."""
    journal, limit = select("tracegrade_journal_bytes"), select("tracegrade_journal_limit_bytes")
    return [
        time_series(
            "Journal",
            "What journalled spans take, divided by their limit; the fullest process.",
            [Query(f"max({journal} / {limit})", "used")],
            unit="percentunit",
            thresholds=FULL,
            runbook="TracegradeJournalUnhealthy",
            width=8,
        ),
        time_series(
            "Journal commits",
            "Until the disk had what a group of requests brought: half of the groups, and 99 %; failures a "
            "second by reason.",
            [
                Query(quantile(0.5, "tracegrade_journal_commit_seconds"), "50 %"),
                Query(quantile(0.99, "tracegrade_journal_commit_seconds"), "99 %"),
                Query(rate(select("tracegrade_journal_failures_total"), "reason"), "failures: {{reason}}"),
            ],
            unit="s",
            width=8,
        ),
        time_series(
            "Found after a restart",
            "Spans that a process before had acknowledged, those of them that go to an exporter again, and "
            "traces that are not graded because grading them crashed the process twice.",
            [
                Query(
                    f"sum(increase({select('tracegrade_spans_recovered_total')}[$__rate_interval]))",
                    "recovered",
                ),
                Query(
                    f"sum(increase({select('tracegrade_spans_sent_again_total')}[$__rate_interval]))",
                    "sent again",
                ),
                Query(
                    f"sum(increase({select('tracegrade_traces_quarantined_total')}[$__rate_interval]))",
                    "quarantined traces",
                ),
            ],
            runbook="TracegradeTracesQuarantined",
            width=8,
        ),
        time_series(
            "Store of runs",
            "What the store takes, divided by its limit: at about four fifths of it the oldest runs go. Runs "
            "written and removed a second, and how often the disk failed it.",
            [
                Query(
                    f"max({select('tracegrade_store_bytes')} / {select('tracegrade_store_limit_bytes')})",
                    "used",
                ),
                Query(rate(select("tracegrade_store_runs_total"), "outcome"), "{{outcome}}"),
                Query(rate(select("tracegrade_store_failures_total")), "failures"),
            ],
            unit="short",
            width=8,
        ),
    ]


def log_records() -> list[JsonObject]:
    """Received log records, where senders send any."""
    queue, limit = select("tracegrade_log_records_queue_bytes"), select("tracegrade_held_limit_bytes")
    return [
        time_series(
            "Log records received and forwarded",
            "Log records a second: admitted, delivered by each exporter, and those recovered from the "
            "journal or sent again after a crash.",
            [
                Query(rate(select("tracegrade_log_records_received_total")), "received"),
                Query(
                    rate(select("tracegrade_log_records_forwarded_total"), "exporter"),
                    "forwarded by {{exporter}}",
                ),
                Query(rate(select("tracegrade_log_records_recovered_total")), "recovered"),
                Query(rate(select("tracegrade_log_records_sent_again_total")), "sent again"),
            ],
            unit="cps",
            width=8,
        ),
        time_series(
            "Log records refused and dropped",
            "Log records a second that were refused, or admitted and not delivered, by reason. Requests with "
            "metrics are discarded.",
            [
                Query(rate(select("tracegrade_log_records_refused_total"), "reason"), "refused: {{reason}}"),
                Query(
                    rate(select("tracegrade_log_records_dropped_total"), "reason", "exporter"),
                    "dropped: {{reason}} {{exporter}}",
                ),
                Query(
                    rate(select("tracegrade_metrics_requests_discarded_total"), "transport"),
                    "metrics over {{transport}}",
                ),
            ],
            unit="cps",
            runbook="TracegradeLogRecordsDropped",
            width=8,
        ),
        time_series(
            "Log records that wait",
            "Log records in each exporter's queue, their bytes divided by the memory limit, and what is "
            "received less what is forwarded, dropped and held, which is always 0. Copies of agents' records "
            "that wait to be graded, and those a second that came too late or whose trace did not come.",
            [
                Query(f"sum by (exporter) ({select('tracegrade_log_records_held')})", "{{exporter}}"),
                Query(
                    f"max by (exporter) ({queue} / on (job, instance) group_left () {limit})",
                    "{{exporter}}: part of the limit",
                ),
                Query(
                    f"max by (exporter) (abs({select('tracegrade_accounting_error_log_records')}))",
                    "{{exporter}}: unaccounted for",
                ),
                Query(f"sum({select('tracegrade_log_records_awaiting_verdict')})", "copies for grading"),
                Query(rate(select("tracegrade_late_log_records_total")), "late"),
                Query(
                    rate(select("tracegrade_log_records_unmatched_total"), "reason"), "unmatched: {{reason}}"
                ),
            ],
            width=8,
        ),
    ]


def kafka() -> list[JsonObject]:
    """The group that reads from Kafka, where there is one."""
    return [
        time_series(
            "Lag in Kafka",
            "Records of the partitions of each process that it has not read yet, and those read and not "
            "committed because their spans are not delivered.",
            [
                Query(
                    f"sum by (instance) ({select('tracegrade_kafka_lag_records')})", "{{instance}}: unread"
                ),
                Query(
                    f"sum by (instance) ({select('tracegrade_kafka_uncommitted_records')})",
                    "{{instance}}: uncommitted",
                ),
            ],
            runbook="TracegradeKafkaLag",
            width=8,
        ),
        time_series(
            "Records from Kafka",
            "Records a second by what became of them, those whose key is not the id of their trace, and "
            "commits of offsets and errors of the client.",
            [
                Query(rate(select("tracegrade_kafka_records_total"), "outcome"), "{{outcome}}"),
                Query(rate(select("tracegrade_kafka_untrusted_keys_total"), "reason"), "key: {{reason}}"),
                Query(rate(select("tracegrade_kafka_commits_total"), "outcome"), "commits: {{outcome}}"),
                Query(rate(select("tracegrade_kafka_errors_total"), "error"), "errors: {{error}}"),
            ],
            unit="cps",
            runbook="TracegradeKafkaKeysUntrusted",
            width=8,
        ),
        time_series(
            "Partitions of Kafka",
            "Partitions that each process reads, and has paused; and between two points those that went from "
            "one to another, and spans let go of with them.",
            [
                Query(select("tracegrade_kafka_partitions"), "{{instance}}: {{state}}"),
                Query(
                    total(select("tracegrade_kafka_rebalances_total"), "kind", window="$__rate_interval"),
                    "{{kind}}",
                ),
                Query(
                    f"sum(increase({select('tracegrade_spans_revoked_total')}[$__rate_interval]))",
                    "revoked spans",
                ),
            ],
            runbook="TracegradeKafkaPaused",
            width=8,
        ),
        time_series(
            "Records of Kafka that were not taken",
            "Records that hold no request or are too large, and times that records were gone before they "
            "were read, between two points.",
            [
                Query(
                    total(
                        select("tracegrade_kafka_records_total", 'outcome=~"malformed|oversized"'),
                        "outcome",
                        window="$__rate_interval",
                    ),
                    "{{outcome}}",
                ),
                Query(
                    total(select("tracegrade_kafka_offsets_out_of_range_total"), window="$__rate_interval"),
                    "gone",
                ),
            ],
            runbook="TracegradeKafkaRecordsLost",
            width=8,
        ),
    ]
