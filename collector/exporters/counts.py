"""The counts of a queue: at any time enqueued = forwarded + dropped + held."""

from typing import Literal, TypeAlias

from collector.exporters.dead_letters import OUTCOMES
from collector.telemetry import Counter, Metrics

ResultForm: TypeAlias = Literal["log", "span", "score"]
"""Forms of a result that travel in requests of their own."""


class QueueCounts:
    """Counts what is held, and what is dropped by reason; the base of both kinds."""

    items: str
    """What is counted, for logs."""
    partly_rejected = "rejected"
    """Why something is dropped that a backend took a request without."""

    def __init__(self, exporter: str, dropped: Counter, reasons: tuple[str, ...]) -> None:
        self.held = 0
        """Enqueued, and neither forwarded nor dropped."""
        self.queued_bytes = 0
        """Encoded size of the deliveries that these belong to."""
        self._exporter = exporter
        self._dropped = dropped
        for reason in reasons:
            dropped.add(0, reason, exporter)

    def attempt(self, outcome: str) -> None:
        """Count a request that was sent."""

    def forward(self, count: int) -> None:
        """Count held items as delivered."""
        self.held -= count

    def drop(self, count: int, reason: str) -> None:
        """Count held items as not delivered."""
        self.held -= count
        self._dropped.add(count, reason, self._exporter)

    def turn_away(self, count: int, reason: str = "queue_full") -> None:
        """Count as not delivered what was never held."""
        self._dropped.add(count, reason, self._exporter)


class RunCounts(QueueCounts):
    """Counts graded runs."""

    items = "runs"

    def __init__(self, metrics: Metrics, exporter: str) -> None:
        super().__init__(exporter, metrics.results_dropped, ("rejected", "queue_full", "shutdown"))


class ExportCounts(QueueCounts):
    """Counts received spans or, with `form`, results in that form, apart from those spans."""

    partly_rejected = "partial_success"

    def __init__(self, metrics: Metrics, exporter: str, form: ResultForm | None = None) -> None:
        self.items = "spans" if form is None else "results"
        super().__init__(
            exporter,
            metrics.spans_dropped if form is None else metrics.results_dropped,
            ("rejected", "partial_success", "max_elapsed_time", "queue_full", "shutdown"),
        )
        self._attempts = metrics.export_attempts
        if form is None:
            self._labels: tuple[str, ...] = (exporter,)
            self._forwarded = metrics.spans_forwarded
            metrics.spans_held.read_from(lambda: self.held, exporter)
            metrics.queue_bytes.read_from(lambda: self.queued_bytes, exporter)
        else:
            self._labels = (exporter, form)
            self._forwarded = metrics.results_exported
            metrics.results_held.read_from(lambda: self.held, exporter, form)
        self._forwarded.add(0, *self._labels)
        for outcome in ("success", "partial_success", "retry", "refused"):
            self._attempts.add(0, exporter, outcome)
        for outcome in OUTCOMES:
            metrics.dead_letters.add(0, exporter, outcome)

    def attempt(self, outcome: str) -> None:
        """Count a request that was sent."""
        self._attempts.add(1, self._exporter, outcome)

    def forward(self, count: int) -> None:
        """Count held items as delivered."""
        self.held -= count
        self._forwarded.add(count, *self._labels)
