"""Where graded traces leave, and who still holds their bytes."""

from collections.abc import Callable

import pytest

from collector.clock import ManualClock
from collector.exporters import exporter_types
from collector.exporters.delivery import Delivery, encoded_size
from collector.exporters.fan_out import DiscardingQueue, FanOut
from collector.exporters.retry import MAX_RETRY_AFTER_SECONDS, BackOff
from collector.exporters.span_exporter_config import RetryConfig, SpanExporterConfig
from collector.memory_limiter import MemoryLimiter
from collector.otlp import join_spans
from collector.telemetry import Metrics
from collector.trace import DELIVERY_OVERHEAD_BYTES, RECEIPT_BYTES, GradedTrace, held_bytes
from tests.support.deliveries import MemoryExporter, make_spans, make_trace, span_queue
from tests.support.graded_runs import weather_run


class _Results:
    name = "results"

    def __init__(self) -> None:
        self.traces: list[GradedTrace] = []

    async def start(self) -> None:
        """Nothing to open."""

    def export_results(self, trace: GradedTrace, done: Callable[[], None] | None = None) -> None:
        self.traces.append(trace)

    async def shutdown(self, deadline: float) -> None:
        """Nothing to write."""


def test_the_types_are_found_by_their_folder() -> None:
    by_kind: dict[str, list[str]] = {}
    for name, kind in exporter_types().items():
        by_kind.setdefault(kind.kind, []).append(name)

    assert {
        "results": ["debug", "kafka_results", "results_file"],
        "spans": ["file", "kafka", "otlp", "otlp_http"],
        "scores": ["langfuse_scores", "mlflow_assessments", "phoenix_annotations"],
    } == by_kind


def test_the_last_holder_gives_the_bytes_back_once() -> None:
    released: list[int] = []
    delivery = Delivery(make_spans(1, 2), 500, released.append, holders=2, required_holders=1)

    delivery.done("one", required=True)
    after_first = (list(released), delivery.is_required)
    delivery.done("other", required=False)

    assert ([], False) == after_first
    assert [500] == released


@pytest.mark.parametrize("count", [1, 2, 500])
def test_the_estimated_size_is_a_tight_upper_bound(count: int) -> None:
    spans = make_spans(1, count, padding=200)

    size = len(join_spans(spans))

    assert size <= encoded_size(spans) <= size + 8 * count + 32


async def test_without_queues_the_bytes_come_back_at_once() -> None:
    limiter = MemoryLimiter(10_000)
    trace = make_trace(1, 3)
    limiter.try_acquire(held_bytes(trace.spans))

    FanOut({}, [], limiter).export(trace, held_bytes(trace.spans))

    assert 0 == limiter.used


async def test_runs_go_to_the_exporters_of_results_and_traces_without_runs_do_not() -> None:
    results = _Results()
    fan_out = FanOut({}, [results], MemoryLimiter(10_000))
    graded = GradedTrace(trace_id=b"1", spans=(), runs=[weather_run()])

    fan_out.export(graded, 0)
    fan_out.export(make_trace(1, 3), 0)

    assert [graded] == results.traces


async def test_the_discarding_queue_counts_spans_as_forwarded() -> None:
    metrics = Metrics()
    limiter = MemoryLimiter(10_000)
    fan_out = FanOut({"traces": [DiscardingQueue("debug", metrics)]}, [], limiter)
    limiter.try_acquire(1000)
    await fan_out.start()

    fan_out.export(make_trace(1, 3), 1000)
    await fan_out.shutdown(0)

    assert (3, 0) == (metrics.spans_forwarded.value("debug"), metrics.spans_held.value("debug"))
    assert 0 == limiter.used


async def test_best_effort_queues_make_room_for_new_spans() -> None:
    metrics = Metrics()
    one = held_bytes(make_spans(1, 4))
    waiting = one + DELIVERY_OVERHEAD_BYTES
    limiter = MemoryLimiter(3 * waiting)
    config = SpanExporterConfig(delivery="best_effort")
    queues = [
        span_queue(MemoryExporter(name), config, metrics=metrics, clock=ManualClock())
        for name in ("otlp/a", "otlp/b")
    ]
    fan_out = FanOut({"traces": queues}, [], limiter)

    admitted = []
    for number in range(1, 11):
        admitted.append(limiter.try_acquire(one))
        fan_out.export(make_trace(number, 4), one)

    assert [True] * 10 == admitted
    assert 3 * waiting == limiter.used
    assert [28, 28] == [metrics.spans_dropped.value("queue_full", queue.name) for queue in queues]
    await fan_out.shutdown(0)


async def test_a_required_queue_makes_senders_wait_instead() -> None:
    metrics = Metrics()
    one = held_bytes(make_spans(1, 4))
    waiting = one + DELIVERY_OVERHEAD_BYTES
    limiter = MemoryLimiter(3 * waiting)
    queue = span_queue(MemoryExporter("otlp/a"), SpanExporterConfig(), metrics=metrics, clock=ManualClock())
    fan_out = FanOut({"traces": [queue]}, [], limiter)
    for number in range(1, 4):
        limiter.try_acquire(one)
        fan_out.export(make_trace(number, 4), one)

    assert not limiter.try_acquire(1)
    assert 0 == metrics.spans_dropped.value("queue_full", "otlp/a")
    await fan_out.shutdown(0)


class _Receipt:
    """Wants to know of everybody."""

    def expects(self, holder: str) -> bool:
        return True

    def delivered(self, holder: str) -> None: ...

    def seal(self) -> None: ...


@pytest.mark.parametrize(("receipt", "more"), [(None, 0), (_Receipt(), RECEIPT_BYTES)])
async def test_what_results_added_and_what_waiting_takes_is_counted_until_it_is_delivered(
    receipt: _Receipt | None, more: int
) -> None:
    came, leaves = make_spans(1, 4), make_spans(1, 4, padding=1000)
    limiter = MemoryLimiter(1 << 20)
    queue = span_queue(MemoryExporter("otlp/a"), SpanExporterConfig(), metrics=Metrics(), clock=ManualClock())
    fan_out = FanOut({"traces": [queue]}, [], limiter)
    limiter.try_acquire(held_bytes(came))

    fan_out.export(GradedTrace(trace_id=bytes(16), spans=leaves), held_bytes(came), receipt)
    waiting = limiter.used
    await fan_out.start()
    await fan_out.shutdown(0)

    assert held_bytes(leaves) + DELIVERY_OVERHEAD_BYTES + more == waiting
    assert 0 == limiter.used


class _Highest:
    """Draws the upper end."""

    def uniform(self, low: float, high: float) -> float:
        return high


def test_waits_grow_to_the_limit_and_are_spread() -> None:
    back_off = BackOff(RetryConfig(), _Highest())  # type: ignore[arg-type]  # all that is asked of a Random

    waits = [back_off.next_wait() for _ in range(12)]

    assert [1.5, 2.25, 3.375] == waits[:3]
    assert 45.0 == waits[-1]


def test_a_backends_delay_is_bounded() -> None:
    back_off = BackOff(RetryConfig(), _Highest())  # type: ignore[arg-type]  # all that is asked of a Random

    assert [0.0, 7.0, MAX_RETRY_AFTER_SECONDS] == [back_off.next_wait(delay) for delay in (-1, 7, 1e9)]
