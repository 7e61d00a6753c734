"""The chain before an exporter, as the Collector's exporterhelper has one; each link is a file.

Why in this order, from the pipeline to the backend:

1. `queue.py` takes whatever comes at once, so that no backend holds up a trace or another backend.
2. `batch.py` makes requests of it, behind the queue: a request is made when it can leave, and as full as it
   can be by then. Several consumers send them side by side.
3. `refusals.py` cuts a refused request in two, outside of the retries: each half has attempts of its own.
4. `retry.py` sends again until the backend answers.
5. `counts.py` counts in the queue, where a span is settled once, whatever was attempted.
6. The `Sink`: one signal of an exporter, which knows nothing of all this.
"""

import asyncio
import logging
from random import Random

from collector.clock import Clock, ends_within
from collector.exporters.batch import Batcher
from collector.exporters.counts import QueueCounts
from collector.exporters.dead_letters import DeadLetterBox
from collector.exporters.delivery import Delivery
from collector.exporters.queue import DeliveryQueue
from collector.exporters.refusals import Refusals
from collector.exporters.retry import Retry
from collector.exporters.sink import Sink
from collector.exporters.span_exporter_config import RetryConfig, SendingQueueConfig
from collector.task_supervisor import TaskOwner

_logger = logging.getLogger(__name__)


class SendingQueue(DeliveryQueue):
    """Takes deliveries, and hands each of their spans to the sink until it is forwarded or dropped.

    What is refused for good goes to `dead_letters`, if there are any. All state is touched on the event
    loop's thread only.
    """

    def __init__(
        self,
        sink: Sink,
        config: SendingQueueConfig,
        retry: RetryConfig,
        *,
        counts: QueueCounts,
        clock: Clock,
        is_required: bool = False,
        random: Random | None = None,
        dead_letters: DeadLetterBox | None = None,
    ) -> None:
        super().__init__(sink, counts, clock, is_required=is_required)
        self._batcher = Batcher(self, config.batch, clock)
        self._retry = Retry(self, retry, clock, random or Random())
        self._sender = Refusals(self, self._retry, dead_letters)
        self._num_consumers = config.num_consumers
        self._consumers: list[asyncio.Task[None]] = []
        self._shutting_down = asyncio.Lock()
        self._clock = clock

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """See `SpanQueue`; `tasks` owns the consumers if given."""
        create_task = asyncio.get_running_loop().create_task if tasks is None else tasks.create_task
        name = f"send to {self.name}"
        self._consumers = [create_task(self._consume(), name=name) for _ in range(self._num_consumers)]

    def enqueue(self, delivery: Delivery) -> None:
        """See `SpanQueue`."""
        super().enqueue(delivery)
        self._batcher.notify()

    def shed(self, needed_bytes: int = 0, *, needed_spans: int = 0) -> int:
        """See `DeliveryQueue`; what was dropped is discarded from requests that back off as well."""
        freed = super().shed(needed_bytes, needed_spans=needed_spans)
        if freed:
            self._retry.discard_given_up()
        return freed

    async def shutdown(self, deadline: float) -> None:
        """Send what is held, retrying until `deadline` (monotonic); drop the rest. Safe twice."""
        async with self._shutting_down:
            self._retry.close(deadline)
            self._batcher.close()
            if self._consumers:
                flushed = asyncio.gather(*self._consumers, return_exceptions=True)
                await ends_within(deadline - self._clock.monotonic(), flushed, self._clock)
                for consumer in self._consumers:
                    consumer.cancel()
                await asyncio.gather(*self._consumers, return_exceptions=True)
                self._consumers = []
            stored, lost = self.close()
            items = self.counts.items
            if stored:
                _logger.info(
                    f"{items.capitalize()} are not delivered yet: they stay in the journal, or where they "
                    "were read from.",
                    extra={**self.sink.where, self.counts.key: stored},
                )
            if lost:
                _logger.error(
                    f"{items.capitalize()} could not be delivered before the shutdown deadline and are "
                    "dropped.",
                    extra={**self.sink.where, self.counts.key: lost},
                )

    async def _consume(self) -> None:
        while (request := await self._batcher.next_request()) is not None:
            await self._sender.send(request)
            del request  # what was sent must not be held while waiting for the next
