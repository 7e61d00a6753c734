"""Every metric of the service, in one table, and the kinds of metrics. Nothing else creates an instrument.

Counting is adding to a plain number; everything that costs is left to the scrape.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from collector.trace import Signal
from processors.model import FinishReason, NotEvaluatedReason, Outcome, SkipReason

Labels = tuple[str, ...]
"""Label values of one series, in the order of the instrument's labels.

Optional labels are last. An empty value means that the series does not have the label; empty values at the
end are omitted, so that each series has exactly one tuple.
"""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
_LAG_SECONDS = _SECONDS[: _SECONDS.index(10) + 1]
_SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
_RUN_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
_TOKENS = tuple(4**power for power in range(3, 12))  # as OpenTelemetry advises for gen_ai.client.token.usage
_COSTS = (1e-4, 2.5e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_EVALUATION_SECONDS = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1)


class ObservedSpan:
    """The span behind what one run adds to histograms; `span_id` is empty where only the trace is known.

    `text` is for whoever renders it: most runs are in many exemplars.
    """

    __slots__ = ("span_id", "text", "trace_id", "unix_nano")

    def __init__(self, trace_id: bytes, span_id: bytes, unix_nano: int) -> None:
        self.trace_id = trace_id
        self.span_id = span_id
        self.unix_nano = unix_nano
        self.text: tuple[str, str] | None = None


Exemplar: TypeAlias = tuple[float, ObservedSpan]
"""An observed value, and the span behind it."""


def observed_span(trace_id: bytes, span_id: bytes, unix_nano: int) -> ObservedSpan | None:
    """The span to name, if its ids have 16 and 8 bytes (or there is no span id): a scrape must never fail."""
    is_valid = len(trace_id) == 16 and len(span_id) in (0, 8)
    return ObservedSpan(trace_id, span_id, unix_nano) if is_valid else None


class Instrument:
    """A metric with a fixed list of labels, written `name{label,label}`; `optional_labels` may be left out.

    Its unit is the end of its name: seconds, bytes, or none.
    """

    __slots__ = ("help", "labels", "name", "optional_labels", "removals", "unit", "unseen", "values")

    type: ClassVar[str]
    values: dict[Labels, Any]

    def __init__(self, name_and_labels: str, help_text: str, *, optional_labels: Labels = ()) -> None:
        self.name, _, labels = name_and_labels.rstrip("}").partition("{")
        self.help = help_text
        self.labels = (*filter(None, labels.split(",")), *optional_labels)
        self.optional_labels = optional_labels
        self.unit = next((unit for unit in ("seconds", "bytes") if self.name.endswith(f"_{unit}")), "")
        self.values = {}
        self.removals = 0
        self.unseen: dict[Labels, float] = {}
        """Series that a scrape is to show at 0, and since when they exist."""
        if not self.labels:
            self.begin(())

    def begin(self, labels: Labels) -> None:
        """Show a series at 0; a gauge shows nothing before it is set."""

    def named_labels(self, labels: Labels) -> list[tuple[str, str]]:
        """The labels that the series with these values has, with their names."""
        required = len(self.labels) - len(self.optional_labels)
        return [
            (name, value)
            for position, (name, value) in enumerate(zip(self.labels, labels, strict=False))
            if value or position < required
        ]


class Counter(Instrument):
    """A sum that only grows. Label values are given in the order of `labels`."""

    __slots__ = ()

    type = "counter"
    values: dict[Labels, float]

    def add(self, amount: float, *labels: str) -> None:
        """Add `amount`, not negative; 0 makes the series appear."""
        self.values[labels] = self.values.get(labels, 0) + amount

    def start(self, *values: str, others: Labels = ()) -> None:
        """Show a series at 0 for each of these values of the first label; `others` are the other labels."""
        for value in values:
            self.add(0, value, *others)

    def value(self, *labels: str) -> float:
        """The sum so far, 0 for a series never touched."""
        return self.values.get(labels, 0)

    def shown(self) -> Mapping[Labels, float]:
        """The value of each series as a scrape shows it."""
        return self.values | dict.fromkeys(self.unseen, 0) if self.unseen else self.values

    def remove(self, *labels: str) -> None:
        """Remove a series if it exists."""
        self.values.pop(labels, None)

    def begin(self, labels: Labels) -> None:
        """Show a series at 0."""
        self.values[labels] = 0


class Gauge(Instrument):
    """A value that is set, or read from a function at the time of a scrape."""

    __slots__ = ("functions",)

    type = "gauge"
    values: dict[Labels, float]

    def __init__(self, name_and_labels: str, help_text: str, *, optional_labels: Labels = ()) -> None:
        self.functions: dict[Labels, Callable[[], float]] = {}
        super().__init__(name_and_labels, help_text, optional_labels=optional_labels)

    def set(self, value: float, *labels: str) -> None:
        """Set the value of a series."""
        self.values[labels] = value

    def read_from(self, function: Callable[[], float], *labels: str) -> None:
        """Let every scrape call `function` for the value of a series."""
        self.functions[labels] = function

    def shown(self) -> Mapping[Labels, float]:
        """The value of each series as a scrape shows it."""
        return self.values | {labels: function() for labels, function in self.functions.items()}

    def remove(self, *labels: str) -> None:
        """Remove a series if it exists."""
        self.values.pop(labels, None)
        self.functions.pop(labels, None)

    def value(self, *labels: str) -> float:
        """The value as a scrape would see it, 0 for a series never touched."""
        function = self.functions.get(labels)
        return self.values.get(labels, 0) if function is None else function()


class Histogram(Instrument):
    """Observations in buckets; `values` holds [count per bucket and above the last..., sum] for each series.

    Rows are arrays because a scrape copies all of them at once. `exemplars` holds the last exemplar for each
    of the same buckets; it changes only together with the row.
    """

    __slots__ = ("buckets", "exemplars", "row_bytes")

    type = "histogram"
    values: "dict[Labels, array[float]]"

    def __init__(
        self, name_and_labels: str, help_text: str, buckets: Sequence[float], *, optional_labels: Labels = ()
    ) -> None:
        self.buckets = tuple(buckets)
        self.row_bytes = 8 * (len(self.buckets) + 2)
        self.exemplars: dict[Labels, dict[int, Exemplar]] = {}
        super().__init__(name_and_labels, help_text, optional_labels=optional_labels)

    def observe(self, value: float, *labels: str) -> None:
        """Count one observation."""
        row = self.row(*labels)
        row[bisect_left(self.buckets, value)] += 1
        row[-1] += value

    def row(self, *labels: str) -> "array[float]":
        """The counts of a series, which is created at 0 if it does not exist."""
        row = self.values.get(labels)
        if row is None:
            row = self.values[labels] = array("d", bytes(self.row_bytes))
        return row

    def shown(self) -> Mapping[Labels, bytes]:
        """The packed row of each series as a scrape shows it."""
        unseen, zero = self.unseen, bytes(self.row_bytes)
        return {labels: zero if labels in unseen else row.tobytes() for labels, row in self.values.items()}

    def remove(self, *labels: str) -> None:
        """Remove a series if it exists."""
        if self.values.pop(labels, None) is not None:
            self.removals += 1
        self.exemplars.pop(labels, None)

    def begin(self, labels: Labels) -> None:
        """Show a series at 0."""
        self.row(*labels)


class HistogramSeries:
    """One series of a histogram, for whoever adds to it often; it is created at 0 if it does not exist.

    Once the series was removed it must not be used any more.
    """

    __slots__ = ("_buckets", "_exemplars", "_row", "histogram", "labels")

    def __init__(self, histogram: Histogram, labels: Labels) -> None:
        self.histogram = histogram
        self.labels = labels
        self._buckets = histogram.buckets
        self._row = histogram.row(*labels)
        self._exemplars = histogram.exemplars.get(labels)

    def observe(self, value: float, span: ObservedSpan | None) -> None:
        """Count one observation, and name the span behind it if there is one to name."""
        bucket = bisect_left(self._buckets, value)
        row = self._row
        row[bucket] += 1
        row[-1] += value
        if span is not None:
            if self._exemplars is None:
                self._exemplars = self.histogram.exemplars[self.labels] = {}
            self._exemplars[bucket] = value, span


AnyInstrument: TypeAlias = Counter | Gauge | Histogram


class Books(NamedTuple):
    """What accounts for everything of a signal that is received, and what waits in its queues."""

    received: Counter
    forwarded: Counter
    dropped: Counter
    held: Gauge
    recovered: Counter
    sent_again: Counter
    revoked: Counter | None
    """None where nothing waits that another member of a Kafka group could take over."""
    queue_bytes: Gauge


class Metrics:
    """The table. Names follow Prometheus; counters get `_total` when they are rendered.

    `resource_labels` are those that hold resource attributes of agents, all optional.
    """

    def __init__(self, resource_labels: Labels = ()) -> None:
        run_labels = ("gen_ai_agent_version", *resource_labels)
        self.spans_received = Counter("tracegrade_spans_received", "Spans accepted, including duplicates.")
        self.spans_refused = Counter(
            "tracegrade_spans_refused{reason}",
            "Spans with invalid ids, and spans of refused requests as far as they could be counted.",
        )
        self.requests = Counter("tracegrade_requests{transport,code}", "Export requests.")
        self.metrics_requests_discarded = Counter(
            "tracegrade_metrics_requests_discarded{transport}",
            "Export requests with metrics, which are acknowledged and discarded.",
        )
        self.spans_forwarded = Counter("tracegrade_spans_forwarded{exporter}", "Spans delivered.")
        self.spans_dropped = Counter(
            "tracegrade_spans_dropped{reason,exporter}",
            "Spans not delivered. The exporter label is empty for spans dropped before the fan-out.",
        )
        self.spans_held = Gauge(
            "tracegrade_spans_held{exporter}",
            "Spans in the trace buffer (empty exporter label) and in the queue of each exporter.",
        )
        self.spans_awaiting_verdict = Gauge(
            "tracegrade_spans_awaiting_verdict",
            "Spans retained for grading. In stream mode they are already forwarded and in no other count.",
        )
        self.spans_revoked = Counter(
            "tracegrade_spans_revoked",
            "Spans released ungraded because another member of the Kafka consumer group took over "
            "their partition and counts them as received.",
        )
        self.log_records_received = Counter("tracegrade_log_records_received", "Log records accepted.")
        self.log_records_refused = Counter(
            "tracegrade_log_records_refused{reason}",
            "Log records with invalid ids, and those of refused requests as far as they could be counted.",
        )
        self.log_records_forwarded = Counter(
            "tracegrade_log_records_forwarded{exporter}", "Received log records delivered."
        )
        self.log_records_dropped = Counter(
            "tracegrade_log_records_dropped{reason,exporter}",
            "Received log records not delivered, by reason.",
        )
        self.log_records_held = Gauge(
            "tracegrade_log_records_held{exporter}",
            "Received log records in the queue of each exporter.",
        )
        self.log_records_recovered = Counter(
            "tracegrade_log_records_recovered{exporter}",
            "Log records that an earlier process acknowledged and that were recovered from the journal.",
        )
        self.log_records_awaiting_verdict = Gauge(
            "tracegrade_log_records_awaiting_verdict",
            "Copies of agents' log records retained for grading. The records are forwarded at once.",
        )
        self.log_records_unmatched = Counter(
            "tracegrade_log_records_unmatched{reason}",
            "Copies of agents' log records discarded because their trace did not arrive within "
            "max_trace_age, or there was no room to wait for it.",
        )
        self.late_log_records = Counter(
            "tracegrade_late_log_records", "Agents' log records that arrived after their trace finished."
        )
        self.late_spans = Counter("tracegrade_late_spans", "Spans that arrived after their trace finished.")
        self.traces_continued = Counter(
            "tracegrade_traces_continued",
            "Finished traces that continue a trace of which an earlier part was already graded.",
        )
        self.verdicts_contradicted = Counter(
            "tracegrade_verdicts_contradicted{outcome}",
            "Verdicts that late spans would have changed, by the outcome that was reported. Checked "
            "where root_grace is auto, for spans up to half a minute late.",
        )
        self.late_traces_checked = Counter(
            "tracegrade_late_traces_checked{result}",
            "Graded traces with late spans, by the result of grading them again. not_kept: their "
            "spans were no longer available, or no verdict had been reported.",
        )
        self.learned_root_grace = Gauge(
            "tracegrade_learned_root_grace_seconds{service_name}",
            "How long a trace of the service must be quiet after its root span, where root_grace is "
            "auto and enough traces were observed.",
        )
        self.traces_finished = Counter("tracegrade_traces_finished{reason}", "Finished traces.")
        self.traces_interrupted = Counter(
            "tracegrade_traces_interrupted{reason}",
            "Finished traces whose spans this service may have lost in part. Their runs get a verdict "
            "only where no further span could change it.",
        )
        self.traces_orphaned = Counter(
            "tracegrade_traces_orphaned",
            "Traces interrupted by a change of replicas that lack their root or parent spans, which another "
            "replica has. The other part may look complete and is not counted.",
        )
        self.cluster_peers = Gauge(
            "tracegrade_cluster_peers",
            "Replicas in the last valid answer for `cluster.peers_dns`, or configured replicas.",
        )
        self.cluster_changes = Counter(
            "tracegrade_cluster_changes{kind}",
            "Changes of the set of replicas. change: traces in progress are interrupted; flap: they are not.",
        )
        self.cluster_resolve_problems = Counter(
            "tracegrade_cluster_resolve_problems{reason}",
            "Lookups of `cluster.peers_dns` that left the set unchanged (failed, empty, truncated), or may "
            "be cached beyond `cluster.name_ttl` or as long as `cluster.resolver_interval` (long_ttl).",
        )
        self.traces_held = Gauge("tracegrade_traces_held", "Traces in the trace buffer.")
        self.held_bytes = Gauge(
            "tracegrade_held_bytes",
            "Bytes of held spans with their resources and scopes, and of queued results and spans.",
        )
        self.held_bytes_limit = Gauge("tracegrade_held_limit_bytes", "Memory limit for held bytes.")
        self.hold_seconds = Histogram(
            "tracegrade_hold_seconds", "Time from the first span of a trace until it finished.", _SECONDS
        )
        self.oldest_held_span = Gauge(
            "tracegrade_oldest_held_span_timestamp_seconds",
            "Arrival (Unix time) of the oldest span in the trace buffer; the current time if it is empty.",
        )
        self.finish_clock_standstill_seconds = Counter(
            "tracegrade_finish_clock_standstill_seconds",
            "Time for which the finish clock was stopped because the service could not receive spans.",
        )
        self.evaluation_seconds = Histogram(
            "tracegrade_evaluation_seconds",
            "Time to reconstruct and grade the runs of one trace.",
            _EVALUATION_SECONDS,
        )
        self.verdict_delay_seconds = Histogram(
            "tracegrade_verdict_delay_seconds",
            "Time from the end of an agent run, by the sender's clock, to its verdict. Excludes backfill.",
            _SECONDS,
        )
        self.event_loop_lag_seconds = Histogram(
            "tracegrade_event_loop_lag_seconds",
            "Delay of an event loop timer, sampled every 250 ms.",
            _LAG_SECONDS,
        )
        self.traces_failed = Counter(
            "tracegrade_traces_failed", "Traces that could not be evaluated and were forwarded unchanged."
        )
        self.evaluations_skipped = Counter(
            "tracegrade_evaluations_skipped{reason}", "Evaluations that did not apply to a run."
        )
        self.not_evaluated = Counter("tracegrade_not_evaluated{reason}", "Results without a verdict.")
        self.worker_failures = Counter(
            "tracegrade_worker_failures{reason}",
            "Grading and custom evaluator processes that failed to start or had to be terminated, by reason.",
        )
        self.foreign_results = Counter(
            "tracegrade_foreign_results",
            "Evaluation events that received spans already had, and log records that are such events.",
        )
        self.backfill_results = Counter(
            "tracegrade_backfill_results{gen_ai_evaluation_score_label}",
            "Results of traces that arrived too late for the live series.",
        )
        self.agent_runs = Counter(
            "tracegrade_agent_runs{gen_ai_agent_name}",
            "Agent runs, graded or not. Excludes backfill.",
            optional_labels=run_labels,
        )
        self.run_duration_seconds = Histogram(
            "tracegrade_agent_run_duration_seconds{gen_ai_agent_name}",
            "Duration of agent runs whose spans all arrived. Excludes backfill.",
            _RUN_SECONDS,
            optional_labels=run_labels,
        )
        self.run_tokens = Histogram(
            "tracegrade_agent_run_tokens{gen_ai_agent_name,gen_ai_token_type}",
            "Input and output tokens of the model calls of an agent run, for runs whose telemetry "
            "reports them and whose spans all arrived. Excludes backfill.",
            _TOKENS,
            optional_labels=run_labels,
        )
        self.run_cost = Histogram(
            "tracegrade_agent_run_cost{gen_ai_agent_name}",
            "Cost of an agent run in the currency of the configured prices, where tokens and prices "
            "are known and all spans arrived. Excludes backfill.",
            _COSTS,
            optional_labels=run_labels,
        )
        self.tool_calls = Counter(
            "tracegrade_tool_calls{gen_ai_agent_name,gen_ai_tool_name,status}", "Tool calls of agent runs."
        )
        self.queue_bytes = Gauge("tracegrade_queue_bytes{exporter}", "Bytes in a sending queue of spans.")
        self.log_records_queue_bytes = Gauge(
            "tracegrade_log_records_queue_bytes{exporter}",
            "Bytes in a sending queue of received log records.",
        )
        self.bytes_in_flight = Gauge(
            "tracegrade_in_flight_bytes", "Bytes of messages being received that arrive in several pieces."
        )
        self.bytes_in_flight_limit = Gauge(
            "tracegrade_in_flight_limit_bytes", "Limit for bytes in flight, beyond which senders wait."
        )
        self.dead_letters = Counter(
            "tracegrade_dead_letters{exporter,outcome}",
            "Spans, evaluation spans and log records permanently rejected by a backend: kept in the dead "
            "letter file, not written (full, failed), or removed unsent (expired).",
        )
        self.export_attempts = Counter(
            "tracegrade_export_attempts{exporter,outcome}", "Requests sent to backends, by outcome."
        )
        self.results_exported = Counter(
            "tracegrade_results_exported{exporter,form}",
            "Log records and scores (one per result) and evaluation spans (one per graded run) "
            "delivered by an exporter, by form.",
        )
        self.results_held = Gauge(
            "tracegrade_results_held{exporter,form}",
            "Log records, scores and evaluation spans waiting in a queue, by form.",
        )
        self.results_dropped = Counter(
            "tracegrade_results_dropped{reason,exporter}",
            "Graded runs, log records, scores and evaluation spans that were not written or delivered.",
        )
        self.spans_recovered = Counter(
            "tracegrade_spans_recovered{exporter}",
            "Spans that an earlier process acknowledged and that were recovered from the journal. The "
            "exporter label is empty for spans that no exporter had delivered.",
        )
        self.spans_sent_again = Counter(
            "tracegrade_spans_sent_again{exporter}",
            "Spans that were being exported during a crash and were sent again, perhaps a second time.",
        )
        self.log_records_sent_again = Counter(
            "tracegrade_log_records_sent_again{exporter}",
            "Log records that were being exported during a crash and were sent again, perhaps a second time.",
        )
        self.kafka_records = Counter(
            "tracegrade_kafka_records{outcome}",
            "Records read from Kafka: admitted, delivered_before (read again after a rebalance), "
            "malformed or oversized (skipped permanently).",
        )
        self.kafka_untrusted_keys = Counter(
            "tracegrade_kafka_untrusted_keys{reason}",
            "Records whose key is missing or is not the id of their only trace (foreign). Their "
            "traces may be spread over several partitions and are interrupted.",
        )
        self.kafka_lag = Gauge(
            "tracegrade_kafka_lag_records{partition}",
            "Unread records of a partition. Those of log records have their topic as a label.",
            optional_labels=("topic",),
        )
        self.kafka_uncommitted = Gauge(
            "tracegrade_kafka_uncommitted_records{partition}",
            "Records of a partition from the first undelivered one to the last one read.",
            optional_labels=("topic",),
        )
        self.kafka_partitions = Gauge(
            "tracegrade_kafka_partitions{state}",
            "Partitions assigned to this process, and those paused because exporters fall behind.",
            optional_labels=("topic",),
        )
        self.kafka_rebalances = Counter(
            "tracegrade_kafka_rebalances{kind}",
            "Partitions assigned to this process, revoked from it, or lost because it did not respond.",
        )
        self.kafka_commits = Counter("tracegrade_kafka_commits{outcome}", "Offset commits, by outcome.")
        self.kafka_offsets_out_of_range = Counter(
            "tracegrade_kafka_offsets_out_of_range",
            "How often Kafka deleted records before they were read. Their spans are lost.",
        )
        self.kafka_errors = Counter(
            "tracegrade_kafka_errors{error}", "Errors reported by the Kafka client, by error name."
        )
        self.journal_bytes = Gauge(
            "tracegrade_journal_bytes",
            "Approximate disk space used by journalled spans. Absent without a journal.",
        )
        self.journal_limit_bytes = Gauge(
            "tracegrade_journal_limit_bytes", "Limit for journalled spans. Absent without a journal."
        )
        self.journal_commit_seconds = Histogram(
            "tracegrade_journal_commit_seconds",
            "Time until a group of requests was written to disk.",
            _LAG_SECONDS,
        )
        self.journal_failures = Counter("tracegrade_journal_failures{reason}", "Failed journal transactions.")
        self.store_bytes = Gauge(
            "tracegrade_store_bytes",
            "Space used by stored runs, including indices. Absent without a run store.",
        )
        self.store_limit_bytes = Gauge(
            "tracegrade_store_limit_bytes",
            "Limit for stored runs, beyond which the oldest are removed. Absent without a run store.",
        )
        self.store_runs = Counter(
            "tracegrade_store_runs{outcome}",
            "Runs written to the run store, and runs removed from it because of their age or to make room.",
        )
        self.reviewed_failures = Gauge(
            "tracegrade_reviewed_failures{gen_ai_agent_name,gen_ai_evaluation_name,answer}",
            "Failures in the run store that people answered, by whether they find them right.",
        )
        self.store_failures = Counter(
            "tracegrade_store_failures",
            "Failed writes to the run store. Runs are still graded but not stored until the disk recovers.",
        )
        self.traces_quarantined = Counter(
            "tracegrade_traces_quarantined",
            "Traces that made processes crash repeatedly and were forwarded ungraded.",
        )
        self.criteria_reloads = Counter("tracegrade_criteria_reloads{outcome}", "Reloads of criteria files.")
        self.criteria_last_reload_successful = Gauge(
            "tracegrade_criteria_last_reload_successful",
            "1 while every criteria file is in force as it is on disk.",
        )
        self.criteria_file_stale = Gauge(
            "tracegrade_criteria_file_stale{file}",
            "1 while the last valid version of a criteria file is in force, not the one on disk, else 0.",
        )
        self.criteria_info = Gauge("tracegrade_criteria_info{criteria_hash}", "1 for the criteria in force.")
        self.build_info = Gauge("tracegrade_build_info{version}", "1, labelled with the version.")
        self.native_info = Gauge(
            "tracegrade_native_info{native_version,reason}",
            "1 where the reader in Rust is in use, 0 where it is not, with the reason.",
        )
        self.accounting_error = Gauge(
            "tracegrade_accounting_error_spans{exporter}",
            "Spans received minus spans forwarded, dropped and held: always 0.",
        )
        self.log_records_accounting_error = Gauge(
            "tracegrade_accounting_error_log_records{exporter}",
            "Log records received minus log records forwarded, dropped and held: always 0.",
        )
        self.self_checks = Counter(
            "tracegrade_self_checks{outcome}",
            "Self-checks, by outcome: whether traces sent through a listener were graded as expected.",
        )
        self.self_check_last_success = Gauge(
            "tracegrade_self_check_last_success_timestamp_seconds",
            "Unix time of the last successful self-check, 0 before the first. Absent without self-checks.",
        )
        self.evaluation_info = Gauge(
            "tracegrade_evaluation_info{gen_ai_agent_name,gen_ai_evaluation_name,"
            "evaluator,evaluator_version,criteria_hash,severity}",
            "1 for each live evaluation in force of a known agent.",
            optional_labels=("owner", "contact"),
        )
        self.agents_without_criteria = Gauge(
            "tracegrade_agents_without_criteria{gen_ai_agent_name}",
            "1 for each agent, observed or named in criteria, to which no evaluation applies.",
        )
        self.agents_without_content = Gauge(
            "tracegrade_agents_without_content{gen_ai_agent_name,dialect}",
            "1 for each agent in whose last run evaluations lacked content that was not captured.",
        )
        self.score = Histogram(
            "gen_ai_evaluation_score{gen_ai_agent_name,gen_ai_evaluation_name}",
            "Scores of evaluations that passed or failed.",
            _SCORES,
            optional_labels=run_labels,
        )
        self.results = Counter(
            "gen_ai_evaluation_results{gen_ai_agent_name,gen_ai_evaluation_name,"
            "gen_ai_evaluation_score_label}",
            "Evaluation results, by outcome.",
            optional_labels=run_labels,
        )
        self.shadow_score = Histogram(
            "tracegrade_shadow_evaluation_score{gen_ai_agent_name,gen_ai_evaluation_name}",
            "Scores of shadow evaluations, which are in no other series.",
            _SCORES,
            optional_labels=run_labels,
        )
        self.shadow_results = Counter(
            "tracegrade_shadow_evaluation_results{gen_ai_agent_name,gen_ai_evaluation_name,"
            "gen_ai_evaluation_score_label}",
            "Results of shadow evaluations, by outcome, which are in no other series.",
            optional_labels=run_labels,
        )
        self.classifications = Counter(
            "tracegrade_classifications{gen_ai_agent_name,gen_ai_evaluation_name,expected,predicted}",
            "Results of binary and multiclass classification, by expected and predicted class.",
            optional_labels=run_labels,
        )
        self.consecutive_failures = Gauge(
            "tracegrade_consecutive_failures{gen_ai_agent_name,gen_ai_evaluation_name}",
            "Failed live results since the last one that passed, over all versions of the agent.",
        )
        self.early_failures = Counter(
            "tracegrade_early_failures{gen_ai_agent_name,gen_ai_evaluation_name}",
            "Failures of early evaluations that were certain while the agent's run went on, each once.",
        )
        self.early_look_seconds = Counter(
            "tracegrade_early_look_seconds",
            "Processor time spent on traces that go on, in search of early failures: at most a twentieth.",
        )
        self.early_looks_postponed = Counter(
            "tracegrade_early_looks_postponed",
            "Looks at traces that go on which came more than a second late, since that time was used up.",
        )
        self.muted_until = Gauge(
            "tracegrade_evaluation_muted_until_timestamp_seconds{gen_ai_agent_name,gen_ai_evaluation_name}",
            "Unix time until which an evaluation is muted and alerts exclude it.",
        )
        self.series_expired = Counter(
            "tracegrade_series_expired",
            "Series removed because they were idle for long. A histogram counts as one.",
        )
        self.traces_finished.start(*map(str, FinishReason))
        self.not_evaluated.start(*map(str, NotEvaluatedReason))
        self.evaluations_skipped.start(*map(str, SkipReason))
        self.backfill_results.start(*map(str, Outcome))
        self.criteria_reloads.start("success", "failure")

    def books(self, signal: Signal) -> "Books":
        """What accounts for the spans, or for the log records, that are received."""
        if signal == "traces":
            return Books(
                received=self.spans_received,
                forwarded=self.spans_forwarded,
                dropped=self.spans_dropped,
                held=self.spans_held,
                recovered=self.spans_recovered,
                sent_again=self.spans_sent_again,
                revoked=self.spans_revoked,
                queue_bytes=self.queue_bytes,
            )
        return Books(
            received=self.log_records_received,
            forwarded=self.log_records_forwarded,
            dropped=self.log_records_dropped,
            held=self.log_records_held,
            recovered=self.log_records_recovered,
            sent_again=self.log_records_sent_again,
            revoked=None,
            queue_bytes=self.log_records_queue_bytes,
        )

    def instruments(self) -> list[AnyInstrument]:
        """All instruments in the order of the table."""
        return list(vars(self).values())
