"""When spans leave the queue: once a request is full, or the oldest has waited long enough."""

import asyncio
from dataclasses import dataclass, field

from collector.clock import Clock, ends_within
from collector.exporters.queue import DeliveryQueue
from collector.exporters.request import ExportRequest
from collector.exporters.span_exporter_config import BatchConfig


@dataclass(slots=True, eq=False)
class Batcher:
    """Gathers what is in a queue into requests."""

    queue: DeliveryQueue
    config: BatchConfig
    clock: Clock
    _arrived: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _full: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _gathering: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _is_closing: bool = field(default=False, init=False)

    def notify(self) -> None:
        """Something was put into the queue."""
        self._arrived.set()
        if self._is_full:
            self._full.set()

    def close(self) -> None:
        """Wait for nothing more: what is left goes at once."""
        self._is_closing = True
        self._arrived.set()
        self._full.set()

    async def next_request(self) -> ExportRequest | None:
        """The next request once it is due; None once the batcher is closed and the queue empty."""
        queue, config = self.queue, self.config
        async with self._gathering:
            while True:
                while not queue.has_waiting:
                    if self._is_closing:
                        return None
                    self._arrived.clear()
                    await self._arrived.wait()
                if not self._is_full and not self._is_closing:
                    self._full.clear()
                    await ends_within(config.flush_timeout, self._full.wait(), self.clock)
                request = queue.take(config.max_spans, config.max_bytes)
                if request.span_count:
                    return request

    @property
    def _is_full(self) -> bool:
        queue, config = self.queue, self.config
        return queue.waiting_spans >= config.max_spans or queue.waiting_bytes >= config.max_bytes
