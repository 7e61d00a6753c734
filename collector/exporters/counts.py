"""The counts of a queue: at any time enqueued = forwarded + dropped + held."""

from typing import Literal, TypeAlias

from collector.exporters.dead_letters import OUTCOMES
from collector.telemetry import Metrics

DROP_REASONS = ("rejected", "partial_success", "max_elapsed_time", "queue_full", "shutdown")
"""Why a queue may drop what was not delivered."""

ResultForm: TypeAlias = Literal["log", "span", "score"]
"""Forms of a result that travel in requests of their own."""


class QueueCounts:
    """Counts received spans or, with `form`, results in that form, apart from those spans."""

    def __init__(self, metrics: Metrics, exporter: str, form: ResultForm | None = None) -> None:
        self.items = "spans" if form is None else "results"
        """What is counted, for logs."""
        self.held = 0
        """Enqueued, and neither forwarded nor dropped."""
        self.queued_bytes = 0
        """Encoded size of the deliveries that these belong to."""
        self._exporter = exporter
        self._attempts = metrics.export_attempts
        self._labels: tuple[str, ...] = (exporter,)
        self._forwarded, self._dropped = metrics.spans_forwarded, metrics.spans_dropped
        if form is None:
            metrics.spans_held.read_from(lambda: self.held, exporter)
            metrics.queue_bytes.read_from(lambda: self.queued_bytes, exporter)
        else:
            self._labels = (exporter, form)
            self._forwarded, self._dropped = metrics.results_exported, metrics.results_dropped
            metrics.results_held.read_from(lambda: self.held, exporter, form)
        self._forwarded.add(0, *self._labels)
        for reason in DROP_REASONS:
            self._dropped.add(0, reason, exporter)
        for outcome in ("success", "partial_success", "retry", "refused"):
            self.attempt(outcome, 0)
        for outcome in OUTCOMES:
            metrics.dead_letters.add(0, exporter, outcome)

    def attempt(self, outcome: str, count: int = 1) -> None:
        """Count a request that was sent."""
        self._attempts.add(count, self._exporter, outcome)

    def forward(self, count: int) -> None:
        """Count held items as delivered."""
        self.held -= count
        self._forwarded.add(count, *self._labels)

    def drop(self, count: int, reason: str) -> None:
        """Count held items as not delivered, for one of `DROP_REASONS`."""
        self.held -= count
        self._dropped.add(count, reason, self._exporter)

    def turn_away(self, count: int) -> None:
        """Count what found no room and was never held."""
        self._dropped.add(count, "queue_full", self._exporter)
