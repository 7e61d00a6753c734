"""The queue before a span exporter: batches, sends concurrently, retries, and accounts for every span.

Each exporter has its own, so none waits for another. At any time spans enqueued = forwarded + dropped +
held; all state is touched on the event loop's thread only. Results in forms of their own (log records,
spans of verdicts, scores) wait in queues like this one, which count them apart.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Literal, Protocol, TypeAlias

from collector.clock import Clock, ends_within
from collector.errors import ContentRefusedError, ExportError, PermanentExportError, RetryableExportError
from collector.exporters.dead_letters import OUTCOMES, DeadLetterBox
from collector.exporters.delivery import Delivery, ExportRequest, QueuedTrace
from collector.exporters.exporter import ExportResponse, SpanExporter
from collector.exporters.span_exporter_config import BackOff, SpanExporterConfig
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger

_OUTAGE_SECONDS = 5.0
"""Without any answer for so long, the next one says that the backend is back."""
_MAX_SPLITS = 64
"""How often one request may be cut in two in search of the spans that a backend refuses."""

_logger = logging.getLogger(__name__)


class SendingQueue:
    """Takes deliveries, and hands each of their spans to the exporter until it is forwarded or dropped.

    Spans are dropped for five reasons only: `rejected` (a permanent refusal; requests refused for their
    content are cut in two until the refused spans stand alone, a bounded number of times),
    `partial_success` (the backend took the request without them), `max_elapsed_time` (only if configured),
    `queue_full` (only by `shed`), and `shutdown`.

    What is refused for good goes to `dead_letters` first, if there are any.

    `counts` is where all this is counted, by default as received spans. What a shutdown leaves behind of a
    delivery that is kept elsewhere is neither dropped nor counted: the next process finds it there.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        config: SpanExporterConfig,
        *,
        metrics: Metrics,
        clock: Clock,
        random: Random | None = None,
        counts: "QueueCounts | None" = None,
        dead_letters: DeadLetterBox | None = None,
    ) -> None:
        self.name = exporter.name
        self.is_required = config.delivery == "required"
        self.held_spans = 0
        """Spans enqueued that are neither forwarded nor dropped."""
        self.queued_bytes = 0
        """Encoded size of the traces they belong to."""
        self._exporter = exporter
        self._retry = config.retry_on_failure
        self._batch = config.sending_queue.batch
        self._num_consumers = config.sending_queue.num_consumers
        self._metrics = metrics
        self._counts = counts or SpanCounts(metrics, self.name)
        self._dead_letters = dead_letters
        self._things = self._counts.things
        self._clock = clock
        self._random = Random() if random is None else random
        self._log = RateLimitedLogger(_logger, clock)

        self._held: dict[QueuedTrace, None] = {}  # in order of arrival
        self._waiting: deque[QueuedTrace] = deque()
        self._waiting_spans = 0
        self._waiting_bytes = 0
        self._backing_off: list[ExportRequest] = []
        self._failing_since: float | None = None

        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._closing = asyncio.Event()
        self._worth_trying = asyncio.Event()
        """An outage is over, or the queue closes; another event each time."""
        self._collecting = asyncio.Lock()
        self._shutting_down = asyncio.Lock()
        self._deadline = 0.0
        self._consumers: list[asyncio.Task[None]] = []

        self._counts.read_from(lambda: self.held_spans, lambda: self.queued_bytes)
        for outcome in ("success", "partial_success", "retry", "refused"):
            metrics.export_attempts.add(0, self.name, outcome)
        for outcome in OUTCOMES:
            metrics.dead_letters.add(0, self.name, outcome)

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Start the exporter and the consumers, which `tasks` owns if given; raises `StartupError`."""
        await self._exporter.start()
        create_task = asyncio.get_running_loop().create_task if tasks is None else tasks.create_task
        name = f"send to {self.name}"
        self._consumers = [create_task(self._consume(), name=name) for _ in range(self._num_consumers)]

    def enqueue(self, delivery: Delivery) -> None:
        """Take a delivery; after `shutdown` began it is dropped at once (counted like any drop)."""
        span_count = len(delivery.spans)
        if not span_count:
            delivery.let_go(self.name, required=self.is_required)
            return
        trace = QueuedTrace(delivery)
        self._held[trace] = None
        self.held_spans += span_count
        self.queued_bytes += delivery.size
        if self._closing.is_set():
            if delivery.is_kept:
                return
            self._settle(trace, span_count, "shutdown")
            self._log.warning(
                "late",
                f"{self._things.capitalize()} came after the shutdown began and were dropped.",
                exporter=self.name,
            )
            return
        self._waiting.append(trace)
        self._waiting_spans += span_count
        self._waiting_bytes += delivery.size
        self._arrived.set()
        if self._is_full():
            self._full.set()

    def turn_away(self, count: int) -> None:
        """Count what found no room and was never enqueued, as `queue_full`."""
        self._counts.dropped(count, "queue_full")

    def shed(self, bytes_wanted: int) -> int:
        """Drop the oldest traces, as `queue_full`, until `bytes_wanted` of held bytes are let go of.

        Traces on the wire stay. It ends early at a trace that a required exporter still holds, since
        dropping that one (and, queues having one order, the ones after it) would free nothing.

        Returns:
            The held bytes of the dropped traces; 0 for a required queue.
        """
        if self.is_required:
            return 0
        let_go = 0
        dropped: list[QueuedTrace] = []
        for trace in self._held:
            if let_go >= bytes_wanted or trace.delivery.is_required:
                break
            if not trace.requests_on_wire:
                dropped.append(trace)
                let_go += trace.delivery.held_bytes
        if not dropped:
            return 0
        span_count = 0
        for trace in dropped:
            self._waiting_spans -= trace.waiting_spans
            self._waiting_bytes -= trace.waiting_bytes
            span_count += trace.unsettled_spans
            trace.give_up()
            self._settle(trace, trace.unsettled_spans, "queue_full")
        while self._waiting and self._waiting[0].is_given_up:
            self._waiting.popleft()
        for request in self._backing_off:  # so that their memory is free now, not after the back-off
            request.discard_given_up()
        self._log.warning(
            "queue_full",
            f"The memory limit is reached; the oldest {self._things} of a best-effort queue are dropped.",
            exporter=self.name,
            **{self._things: span_count},
        )
        return let_go

    async def shutdown(self, deadline: float) -> None:
        """Send what is held, retrying until `deadline` (monotonic); drop the rest; close the exporter."""
        async with self._shutting_down:
            self._deadline = deadline
            self._closing.set()
            self._worth_trying.set()
            self._arrived.set()
            self._full.set()
            if self._consumers:
                flushed = asyncio.gather(*self._consumers, return_exceptions=True)
                await ends_within(deadline - self._clock.monotonic(), flushed, self._clock)
                for consumer in self._consumers:
                    consumer.cancel()
                await asyncio.gather(*self._consumers, return_exceptions=True)
                self._consumers = []
            kept = lost = 0
            self._waiting.clear()
            self._waiting_spans = self._waiting_bytes = 0
            for trace in list(self._held):
                if trace.delivery.is_kept:
                    kept += trace.unsettled_spans
                else:
                    lost += trace.unsettled_spans
                    self._settle(trace, trace.unsettled_spans, "shutdown")
            whereabouts = {"exporter": self.name, "endpoint": self._exporter.endpoint}
            if kept:
                _logger.info(
                    f"{self._things.capitalize()} are not delivered yet: they stay in the journal, or where "
                    "they were read from.",
                    extra={**whereabouts, self._things: kept},
                )
            if lost:
                _logger.error(
                    f"{self._things.capitalize()} could not be delivered before the shutdown deadline and "
                    "are dropped.",
                    extra={**whereabouts, self._things: lost},
                )
            await self._exporter.shutdown(deadline)

    async def _consume(self) -> None:
        while (request := await self._next_request()) is not None:
            await self._deliver(request)
            del request  # what was sent must not be held while waiting for the next

    async def _next_request(self) -> ExportRequest | None:
        """The next request once it is full or its time is over; None when nothing is left to send."""
        async with self._collecting:
            while True:
                while not self._waiting:
                    if self._closing.is_set():
                        return None
                    self._arrived.clear()
                    await self._arrived.wait()
                if not self._is_full() and not self._closing.is_set():
                    self._full.clear()
                    await ends_within(self._batch.flush_timeout, self._full.wait(), self._clock)
                request = self._take_request()
                if request.span_count:
                    return request

    def _is_full(self) -> bool:
        return self._waiting_spans >= self._batch.max_spans or self._waiting_bytes >= self._batch.max_bytes

    def _take_request(self) -> ExportRequest:
        request = ExportRequest()
        max_spans, max_bytes = self._batch.max_spans, self._batch.max_bytes
        size = 0
        while self._waiting:
            trace = self._waiting[0]
            if trace.is_given_up:
                self._waiting.popleft()
                continue
            if (
                request.span_count + trace.waiting_spans <= max_spans
                and size + trace.waiting_bytes <= max_bytes
            ):
                self._waiting.popleft()
                size += trace.waiting_bytes
                self._move(trace, request, trace.waiting_spans)
            elif request.span_count:
                break
            else:
                self._move(trace, request, trace.spans_that_fit(max_spans, max_bytes))
                if not trace.waiting_spans:
                    self._waiting.popleft()
                break
        return request

    def _move(self, trace: QueuedTrace, request: ExportRequest, span_count: int) -> None:
        waiting_bytes = trace.waiting_bytes
        request.add(trace, trace.take(span_count))
        self._waiting_spans -= span_count
        self._waiting_bytes -= waiting_bytes - trace.waiting_bytes

    async def _deliver(self, request: ExportRequest) -> None:
        """Send a request until every span in it is forwarded or dropped."""
        parts = [request]
        splits = 0
        while parts:
            part = parts.pop()
            refusal = await self._send(part)
            if refusal is None:
                continue
            if isinstance(refusal, ContentRefusedError) and part.span_count > 1 and splits < _MAX_SPLITS:
                splits += 1
                first, second = part.halves()
                parts += (second, first)
                continue
            if self._dead_letters is not None:
                await self._dead_letters.keep(part.encode(), part.span_count, str(refusal))
            self._drop(part, "rejected")
            self._log.error(
                "rejected",
                f"A backend refused {self._things} for good; they are dropped"
                f"{'' if self._dead_letters is None else ' and kept as dead letters'}.",
                exporter=self.name,
                endpoint=self._exporter.endpoint,
                error=str(refusal),
                **{self._things: part.span_count},
            )

    async def _send(self, request: ExportRequest) -> PermanentExportError | None:
        """Attempt `request` until it is settled (None) or refused for good (why)."""
        started = self._clock.monotonic()
        back_off = BackOff(self._retry, self._random)
        while True:
            request.discard_given_up()
            if not request.span_count:
                return None
            try:
                response = await self._attempt(request)
            except PermanentExportError as refusal:
                self._metrics.export_attempts.add(1, self.name, "refused")
                self._note_answer()
                return refusal
            except ExportError as error:
                failure = error
            else:
                self._settle_answered(request, response)
                self._note_answer()
                return None
            self._metrics.export_attempts.add(1, self.name, "retry")
            is_closing = self._closing.is_set()
            told_wait = getattr(failure, "retry_after_seconds", None)
            wait = back_off.next_wait(told_wait)
            now = self._clock.monotonic()
            if self._failing_since is None:
                self._failing_since = now
            limit = self._retry.max_elapsed_time
            if limit and now + wait - started > limit:
                self._drop(request, "max_elapsed_time")
                what = f"{self._things.capitalize()} could not be delivered in time and are dropped."
                self._log_failure("gave_up", what, failure)
                return None
            self._log_failure(
                "failing", f"A backend does not take {self._things}; they are held and sent again.", failure
            )
            self._backing_off.append(request)
            try:
                if is_closing:
                    # The last waits are cut so that there is an attempt left before the deadline.
                    await self._clock.sleep(min(wait, max((self._deadline - now) / 2, 0.1)))
                else:
                    wakes = self._worth_trying if told_wait is None else self._closing
                    await ends_within(wait, wakes.wait(), self._clock)
            finally:
                self._backing_off.remove(request)
            if self._closing.is_set() and not is_closing:
                back_off = BackOff(self._retry, self._random)

    async def _attempt(self, request: ExportRequest) -> ExportResponse:
        request.mark_on_wire(1)
        try:
            return await self._exporter.export(request.encode(), request.span_count)
        except ExportError:
            raise
        except Exception as error:  # one request: whatever an exporter does, its spans are not lost
            self._log.exception("exporter_failed", "An exporter failed unexpectedly.", exporter=self.name)
            raise RetryableExportError(f"{type(error).__name__}: {error}") from error
        finally:
            request.mark_on_wire(-1)

    def _settle_answered(self, request: ExportRequest, response: ExportResponse) -> None:
        span_count = request.span_count
        rejected = min(max(response.rejected_spans, 0), span_count)
        for trace, spans in request.shares:
            self._release(trace, len(spans))
        self.held_spans -= span_count
        self._counts.forwarded(span_count - rejected)
        self._metrics.export_attempts.add(1, self.name, "partial_success" if rejected else "success")
        if rejected:
            self._counts.dropped(rejected, "partial_success")
        if rejected or response.message:
            self._log.warning(
                "partial_success",
                f"A backend took a request but not all of its {self._things}."
                if rejected
                else "A backend sent a warning.",
                exporter=self.name,
                endpoint=self._exporter.endpoint,
                error=response.message,
                **{f"rejected_{self._things}": rejected},
            )

    def _drop(self, request: ExportRequest, reason: str) -> None:
        for trace, spans in request.shares:
            self._settle(trace, len(spans), reason)

    def _settle(self, trace: QueuedTrace, span_count: int, reason: str) -> None:
        self._release(trace, span_count)
        self.held_spans -= span_count
        self._counts.dropped(span_count, reason)

    def _release(self, trace: QueuedTrace, span_count: int) -> None:
        trace.unsettled_spans -= span_count
        if not trace.unsettled_spans:
            del self._held[trace]
            self.queued_bytes -= trace.delivery.size
            trace.delivery.let_go(self.name, required=self.is_required)

    def _note_answer(self) -> None:
        """The backend answers.

        After an outage what waits goes at once, but where the backend named the time itself. One request
        among others that fails again and again is no outage.
        """
        if self._failing_since is not None:
            seconds = self._clock.monotonic() - self._failing_since
            self._failing_since = None
            if seconds >= _OUTAGE_SECONDS:
                self._worth_trying.set()
                self._worth_trying = asyncio.Event()
            self._log.info(
                "recovered",
                "A backend answers again.",
                exporter=self.name,
                endpoint=self._exporter.endpoint,
                seconds=round(seconds, 1),
                **{f"queued_{self._things}": self.held_spans},
            )

    def _log_failure(self, reason: str, message: str, failure: ExportError) -> None:
        self._log.warning(
            reason,
            message,
            exporter=self.name,
            endpoint=self._exporter.endpoint,
            error=str(failure),
            queued_bytes=self.queued_bytes,
            **{f"queued_{self._things}": self.held_spans},
        )


DROP_REASONS = ("rejected", "partial_success", "max_elapsed_time", "queue_full", "shutdown")
"""Why a queue may let go of something that was not delivered."""

ResultForm: TypeAlias = Literal["log", "span", "score"]
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
    """Log records, spans or scores of verdicts: never among the spans that were received."""

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
