"""The counts of a queue: at any time enqueued = forwarded + dropped + held."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from collector.exporters.dead_letters import OUTCOMES
from collector.telemetry import Counter, Metrics
from collector.trace import Signal

ResultForm: TypeAlias = Literal["log", "span", "score"]
"""Forms of a result that travel in requests of their own."""

QueueContent: TypeAlias = Signal | ResultForm
"""What is in a queue: what was received of a signal, or results in a form."""


class QueueCounts:
    """Counts what a queue holds, and what it drops. `items` is what these are, for logs."""

    partly_rejected = "rejected"
    """Why something is dropped that the rest of its request was accepted without."""

    def __init__(self, items: str, exporter: str, dropped: Counter, reasons: Sequence[str]) -> None:
        self.items = items
        self.held = 0
        """Enqueued, and neither forwarded nor dropped."""
        self.queued_bytes = 0
        """Encoded size of the deliveries that these belong to."""
        self._exporter = exporter
        self._dropped = dropped
        dropped.start(*reasons, others=(exporter,))

    @property
    def key(self) -> str:
        """`items` as the name of a field."""
        return self.items.replace(" ", "_")

    def attempt(self, outcome: str) -> None:
        """Count a request that was sent."""

    def forward(self, count: int) -> None:
        """Count held items as delivered."""
        self.held -= count

    def drop(self, count: int, reason: str) -> None:
        """Count held items as not delivered."""
        self.held -= count
        self.turn_away(count, reason)

    def turn_away(self, count: int, reason: str) -> None:
        """Count as not delivered what was never held."""
        self._dropped.add(count, reason, self._exporter)


class ExportCounts(QueueCounts):
    """Counts received spans or log records or, apart from those, results in a form; and attempts."""

    partly_rejected = "partial_success"

    def __init__(self, metrics: Metrics, exporter: str, content: QueueContent = "traces") -> None:
        self._labels: tuple[str, ...] = (exporter,)
        reasons = ("rejected", "partial_success", "max_elapsed_time", "queue_full", "shutdown")
        if content == "traces" or content == "logs":
            books = metrics.books(content)
            items, dropped, held = (
                "spans" if content == "traces" else "log records",
                books.dropped,
                books.held,
            )
            self._forwarded = books.forwarded
            books.queue_bytes.read_from(lambda: self.queued_bytes, exporter)
        else:
            items, dropped, held = "results", metrics.results_dropped, metrics.results_held
            self._forwarded, self._labels = metrics.results_exported, (exporter, content)
        super().__init__(items, exporter, dropped, reasons)
        self._attempts = metrics.export_attempts
        self._forwarded.add(0, *self._labels)
        held.read_from(lambda: self.held, *self._labels)
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
