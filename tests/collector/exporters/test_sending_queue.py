"""The queue before an exporter: batches, retries, sheds, flushes, and accounts for every span."""

import asyncio
import logging
from collections.abc import Callable
from random import Random

import pytest

from collector.clock import ManualClock
from collector.errors import ContentRefusedError, PermanentExportError, RetryableExportError
from collector.exporters import SpanExporterConfig
from collector.exporters.delivery import Delivery
from collector.exporters.exporter import ACCEPTED, ExportResponse
from collector.memory_limiter import MemoryLimiter
from collector.telemetry import Metrics
from collector.trace import held_bytes
from tests.support.backends import span_ids
from tests.support.deliveries import MemoryExporter, make_delivery, make_spans, span_queue

NAME = "otlp/memory"


class Rig:
    """A queue before an exporter in memory, on a clock that moves only when told."""

    def __init__(self, **config: object) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.limiter = MemoryLimiter(100_000_000)
        self.exporter = MemoryExporter(NAME)
        self.config = SpanExporterConfig.model_validate(config)
        self.queue = span_queue(
            self.exporter, self.config, metrics=self.metrics, clock=self.clock, random=Random(7)
        )
        self.enqueued = 0

    def enqueue(self, trace: int, count: int, *, padding: int = 0) -> None:
        self.enqueued += count
        self.queue.enqueue(
            make_delivery(self.limiter, trace, count, padding=padding, required=self.queue.is_required)
        )

    async def settle(self) -> None:
        """Let every task run as far as it gets without the clock."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        await self.settle()
        self.clock.advance(seconds)
        await self.settle()

    async def close(self) -> None:
        closing = asyncio.ensure_future(self.queue.shutdown(self.clock.monotonic() + 5))
        while not closing.done():
            await self.advance(1)
        await closing

    @property
    def forwarded(self) -> float:
        return self.metrics.spans_forwarded.value(NAME)

    def dropped(self, reason: str) -> float:
        return self.metrics.spans_dropped.value(reason, NAME)

    def attempts(self, outcome: str) -> float:
        return self.metrics.export_attempts.value(NAME, outcome)

    @property
    def sent_ids(self) -> list[bytes]:
        return span_ids(self.exporter.requests)


def ids(trace: int, count: int) -> list[bytes]:
    return [span[0] for span in make_spans(trace, count)]


async def test_small_traces_leave_together_after_the_flush_timeout() -> None:
    rig = Rig()
    await rig.queue.start()

    rig.enqueue(1, 3)
    rig.enqueue(2, 2)
    await rig.advance(0.199)
    before = rig.exporter.attempts
    await rig.advance(0.001)

    assert 0 == before
    assert [5] == rig.exporter.span_counts
    assert ids(1, 3) + ids(2, 2) == rig.sent_ids
    assert 5 == rig.forwarded
    assert 0 == rig.limiter.used
    await rig.close()


async def test_a_full_request_leaves_at_once_and_keeps_traces_whole() -> None:
    rig = Rig(sending_queue={"batch": {"max_spans": 10}})
    await rig.queue.start()

    rig.enqueue(1, 6)
    rig.enqueue(2, 6)
    await rig.settle()

    assert [6] == rig.exporter.span_counts
    assert ids(1, 6) == rig.sent_ids
    await rig.close()
    assert [6, 6] == rig.exporter.span_counts


async def test_a_trace_larger_than_a_request_is_split_in_order() -> None:
    rig = Rig(sending_queue={"num_consumers": 1, "batch": {"max_spans": 10}})
    await rig.queue.start()

    rig.enqueue(1, 25)
    await rig.advance(0.2)

    assert [10, 10, 5] == rig.exporter.span_counts
    assert ids(1, 25) == rig.sent_ids
    assert 0 == rig.limiter.used
    await rig.close()


async def test_requests_stay_under_the_byte_limit() -> None:
    rig = Rig(sending_queue={"num_consumers": 1, "batch": {"max_bytes": 5000}})
    await rig.queue.start()

    for trace in range(1, 8):
        rig.enqueue(trace, 3, padding=700)
    rig.enqueue(8, 30, padding=700)
    rig.enqueue(9, 1, padding=9000)
    await rig.close()

    assert 1 == sum(len(request) > 5000 for request in rig.exporter.requests)
    assert 52 == rig.forwarded


async def test_a_failed_request_is_sent_again_with_growing_waits() -> None:
    rig = Rig(
        sending_queue={"batch": {"flush_timeout": "250ms"}},
        retry_on_failure={"initial_interval": "1s", "multiplier": 2, "randomization_factor": 0},
    )
    rig.exporter.behave = _raise(RetryableExportError("down"))
    await rig.queue.start()
    rig.enqueue(1, 4)
    await rig.advance(0.25)

    seen = [rig.exporter.attempts]
    for wait in (0.75, 0.25, 1.75, 0.25, 3.75, 0.25):
        await rig.advance(wait)
        seen.append(rig.exporter.attempts)
    held_while_down = rig.queue.held_spans
    rig.exporter.behave = lambda request, count: ACCEPTED
    await rig.advance(8)

    assert [1, 1, 2, 2, 3, 3, 4] == seen
    assert 4 == held_while_down
    assert ids(1, 4) == rig.sent_ids
    assert 4 == rig.attempts("retry")
    assert 1 == rig.attempts("success")
    assert 0 == rig.queue.held_spans == rig.limiter.used
    await rig.close()


@pytest.mark.parametrize(("outage", "told_wait", "sent"), [(20, None, 3), (20, 300.0, 2), (1, None, 2)])
async def test_after_an_outage_the_first_answer_wakes_those_that_were_not_told_when_to_come(
    outage: float, told_wait: float | None, sent: int
) -> None:
    rig = Rig(
        sending_queue={"num_consumers": 3, "batch": {"max_spans": 1}},
        retry_on_failure={"initial_interval": "60s", "max_interval": "60s", "randomization_factor": 0},
    )
    rig.exporter.behave = _raise(RetryableExportError("busy", told_wait))
    await rig.queue.start()
    rig.enqueue(1, 1)
    await rig.settle()
    rig.exporter.behave = _raise(RetryableExportError("down", told_wait))
    await rig.advance(outage)
    rig.exporter.behave = lambda request, count: ACCEPTED
    rig.enqueue(2, 1)
    rig.enqueue(3, 1)
    await rig.settle()

    assert sent == rig.forwarded
    await rig.close()


async def test_the_backends_own_delay_wins_over_the_back_off() -> None:
    rig = Rig()
    rig.exporter.behave = _raise(RetryableExportError("busy", 7.0))
    await rig.queue.start()
    rig.enqueue(1, 1)
    await rig.advance(0.2)

    await rig.advance(6.99)
    early = rig.exporter.attempts
    await rig.advance(0.01)

    assert (1, 2) == (early, rig.exporter.attempts)
    await rig.close()


async def test_by_default_a_queue_never_gives_up() -> None:
    rig = Rig()
    rig.exporter.behave = _raise(RetryableExportError("down"))
    await rig.queue.start()
    rig.enqueue(1, 2)

    for _ in range(200):
        await rig.advance(3600)
    held = rig.queue.held_spans
    rig.exporter.behave = lambda request, count: ACCEPTED
    await rig.advance(3600)

    assert 2 == held
    assert 2 == rig.forwarded
    await rig.close()


async def test_max_elapsed_time_drops_and_says_so() -> None:
    rig = Rig(retry_on_failure={"max_elapsed_time": "10s", "randomization_factor": 0})
    rig.exporter.behave = _raise(RetryableExportError("down"))
    await rig.queue.start()
    rig.enqueue(1, 2)

    for _ in range(30):
        await rig.advance(1)

    assert 2 == rig.dropped("max_elapsed_time")
    assert 0 == rig.queue.held_spans == rig.limiter.used
    await rig.close()


async def test_one_refused_span_does_not_take_the_others_with_it() -> None:
    rig = Rig()
    everything = [span_id for trace in range(1, 101) for span_id in ids(trace, 7)]
    poison = ids(3, 7)[4]

    def refuse_poison(request: bytes, count: int) -> ExportResponse:
        if poison in span_ids([request]):
            raise ContentRefusedError("INVALID_ARGUMENT: bad span")
        return ACCEPTED

    rig.exporter.behave = refuse_poison
    await rig.queue.start()
    for trace in range(1, 101):
        rig.enqueue(trace, 7)
    await rig.advance(0.2)

    assert 1 == rig.dropped("rejected")
    assert 699 == rig.forwarded
    assert sorted(set(everything) - {poison}) == sorted(rig.sent_ids)
    assert rig.attempts("refused") <= 12
    assert 0 == rig.limiter.used
    await rig.close()


async def test_the_search_for_refused_spans_is_bounded() -> None:
    rig = Rig()
    rig.exporter.behave = _raise(ContentRefusedError("RESOURCE_EXHAUSTED: too large"))
    await rig.queue.start()

    rig.enqueue(1, 1000)
    await rig.advance(0.2)

    assert 1000 == rig.dropped("rejected")
    assert 129 == rig.exporter.attempts
    assert 0 == rig.limiter.used
    await rig.close()


async def test_a_refusal_that_is_not_about_content_is_not_searched() -> None:
    rig = Rig()
    rig.exporter.behave = _raise(PermanentExportError("PERMISSION_DENIED: no"))
    await rig.queue.start()

    rig.enqueue(1, 8)
    await rig.advance(0.2)

    assert (1, 8) == (rig.exporter.attempts, rig.dropped("rejected"))
    await rig.close()


async def test_spans_rejected_by_a_partial_success_are_counted_as_dropped() -> None:
    rig = Rig()
    rig.exporter.behave = lambda request, count: ExportResponse(2, "too old")
    await rig.queue.start()

    rig.enqueue(1, 5)
    await rig.advance(0.2)

    assert (3, 2) == (rig.forwarded, rig.dropped("partial_success"))
    assert 1 == rig.attempts("partial_success")
    assert 1 == rig.exporter.attempts
    await rig.close()


async def test_a_backend_cannot_reject_more_spans_than_it_got() -> None:
    rig = Rig()
    rig.exporter.behave = lambda request, count: ExportResponse(99, "confused")
    await rig.queue.start()

    rig.enqueue(1, 5)
    await rig.advance(0.2)

    assert (0, 5) == (rig.forwarded, rig.dropped("partial_success"))
    await rig.close()


async def test_an_exporter_that_raises_something_else_loses_nothing() -> None:
    rig = Rig()
    rig.exporter.behave = _raise(ZeroDivisionError("bug"))
    await rig.queue.start()
    rig.enqueue(1, 2)
    await rig.advance(0.2)

    rig.exporter.behave = lambda request, count: ACCEPTED
    await rig.advance(5)

    assert 2 == rig.forwarded
    await rig.close()


async def test_shutdown_sends_what_waits_without_the_flush_timeout() -> None:
    rig = Rig()
    await rig.queue.start()
    rig.enqueue(1, 3)
    await rig.settle()

    await rig.queue.shutdown(rig.clock.monotonic() + 5)

    assert 3 == rig.forwarded


async def test_shutdown_wakes_a_request_that_backs_off() -> None:
    rig = Rig(retry_on_failure={"initial_interval": "30s"})
    rig.exporter.behave = _raise(RetryableExportError("down"))
    await rig.queue.start()
    rig.enqueue(1, 3)
    await rig.advance(0.2)
    rig.exporter.behave = lambda request, count: ACCEPTED

    await rig.queue.shutdown(rig.clock.monotonic() + 5)

    assert 3 == rig.forwarded


async def test_shutdown_retries_until_the_deadline_then_drops_and_logs_the_number_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.exporter.behave = _raise(RetryableExportError("down"))
    await rig.queue.start()
    rig.enqueue(1, 3)
    await rig.advance(0.2)
    rig.enqueue(2, 4)

    with caplog.at_level(logging.ERROR):
        closing = asyncio.ensure_future(rig.queue.shutdown(rig.clock.monotonic() + 5))
        await rig.advance(4.9)
        done_early = closing.done()
        await rig.advance(0.2)
        await closing

    lost = [record for record in caplog.records if "shutdown deadline" in record.message]
    assert not done_early
    assert 7 == rig.dropped("shutdown")
    assert [7] == [record.__dict__["spans"] for record in lost]
    assert rig.exporter.attempts > 3
    assert 0 == rig.queue.held_spans == rig.limiter.used == rig.queue.queued_bytes


async def test_a_request_that_hangs_does_not_hold_up_the_shutdown() -> None:
    rig = Rig()
    rig.exporter.behave = lambda request, count: asyncio.Event()
    await rig.queue.start()
    rig.enqueue(1, 3)
    await rig.advance(0.2)

    closing = asyncio.ensure_future(rig.queue.shutdown(rig.clock.monotonic() + 5))
    await rig.advance(5)
    await closing

    assert 3 == rig.dropped("shutdown")
    assert 0 == rig.limiter.used


async def test_shutdown_is_safe_before_start_and_twice_and_takes_nothing_new() -> None:
    rig = Rig()
    rig.enqueue(1, 2)

    await rig.queue.shutdown(rig.clock.monotonic())
    rig.enqueue(2, 3)
    await rig.queue.shutdown(rig.clock.monotonic())

    assert 5 == rig.dropped("shutdown")
    assert 0 == rig.queue.held_spans == rig.limiter.used


async def test_a_best_effort_queue_sheds_its_oldest_traces_first() -> None:
    rig = Rig(delivery="best_effort")
    for trace in (1, 2, 3):
        rig.enqueue(trace, 4)
    one = held_bytes(make_spans(1, 4))

    freed = rig.queue.shed(one + 1)

    assert 2 * one == freed
    assert 8 == rig.dropped("queue_full")
    await rig.queue.start()
    await rig.close()
    assert ids(3, 4) == rig.sent_ids


async def test_shedding_reaches_requests_that_back_off_but_not_those_on_the_wire() -> None:
    rig = Rig(delivery="best_effort", sending_queue={"num_consumers": 2})
    rig.exporter.behave = _raise(RetryableExportError("down"))
    await rig.queue.start()
    rig.enqueue(1, 2)
    await rig.advance(0.2)
    on_wire = asyncio.Event()
    rig.exporter.behave = lambda request, count: on_wire
    rig.enqueue(2, 3)
    await rig.advance(0.2)

    rig.queue.shed(1_000_000)
    on_wire.set()
    await rig.advance(5)

    assert (3, 2) == (rig.forwarded, rig.dropped("queue_full"))
    assert ids(2, 3) == rig.sent_ids
    assert 0 == rig.limiter.used
    await rig.close()


async def test_the_unsent_half_of_a_refused_request_can_be_shed_too() -> None:
    rig = Rig(delivery="best_effort", sending_queue={"num_consumers": 1})
    answers = iter([ContentRefusedError("bad span"), RetryableExportError("down")])

    def fail_twice(request: bytes, count: int) -> ExportResponse:
        for error in answers:
            raise error
        return ACCEPTED

    rig.exporter.behave = fail_twice
    await rig.queue.start()
    rig.enqueue(1, 2)
    rig.enqueue(2, 2)
    await rig.advance(0.2)

    rig.queue.shed(1_000_000)
    await rig.advance(5)

    assert 2 == rig.exporter.attempts
    assert (0, 4) == (rig.forwarded, rig.dropped("queue_full"))
    assert 0 == rig.queue.held_spans == rig.limiter.used
    await rig.close()


async def test_a_required_queue_sheds_nothing() -> None:
    rig = Rig()
    rig.enqueue(1, 4)

    assert 0 == rig.queue.shed(1_000_000)
    assert 4 == rig.queue.held_spans
    await rig.close()


async def test_nothing_is_shed_that_a_required_exporter_holds_too() -> None:
    rig = Rig(delivery="best_effort")
    spans = make_spans(1, 4)
    rig.queue.enqueue(Delivery(spans, 0, lambda count: None, holders=2, required_holders=1))

    assert 0 == rig.queue.shed(1_000_000)
    assert 0 == rig.dropped("queue_full")
    await rig.close()


async def test_failures_are_logged_once_in_ten_seconds_and_the_recovery_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(retry_on_failure={"initial_interval": "1s", "max_interval": "1s", "randomization_factor": 0})
    rig.exporter.behave = _raise(RetryableExportError("UNAVAILABLE: connection refused"))
    await rig.queue.start()
    rig.enqueue(1, 2)

    with caplog.at_level(logging.INFO):
        await rig.advance(0.2)
        for _ in range(9):
            await rig.advance(1)
        failures = len(caplog.records)
        rig.exporter.behave = lambda request, count: ACCEPTED
        await rig.advance(1)

    first, last = caplog.records[0].__dict__, caplog.records[-1].__dict__
    assert 1 == failures
    assert ("otlp/memory", "memory", "UNAVAILABLE: connection refused", 2) == (
        first["exporter"],
        first["endpoint"],
        first["error"],
        first["queued_spans"],
    )
    assert "A backend answers again." == last["message"]
    assert 10.0 == last["seconds"]
    await rig.close()


async def test_gauges_show_what_is_held() -> None:
    rig = Rig()
    rig.enqueue(1, 4)

    held, queued = rig.metrics.spans_held.value(NAME), rig.metrics.queue_bytes.value(NAME)
    await rig.queue.shutdown(0)

    assert 4 == held
    assert queued > 4 * 40
    assert 0 == rig.metrics.spans_held.value(NAME) == rig.metrics.queue_bytes.value(NAME)


async def test_consumers_send_side_by_side() -> None:
    rig = Rig(sending_queue={"num_consumers": 3, "batch": {"max_spans": 1}})
    gate = asyncio.Event()
    rig.exporter.behave = lambda request, count: gate
    await rig.queue.start()

    for trace in range(1, 6):
        rig.enqueue(trace, 1)
    await rig.settle()
    at_once = rig.exporter.attempts
    gate.set()
    await rig.settle()

    assert 3 == at_once
    assert 5 == rig.forwarded
    await rig.close()


async def test_a_task_group_may_own_the_consumers() -> None:
    rig = Rig()

    async with asyncio.TaskGroup() as tasks:
        await rig.queue.start(tasks)
        rig.enqueue(1, 1)
        await rig.close()

    assert 1 == rig.forwarded


def _raise(error: Exception) -> Callable[[bytes, int], ExportResponse]:
    def behave(request: bytes, count: int) -> ExportResponse:
        raise error

    return behave
