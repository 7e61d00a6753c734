"""What happens to requests that a backend refuses for good."""

import logging

from collector.clock import Clock
from collector.errors import ContentRefusedError, PermanentExportError
from collector.exporters.dead_letters import DeadLetterBox
from collector.exporters.queue import DeliveryQueue
from collector.exporters.request import ExportRequest
from collector.exporters.retry import Retry
from collector.exporters.sink import Sink
from collector.telemetry import RateLimitedLogger

_MAX_SPLITS = 64
"""How often one request may be cut in two in search of the spans that a backend refuses."""

_logger = logging.getLogger(__name__)


class Refusals:
    """Sends the halves of a request whose content is refused, and drops what remains refused.

    That goes to `dead_letters` first, if there are any.
    """

    def __init__(
        self,
        queue: DeliveryQueue,
        sender: Retry,
        sink: Sink,
        dead_letters: DeadLetterBox | None,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._sender = sender
        self._sink = sink
        self._dead_letters = dead_letters
        self._log = RateLimitedLogger(_logger, clock)

    async def send(self, request: ExportRequest) -> None:
        """Return once every span in `request` is forwarded or dropped."""
        parts = [request]
        splits = 0
        while parts:
            part = parts.pop()
            try:
                await self._sender.send(part)
            except ContentRefusedError as refusal:
                if part.span_count > 1 and splits < _MAX_SPLITS:
                    splits += 1
                    parts += reversed(part.halves())
                else:
                    await self._reject(part, refusal)
            except PermanentExportError as refusal:
                await self._reject(part, refusal)

    async def _reject(self, request: ExportRequest, refusal: PermanentExportError) -> None:
        fate = "dropped"
        if self._dead_letters is not None:
            fate = "dropped and kept as dead letters"
            await self._dead_letters(request.encode(), request.span_count, str(refusal))
        self._queue.drop(request, "rejected")
        items = self._queue.counts.items
        self._log.error(
            "rejected",
            f"A backend refused {items} for good; they are {fate}.",
            error=str(refusal),
            **self._sink.where,
            **{items: request.span_count},
        )
