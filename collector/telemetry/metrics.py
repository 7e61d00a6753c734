"""Every metric of the service, in one table. Nothing else creates an instrument."""

from collector.telemetry.instruments import Counter, Exemplar, Gauge, Histogram, Labels
from processors.model.evaluation_result import NotEvaluatedReason, Outcome, SkipReason
from processors.model.finish_reason import FinishReason

__all__ = ["Counter", "Exemplar", "Gauge", "Histogram", "Labels", "Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
_LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
_EVALUATION_SECONDS = (
    0.00001,
    0.000025,
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.05,
    0.25,
    1,
)


_AGENT, _EVALUATION, _OUTCOME = (
    "gen_ai_agent_name",
    "gen_ai_evaluation_name",
    "gen_ai_evaluation_score_label",
)
_AGENT_VERSION = "gen_ai_agent_version"


class Metrics:
    """The table. Names follow Prometheus; counters get `_total` when they are rendered.

    Args:
        resource_labels: The names of the labels that hold resource attributes of agents, all optional.
    """

    def __init__(self, resource_labels: Labels = ()) -> None:
        run_labels = (_AGENT_VERSION, *resource_labels)
        self.spans_received = Counter("tracegrade_spans_received", "Spans admitted, duplicates included.")
        self.spans_refused = Counter(
            "tracegrade_spans_refused",
            "Spans of refused requests (as far as they could be counted) and spans with invalid ids.",
            ("reason",),
        )
        self.requests = Counter(
            "tracegrade_requests",
            "Export requests answered, by transport and status code.",
            ("transport", "code"),
        )
        self.spans_forwarded = Counter(
            "tracegrade_spans_forwarded", "Spans that an exporter delivered.", ("exporter",)
        )
        self.spans_dropped = Counter(
            "tracegrade_spans_dropped",
            "Spans not delivered; exporter is empty before the fan-out.",
            ("reason", "exporter"),
        )
        self.spans_held = Gauge(
            "tracegrade_spans_held", "Spans in the buffer (exporter empty) and in each queue.", ("exporter",)
        )
        self.spans_awaiting_verdict = Gauge(
            "tracegrade_spans_awaiting_verdict",
            "Spans kept for grading. Where spans are forwarded as they come these are in no other count.",
        )
        self.late_spans = Counter("tracegrade_late_spans", "Spans that came after their trace was finished.")
        self.traces_finished = Counter("tracegrade_traces_finished", "Finished traces.", ("reason",))
        self.traces_held = Gauge("tracegrade_traces_held", "Traces in the buffer.")
        self.held_bytes = Gauge(
            "tracegrade_held_bytes",
            "Bytes of held spans with their resources and scopes, queues included.",
            unit="bytes",
        )
        self.held_bytes_limit = Gauge("tracegrade_held_limit_bytes", "The memory limit.", unit="bytes")
        self.hold_seconds = Histogram(
            "tracegrade_hold_seconds",
            "Time from a trace's first span to its finish.",
            _SECONDS,
            unit="seconds",
        )
        self.oldest_held_span = Gauge(
            "tracegrade_oldest_held_span_timestamp_seconds",
            "Unix time at which the oldest span in the buffer came; that of the scrape while there is none.",
            unit="seconds",
        )
        self.finish_clock_standstill_seconds = Counter(
            "tracegrade_finish_clock_standstill_seconds",
            "Time during which the finish clock stood still because the service could not receive.",
            unit="seconds",
        )
        self.evaluation_seconds = Histogram(
            "tracegrade_evaluation_seconds",
            "Time to rebuild and grade one trace.",
            _EVALUATION_SECONDS,
            unit="seconds",
        )
        self.verdict_delay_seconds = Histogram(
            "tracegrade_verdict_delay_seconds",
            "Time from the end of an agent run, by the sender's clock, to its verdict; backfill left out.",
            _SECONDS,
            unit="seconds",
        )
        self.event_loop_lag_seconds = Histogram(
            "tracegrade_event_loop_lag_seconds",
            "How late a timer of the event loop fired; one sample every 250 ms.",
            _LAG_SECONDS,
            unit="seconds",
        )
        self.traces_failed = Counter(
            "tracegrade_traces_failed", "Traces that could not be evaluated and left unchanged."
        )
        self.evaluations_skipped = Counter(
            "tracegrade_evaluations_skipped", "Evaluations that did not apply to a run.", ("reason",)
        )
        self.not_evaluated = Counter(
            "tracegrade_not_evaluated", "Results without a verdict, by reason.", ("reason",)
        )
        self.worker_failures = Counter(
            "tracegrade_worker_failures",
            "Worker processes of custom evaluators that were ended or did not start, by reason.",
            ("reason",),
        )
        self.foreign_results = Counter(
            "tracegrade_foreign_results", "Evaluation events already on spans that came in."
        )
        self.backfill_results = Counter(
            "tracegrade_backfill_results",
            "Results of traces that came too late for the live series.",
            ("gen_ai_evaluation_score_label",),
        )
        self.agent_runs = Counter(
            "tracegrade_agent_runs",
            "Agent runs seen, graded or not; backfill left out.",
            (_AGENT,),
            optional_labels=run_labels,
        )
        self.tool_calls = Counter(
            "tracegrade_tool_calls",
            "Tool calls seen in agent runs.",
            (_AGENT, "gen_ai_tool_name", "status"),
        )
        self.queue_bytes = Gauge(
            "tracegrade_queue_bytes", "Bytes waiting in a sending queue.", ("exporter",), "bytes"
        )
        self.export_attempts = Counter(
            "tracegrade_export_attempts", "Requests sent to backends, by outcome.", ("exporter", "outcome")
        )
        self.results_exported = Counter(
            "tracegrade_results_exported",
            "Log records (one for each result) and spans of verdicts (one for each graded run) that an "
            "exporter delivered, by form.",
            ("exporter", "form"),
        )
        self.results_held = Gauge(
            "tracegrade_results_held",
            "Log records and spans of verdicts that wait in a queue, by form.",
            ("exporter", "form"),
        )
        self.results_dropped = Counter(
            "tracegrade_results_dropped",
            "Graded runs, log records and spans of verdicts that an exporter could not write or deliver.",
            ("reason", "exporter"),
        )
        self.criteria_reloads = Counter(
            "tracegrade_criteria_reloads", "Reloads of criteria files, by outcome.", ("outcome",)
        )
        self.criteria_last_reload_successful = Gauge(
            "tracegrade_criteria_last_reload_successful",
            "1 while every criteria file in force is the one on disk.",
        )
        self.criteria_info = Gauge(
            "tracegrade_criteria_info", "1 for the criteria in force.", ("criteria_hash",)
        )
        self.build_info = Gauge("tracegrade_build_info", "1, with the version.", ("version",))
        self.accounting_error = Gauge(
            "tracegrade_accounting_error_spans",
            "Received minus forwarded, dropped and held: always 0.",
            ("exporter",),
        )
        self.self_checks = Counter(
            "tracegrade_self_checks",
            "Self-checks, by outcome: traces sent through a listener and graded as they must be, or not.",
            ("outcome",),
        )
        self.self_check_last_success = Gauge(
            "tracegrade_self_check_last_success_timestamp_seconds",
            "Unix time of the last successful self-check, 0 before the first; absent without self-checks.",
            unit="seconds",
        )
        self.evaluation_info = Gauge(
            "tracegrade_evaluation_info",
            "1 for each live evaluation in force of an agent that is known.",
            (_AGENT, _EVALUATION, "evaluator", "evaluator_version", "criteria_hash", "severity"),
            optional_labels=("owner", "contact"),
        )
        self.score = Histogram(
            "gen_ai_evaluation_score",
            "Scores of evaluations that passed or failed.",
            _SCORES,
            (_AGENT, _EVALUATION),
            optional_labels=run_labels,
        )
        self.results = Counter(
            "gen_ai_evaluation_results",
            "Results of evaluations, by outcome.",
            (_AGENT, _EVALUATION, _OUTCOME),
            optional_labels=run_labels,
        )
        self.shadow_score = Histogram(
            "tracegrade_shadow_evaluation_score",
            "Scores of evaluations in shadow; they are in no other series.",
            _SCORES,
            (_AGENT, _EVALUATION),
            optional_labels=run_labels,
        )
        self.shadow_results = Counter(
            "tracegrade_shadow_evaluation_results",
            "Results of evaluations in shadow, by outcome; they are in no other series.",
            (_AGENT, _EVALUATION, _OUTCOME),
            optional_labels=run_labels,
        )
        self.classifications = Counter(
            "tracegrade_classifications",
            "Results of binary and multiclass classification, by expected and predicted class.",
            (_AGENT, _EVALUATION, "expected", "predicted"),
            optional_labels=run_labels,
        )
        self.consecutive_failures = Gauge(
            "tracegrade_consecutive_failures",
            "Live results that failed since the last one that passed, over all versions of the agent.",
            (_AGENT, _EVALUATION),
        )
        self.muted_until = Gauge(
            "tracegrade_evaluation_muted_until_timestamp_seconds",
            "Unix time at which the mute of an evaluation ends; alerts leave it out until then.",
            (_AGENT, _EVALUATION),
            "seconds",
        )
        self.series_expired = Counter(
            "tracegrade_series_expired",
            "Series taken away because nothing was counted in them for long; a histogram is one.",
        )
        for reason in FinishReason:
            self.traces_finished.add(0, reason.value)
        for not_evaluated in NotEvaluatedReason:
            self.not_evaluated.add(0, not_evaluated.value)
        for skipped in SkipReason:
            self.evaluations_skipped.add(0, skipped.value)
        for outcome in Outcome:
            self.backfill_results.add(0, outcome.value)
        for reload in ("success", "failure"):
            self.criteria_reloads.add(0, reload)

    def instruments(self) -> list[Counter | Gauge | Histogram]:
        """All instruments in the order of the table."""
        return list(vars(self).values())
