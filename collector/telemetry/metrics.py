"""Every metric of the service, in one table. Nothing else creates an instrument.

Counting is adding to a plain number; everything that costs is left to the scrape.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from processors.evaluation_result import NotEvaluatedReason, Outcome, SkipReason
from processors.finish_reason import FinishReason

Labels = tuple[str, ...]


class Exemplar(NamedTuple):
    """The span behind one observation; `span_id` is empty where only the trace is known."""

    value: float
    trace_id: bytes
    span_id: bytes
    unix_nano: int


class Instrument:
    """A named metric with a fixed list of labels."""

    __slots__ = ("help", "labels", "name", "type", "unit")

    def __init__(
        self,
        kind: Literal["counter", "gauge", "histogram"],
        name: str,
        help_text: str,
        labels: Labels,
        unit: str,
    ) -> None:
        self.type = kind
        self.name = name
        self.help = help_text
        self.labels = labels
        self.unit = unit


class Counter(Instrument):
    """A sum that only grows. Label values are given in the order of `labels`."""

    __slots__ = ("values",)

    def __init__(self, name: str, help_text: str, labels: Labels = (), unit: str = "") -> None:
        super().__init__("counter", name, help_text, labels, unit)
        self.values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, amount: float, *labels: str) -> None:
        """Add `amount`, not negative; 0 makes the series appear."""
        self.values[labels] = self.values.get(labels, 0) + amount

    def value(self, *labels: str) -> float:
        """The sum so far, 0 for a series never touched."""
        return self.values.get(labels, 0)


class Gauge(Instrument):
    """A value that is set, or read from a function at the time of a scrape."""

    __slots__ = ("functions", "values")

    def __init__(self, name: str, help_text: str, labels: Labels = (), unit: str = "") -> None:
        super().__init__("gauge", name, help_text, labels, unit)
        self.values: dict[Labels, float] = {}
        self.functions: dict[Labels, Callable[[], float]] = {}

    def set(self, value: float, *labels: str) -> None:
        """Set the value of a series."""
        self.values[labels] = value

    def read_from(self, function: Callable[[], float], *labels: str) -> None:
        """Let every scrape ask `function` for the value of a series."""
        self.functions[labels] = function

    def remove(self, *labels: str) -> None:
        """Let a series disappear, if it is there."""
        self.values.pop(labels, None)
        self.functions.pop(labels, None)

    def value(self, *labels: str) -> float:
        """The value as a scrape would see it, 0 for a series never touched."""
        function = self.functions.get(labels)
        return self.values.get(labels, 0) if function is None else function()


class Histogram(Instrument):
    """Observations in buckets; `values` holds [count per bucket and above the last..., sum].

    `exemplars` holds the last exemplar for each of the same buckets.
    """

    __slots__ = ("buckets", "exemplars", "values")

    def __init__(
        self, name: str, help_text: str, buckets: Sequence[float], labels: Labels = (), unit: str = ""
    ) -> None:
        super().__init__("histogram", name, help_text, labels, unit)
        self.buckets = tuple(buckets)
        self.values: dict[Labels, list[float]] = {}
        self.exemplars: dict[Labels, dict[int, Exemplar]] = {}
        if not labels:
            self.row()

    def observe(self, value: float, *labels: str) -> None:
        """Count one observation."""
        row = self.row(*labels)
        row[bisect_left(self.buckets, value)] += 1
        row[-1] += value

    def attach_exemplar(self, exemplar: Exemplar, *labels: str) -> None:
        """Name the span behind the last observation in a bucket.

        An exemplar whose ids are not 16 and 8 bytes (or no span id) is left out: a scrape must never fail.
        """
        if len(exemplar.trace_id) == 16 and len(exemplar.span_id) in (0, 8):
            last = self.exemplars.get(labels)
            if last is None:
                last = self.exemplars[labels] = {}
            last[bisect_left(self.buckets, exemplar.value)] = exemplar

    def row(self, *labels: str) -> list[float]:
        """The counts of a series (made at 0 if need be)."""
        row = self.values.get(labels)
        if row is None:
            row = self.values[labels] = [0.0] * (len(self.buckets) + 2)
        return row


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
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


class Metrics:
    """The table. Names follow Prometheus; counters get `_total` when they are rendered."""

    def __init__(self) -> None:
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
        self.late_spans = Counter("tracegrade_late_spans", "Spans that came after their trace was finished.")
        self.traces_finished = Counter("tracegrade_traces_finished", "Finished traces.", ("reason",))
        self.traces_held = Gauge("tracegrade_traces_held", "Traces in the buffer.")
        self.held_bytes = Gauge(
            "tracegrade_held_bytes", "Bytes of held spans, queues included.", unit="bytes"
        )
        self.held_bytes_limit = Gauge("tracegrade_held_limit_bytes", "The memory limit.", unit="bytes")
        self.hold_seconds = Histogram(
            "tracegrade_hold_seconds",
            "Time from a trace's first span to its finish.",
            _SECONDS,
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
        self.tool_calls = Counter(
            "tracegrade_tool_calls",
            "Tool calls seen in agent runs.",
            ("gen_ai_agent_name", "gen_ai_tool_name", "status"),
        )
        self.queue_bytes = Gauge(
            "tracegrade_queue_bytes", "Bytes waiting in a sending queue.", ("exporter",), "bytes"
        )
        self.export_attempts = Counter(
            "tracegrade_export_attempts", "Requests sent to backends, by outcome.", ("exporter", "outcome")
        )
        self.results_dropped = Counter(
            "tracegrade_results_dropped",
            "Graded runs that an exporter of results could not write.",
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
        self.score = Histogram(
            "gen_ai_evaluation_score",
            "Scores of evaluations that passed or failed.",
            _SCORES,
            ("gen_ai_agent_name", "gen_ai_evaluation_name"),
        )
        self.results = Counter(
            "gen_ai_evaluation_results",
            "Results of evaluations, by outcome.",
            ("gen_ai_agent_name", "gen_ai_evaluation_name", "gen_ai_evaluation_score_label"),
        )
        self.shadow_score = Histogram(
            "tracegrade_shadow_evaluation_score",
            "Scores of evaluations in shadow; they are in no other series.",
            _SCORES,
            ("gen_ai_agent_name", "gen_ai_evaluation_name"),
        )
        self.shadow_results = Counter(
            "tracegrade_shadow_evaluation_results",
            "Results of evaluations in shadow, by outcome; they are in no other series.",
            ("gen_ai_agent_name", "gen_ai_evaluation_name", "gen_ai_evaluation_score_label"),
        )
        self.muted_until = Gauge(
            "tracegrade_evaluation_muted_until_timestamp_seconds",
            "Unix time at which the mute of an evaluation ends; alerts leave it out until then.",
            ("gen_ai_agent_name", "gen_ai_evaluation_name"),
            "seconds",
        )
        for reason in FinishReason:
            self.traces_finished.add(0, reason.value)
        for not_evaluated in NotEvaluatedReason:
            self.not_evaluated.add(0, not_evaluated.value)
        for skipped in SkipReason:
            self.evaluations_skipped.add(0, skipped.value)
        for outcome in Outcome:
            self.backfill_results.add(0, outcome.value)

    def instruments(self) -> list[Counter | Gauge | Histogram]:
        """All instruments in the order of the table."""
        return list(vars(self).values())
