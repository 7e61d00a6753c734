"""The end of the road for spans when no exporter of spans is configured: looked at, then let go."""

from collector.exporters.delivery import Delivery
from collector.exporters.exporter import TaskOwner
from collector.telemetry.metrics import Metrics


class DiscardingQueue:
    """Takes deliveries as a `SendingQueue` does and counts their spans as forwarded at once.

    It stands for the console when `debug` is the only exporter, so that the accounting adds up.
    """

    def __init__(self, name: str, metrics: Metrics) -> None:
        self.name = name
        self.is_required = True
        self.held_spans = 0
        self._metrics = metrics
        metrics.spans_forwarded.add(0, name)
        metrics.spans_held.set(0, name)

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Nothing to open."""

    def enqueue(self, delivery: Delivery) -> None:
        """Let the spans go."""
        self._metrics.spans_forwarded.add(len(delivery.spans), self.name)
        delivery.let_go(required=True)

    def shed(self, bytes_wanted: int) -> int:
        """Nothing is held, nothing can be shed."""
        return 0

    async def shutdown(self, deadline: float) -> None:
        """Nothing to flush."""
