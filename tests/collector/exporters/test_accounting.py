"""Whatever happens to a queue, spans enqueued = forwarded + dropped + held, and bytes come back once."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from collector.clock import ManualClock
from collector.errors import ContentRefusedError, PermanentExportError, RetryableExportError
from collector.exporters import FanOut, SpanExporterConfig
from collector.exporters.exporter import ACCEPTED, ExportResponse
from collector.memory_limiter import MemoryLimiter
from collector.telemetry import Metrics
from collector.trace import held_bytes
from tests.support.backends import span_ids
from tests.support.deliveries import MemoryExporter, make_trace, span_queue

_NAMES = ("otlp/required", "otlp/best")
_REASONS = ("rejected", "partial_success", "max_elapsed_time", "queue_full", "shutdown")


def _raising(error: Exception) -> Callable[[bytes, int], ExportResponse]:
    def behave(request: bytes, count: int) -> ExportResponse:
        raise error

    return behave


def _refuse_every_seventh(request: bytes, count: int) -> ExportResponse:
    if any(int.from_bytes(span_id, "big") % 7 == 0 for span_id in span_ids([request])):
        raise ContentRefusedError("bad span")
    return ACCEPTED


_BEHAVIOURS: dict[str, Callable[[bytes, int], ExportResponse | asyncio.Event]] = {
    "accept": lambda request, count: ACCEPTED,
    "partial": lambda request, count: ExportResponse(1, "one too many"),
    "down": _raising(RetryableExportError("down")),
    "busy": _raising(RetryableExportError("busy", 3.0)),
    "refuse": _raising(PermanentExportError("no")),
    "refuse_some": _refuse_every_seventh,
    "broken": _raising(KeyError("bug")),
    "hang": lambda request, count: asyncio.Event(),
}


class QueueAccounting(RuleBasedStateMachine):
    """Two queues, one required and one best effort, behind one limiter, under any course of events."""

    @initialize(max_elapsed=st.sampled_from(["0s", "20s"]), limit=st.sampled_from([3_000, 20_000, 1_000_000]))
    def start(self, max_elapsed: str, limit: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.limiter = MemoryLimiter(limit)
        self.exporters = [MemoryExporter(name) for name in _NAMES]
        self.queues = []
        for exporter, delivery in zip(self.exporters, ("required", "best_effort"), strict=True):
            config = SpanExporterConfig.model_validate(
                {
                    "delivery": delivery,
                    "sending_queue": {"num_consumers": 2, "batch": {"max_spans": 10, "max_bytes": 2000}},
                    "retry_on_failure": {"max_elapsed_time": max_elapsed},
                }
            )
            self.queues.append(
                span_queue(exporter, config, metrics=self.metrics, clock=self.clock, random=Random(1))
            )
        self.fan_out = FanOut({"traces": self.queues}, [], self.limiter)
        self.traces = 0
        self.enqueued = 0
        self._run(self.fan_out.start())

    @rule(count=st.integers(0, 25))
    def send(self, count: int) -> None:
        self.traces += 1
        trace = make_trace(self.traces, count)
        if self.limiter.try_acquire(held_bytes(trace.spans)):
            self.enqueued += count
            self.fan_out.export(trace, held_bytes(trace.spans))

    @rule(which=st.integers(0, 1), behaviour=st.sampled_from(sorted(_BEHAVIOURS)))
    def change(self, which: int, behaviour: str) -> None:
        self.exporters[which].behave = _BEHAVIOURS[behaviour]

    @rule(seconds=st.sampled_from([0.0, 0.1, 0.2, 1.0, 5.0, 40.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._run(self._settle())

    @rule(wanted=st.integers(1, 5_000))
    def shed(self, wanted: int) -> None:
        for queue in self.queues:
            queue.shed(wanted)

    @rule()
    def stop(self) -> None:
        self._run(self._close())

    @invariant()
    def every_span_is_accounted_for(self) -> None:
        if not hasattr(self, "queues"):
            return
        for queue in self.queues:
            forwarded = self.metrics.spans_forwarded.value(queue.name)
            dropped = sum(self.metrics.spans_dropped.value(reason, queue.name) for reason in _REASONS)
            held = self.metrics.spans_held.value(queue.name)
            assert self.enqueued == forwarded + dropped + held
            assert held >= 0
            assert (held == 0) == (queue.queued_bytes == 0)
        if all(queue.held_spans == 0 for queue in self.queues):
            assert self.limiter.used == 0
        assert self.metrics.spans_dropped.value("queue_full", _NAMES[0]) == 0

    @invariant()
    def no_span_is_sent_twice(self) -> None:
        if hasattr(self, "exporters"):
            for exporter in self.exporters:
                sent = span_ids(exporter.requests)
                assert len(set(sent)) == len(sent)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self._run(self._close())
            assert [0, 0] == [queue.held_spans for queue in self.queues]
            assert self.limiter.used == 0
            self.loop.close()

    def _run(self, awaitable: object) -> None:
        self.loop.run_until_complete(awaitable)  # type: ignore[arg-type]  # a coroutine, whichever

    async def _settle(self) -> None:
        for _ in range(40):
            await asyncio.sleep(0)

    async def _close(self) -> None:
        closing = asyncio.ensure_future(self.fan_out.shutdown(self.clock.monotonic() + 5))
        while not closing.done():
            await self._settle()
            self.clock.advance(1)
        await closing


TestQueueAccounting = pytest.mark.timeout(300)(QueueAccounting.TestCase)
TestQueueAccounting.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
