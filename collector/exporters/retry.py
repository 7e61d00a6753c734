"""Sends a request until the backend has answered it; by default it never gives up."""

import asyncio
from dataclasses import dataclass, field
from random import Random

from collector.clock import Clock, ends_within
from collector.errors import ExportError, PermanentExportError, RetryableExportError
from collector.exporters.exporter import ExportResponse
from collector.exporters.queue import DeliveryQueue
from collector.exporters.request import ExportRequest
from collector.exporters.span_exporter_config import RetryConfig

MAX_RETRY_AFTER_SECONDS = 300.0
"""A backend's own delay counts up to this: a wrong clock over there must not stop deliveries for days."""
_OUTAGE_SECONDS = 5.0
"""Without any answer for so long, the next one ends an outage."""


@dataclass(slots=True, eq=False)
class BackOff:
    """The waits of one request, one after the other."""

    config: RetryConfig
    random: Random
    _interval: float = field(default=0.0, init=False)

    def next_wait(self, retry_after_seconds: float | None = None) -> float:
        """Seconds until the next attempt; the backend's own delay wins where it gave one."""
        config = self.config
        interval = min(self._interval or config.initial_interval, config.max_interval)
        self._interval = interval * config.multiplier
        if retry_after_seconds is not None:
            return min(max(retry_after_seconds, 0.0), MAX_RETRY_AFTER_SECONDS)
        spread = config.randomization_factor
        return interval * self.random.uniform(1 - spread, 1 + spread)


@dataclass(slots=True, eq=False)
class Retry:
    """Attempts requests, several at a time, and settles in `queue` what became of them."""

    queue: DeliveryQueue
    config: RetryConfig
    clock: Clock
    random: Random
    _backing_off: list[ExportRequest] = field(default_factory=list, init=False)
    _failing_since: float | None = field(default=None, init=False)
    _closing: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _deadline: float = field(default=0.0, init=False)
    _worth_trying: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """An outage is over, or the queue closes; another event each time."""

    def close(self, deadline: float) -> None:
        """Try now what backs off, and again until `deadline`."""
        self._deadline = deadline
        self._closing.set()
        self._worth_trying.set()

    def discard_given_up(self) -> None:
        """Free the memory of dropped traces now, not after the back-off."""
        for request in self._backing_off:
            request.discard_given_up()

    async def send(self, request: ExportRequest) -> None:
        """Return once every span in `request` is forwarded or dropped.

        Raises:
            PermanentExportError: the backend refused it for good; nothing of it is settled.
        """
        started = self.clock.monotonic()
        back_off = BackOff(self.config, self.random)
        while True:
            request.discard_given_up()
            if not request.span_count:
                return
            try:
                response = await self._attempt(request)
            except PermanentExportError:
                self.queue.counts.attempt("refused")
                self._note_answer()
                raise
            except ExportError as error:
                failure = error
            else:
                self._settle(request, response)
                self._note_answer()
                return
            self.queue.counts.attempt("retry")
            is_closing = self._closing.is_set()
            retry_after = getattr(failure, "retry_after_seconds", None)
            wait = back_off.next_wait(retry_after)
            now = self.clock.monotonic()
            if self._failing_since is None:
                self._failing_since = now
            limit = self.config.max_elapsed_time
            if limit and now + wait - started > limit:
                self.queue.drop(request, "max_elapsed_time")
                self._log_failure("gave_up", "could not be delivered in time and are dropped", failure)
                return
            self._log_failure("failing", "cannot be delivered now; they are held and sent again", failure)
            self._backing_off.append(request)
            try:
                if is_closing:
                    # The last waits are cut so that there is an attempt left before the deadline.
                    await self.clock.sleep(min(wait, max((self._deadline - now) / 2, 0.1)))
                else:
                    wakes = self._worth_trying if retry_after is None else self._closing
                    await ends_within(wait, wakes.wait(), self.clock)
            finally:
                self._backing_off.remove(request)
            if self._closing.is_set() and not is_closing:
                back_off = BackOff(self.config, self.random)

    async def _attempt(self, request: ExportRequest) -> ExportResponse:
        request.mark_on_wire(1)
        try:
            return await self.queue.sink.send(request)
        except ExportError:
            raise
        except Exception as error:  # one request: whatever an exporter does, its spans are not lost
            self.queue.log.exception(
                "exporter_failed", "An exporter failed unexpectedly.", exporter=self.queue.sink.name
            )
            raise RetryableExportError(f"{type(error).__name__}: {error}") from error
        finally:
            request.mark_on_wire(-1)

    def _settle(self, request: ExportRequest, response: ExportResponse) -> None:
        rejected = min(max(response.rejected_spans, 0), request.span_count)
        self.queue.forward(request, rejected)
        self.queue.counts.attempt("partial_success" if rejected else "success")
        if rejected or response.message:
            items = self.queue.counts.items
            self.queue.log.warning(
                "partial_success",
                f"A backend accepted a request but not all of its {items}."
                if rejected
                else "A backend sent a warning.",
                error=response.message,
                **self.queue.sink.where,
                **{f"rejected_{self.queue.counts.key}": rejected},
            )

    def _note_answer(self) -> None:
        """After an outage all requests are tried at once, except where the backend itself named a time.

        One request among others that fails again and again is no outage.
        """
        if self._failing_since is None:
            return
        seconds = self.clock.monotonic() - self._failing_since
        self._failing_since = None
        if seconds >= _OUTAGE_SECONDS:
            self._worth_trying.set()
            self._worth_trying = asyncio.Event()
        self.queue.log.info(
            "recovered",
            "A backend answers again.",
            seconds=round(seconds, 1),
            **self.queue.sink.where,
            **{f"queued_{self.queue.counts.key}": self.queue.counts.held},
        )

    def _log_failure(self, reason: str, outcome: str, failure: ExportError) -> None:
        items = self.queue.counts.items
        self.queue.log.warning(
            reason,
            f"{items.capitalize()} {outcome}.",
            error=str(failure),
            queued_bytes=self.queue.counts.queued_bytes,
            **self.queue.sink.where,
            **{f"queued_{self.queue.counts.key}": self.queue.counts.held},
        )
