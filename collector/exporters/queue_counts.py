"""What a sending queue counts: spans in the accounting of spans, results in series of their own."""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from collector.telemetry.metrics import Metrics

DROP_REASONS = ("rejected", "partial_success", "max_elapsed_time", "queue_full", "shutdown")
"""Why a queue may let go of something that was not delivered."""

ResultForm: TypeAlias = Literal["log", "span"]
"""Forms of a result that travel in messages of their own."""


class QueueCounts(Protocol):
    """Where a queue counts what becomes of what it holds."""

    @property
    def things(self) -> str:
        """What is counted, for logs: a word in the plural."""
        ...

    def forwarded(self, count: int) -> None:
        """Count what was delivered."""
        ...

    def dropped(self, count: int, reason: str) -> None:
        """Count what was not, for one of `DROP_REASONS`."""
        ...

    def read_from(self, held: Callable[[], float], queued_bytes: Callable[[], float]) -> None:
        """Let every scrape see what the queue holds."""
        ...


class SpanCounts:
    """Received spans: what is forwarded, dropped and held adds up to what was enqueued."""

    things = "spans"

    def __init__(self, metrics: Metrics, exporter: str) -> None:
        self._metrics = metrics
        self._exporter = exporter
        metrics.spans_forwarded.add(0, exporter)
        for reason in DROP_REASONS:
            metrics.spans_dropped.add(0, reason, exporter)

    def forwarded(self, count: int) -> None:
        """See `QueueCounts`."""
        self._metrics.spans_forwarded.add(count, self._exporter)

    def dropped(self, count: int, reason: str) -> None:
        """See `QueueCounts`."""
        self._metrics.spans_dropped.add(count, reason, self._exporter)

    def read_from(self, held: Callable[[], float], queued_bytes: Callable[[], float]) -> None:
        """See `QueueCounts`."""
        self._metrics.spans_held.read_from(held, self._exporter)
        self._metrics.queue_bytes.read_from(queued_bytes, self._exporter)


class ResultCounts:
    """Log records or spans of verdicts: never among the spans that were received."""

    things = "results"

    def __init__(self, metrics: Metrics, exporter: str, form: ResultForm) -> None:
        self._metrics = metrics
        self._exporter = exporter
        self._form = form
        metrics.results_exported.add(0, exporter, form)
        for reason in DROP_REASONS:
            metrics.results_dropped.add(0, reason, exporter)

    def forwarded(self, count: int) -> None:
        """See `QueueCounts`."""
        self._metrics.results_exported.add(count, self._exporter, self._form)

    def dropped(self, count: int, reason: str) -> None:
        """See `QueueCounts`."""
        self._metrics.results_dropped.add(count, reason, self._exporter)

    def read_from(self, held: Callable[[], float], queued_bytes: Callable[[], float]) -> None:
        """See `QueueCounts`."""
        self._metrics.results_held.read_from(held, self._exporter, self._form)
