"""What happens to requests that a backend refuses for good."""

from dataclasses import dataclass

from collector.errors import ContentRefusedError, PermanentExportError
from collector.exporters.dead_letters import DeadLetterBox
from collector.exporters.queue import DeliveryQueue
from collector.exporters.request import ExportRequest
from collector.exporters.retry import Retry

_MAX_SPLITS = 64
"""How often one request may be cut in two in search of the spans that a backend refuses."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """Sends the halves of a request whose content is refused, and drops what remains refused.

    That goes to `dead_letters` first, if there are any.
    """

    queue: DeliveryQueue
    sender: Retry
    dead_letters: DeadLetterBox | None

    async def send(self, request: ExportRequest) -> None:
        """Return once every span in `request` is forwarded or dropped."""
        parts = [request]
        splits = 0
        while parts:
            part = parts.pop()
            try:
                await self.sender.send(part)
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
        if self.dead_letters is not None:
            fate = "dropped and stored as dead letters"
            await self.dead_letters(request.encode(), request.span_count, str(refusal))
        self.queue.drop(request, "rejected")
        items = self.queue.counts.items
        self.queue.log.error(
            "rejected",
            f"A backend refused {items} for good; they are {fate}.",
            error=str(refusal),
            **self.queue.sink.where,
            **{self.queue.counts.key: request.span_count},
        )
