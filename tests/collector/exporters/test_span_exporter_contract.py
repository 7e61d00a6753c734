"""What every exporter of spans promises, on real servers and files; a new type needs a sink here."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from io import StringIO
from pathlib import Path
from typing import Protocol

import pytest
from pydantic import BaseModel

from collector.clock import SystemClock
from collector.errors import ExportError, RetryableExportError
from collector.exporters import ExporterContext, FanOut, SpanExporter, SpanExporterConfig, exporter_types
from collector.exporters.sending_queue import SendingQueue
from collector.memory_limiter import MemoryLimiter
from collector.otlp import join_spans, json_to_request
from collector.telemetry import Metrics
from collector.trace import held_bytes
from tests.support.backends import Answer, GrpcBackend, HttpBackend, eventually, span_ids
from tests.support.deliveries import MemoryExporter, make_spans, make_trace, span_queue
from tests.support.kafka_broker import KafkaBroker

_FAST: dict[str, object] = {
    "sending_queue": {"batch": {"flush_timeout": "5ms", "max_spans": 50}},
    "retry_on_failure": {"initial_interval": "10ms", "max_interval": "50ms"},
}


class Sink(Protocol):
    """Where an exporter of one type sends to."""

    def config(self) -> dict[str, object]: ...

    def received(self) -> list[bytes]: ...

    async def go_down(self) -> None: ...

    async def come_up(self) -> None: ...


class ServerSink:
    def __init__(self, backend: GrpcBackend | HttpBackend, extra: dict[str, object]) -> None:
        self.backend = backend
        self.extra = extra

    def config(self) -> dict[str, object]:
        return {"endpoint": self.backend.endpoint, **self.extra}

    def received(self) -> list[bytes]:
        return span_ids(self.backend.requests)

    async def go_down(self) -> None:
        await self.backend.stop()

    async def come_up(self) -> None:
        await self.backend.start()


class FileSink:
    """A file; it is down while a directory stands in its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before: list[bytes] = []

    def config(self) -> dict[str, object]:
        return {"path": str(self.path)}

    def received(self) -> list[bytes]:
        if not self.path.is_file():
            return self.before
        lines = self.path.read_bytes().splitlines()
        return self.before + span_ids([json_to_request(line) for line in lines])

    async def go_down(self) -> None:
        self.before = self.received()
        self.path.unlink()
        self.path.mkdir()

    async def come_up(self) -> None:
        self.path.rmdir()


class KafkaSink:
    """A topic of a real broker."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.broker = broker
        self.topic = broker.create_topic(3)

    def config(self) -> dict[str, object]:
        return {**self.broker.client_config(), "topic": self.topic, "timeout": "500ms"}

    def received(self) -> list[bytes]:
        return span_ids([value for _, value in self.broker.records(self.topic)])

    async def go_down(self) -> None:
        self.broker.kill()

    async def come_up(self) -> None:
        await asyncio.to_thread(self.broker.start)


_SINKS: dict[str, Callable[[pytest.FixtureRequest], Sink]] = {
    "otlp": lambda request: ServerSink(GrpcBackend(), {"tls": {"insecure": True}}),
    "otlp_http": lambda request: ServerSink(HttpBackend(), {}),
    "file": lambda request: FileSink(request.getfixturevalue("tmp_path") / "spans.jsonl"),
    "kafka": lambda request: KafkaSink(request.getfixturevalue("broker")),
}

over_the_network = pytest.mark.parametrize("type_name", ["otlp", "otlp_http"], indirect=True)
"""For what only a server can do: refuse, take a part, name a delay."""

_TYPES = {name: kind for name, kind in exporter_types().items() if kind.kind == "spans"}


@pytest.fixture(params=sorted(_TYPES))
def type_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def sink(type_name: str, request: pytest.FixtureRequest) -> AsyncIterator[Sink]:
    sink = _SINKS[type_name](request)
    if isinstance(sink, ServerSink):
        await sink.backend.start()
    yield sink
    if isinstance(sink, ServerSink):
        await sink.backend.stop()


class Pipeline:
    """The exporter under test behind its queue, as the service runs it."""

    def __init__(
        self, type_name: str, settings: dict[str, object], neighbours: list[SendingQueue] | None = None
    ):
        self.metrics = Metrics()
        self.clock = SystemClock()
        self.limiter = MemoryLimiter(1 << 28)
        kind = _TYPES[type_name]
        self.config: BaseModel = kind.config_model.model_validate(_FAST | settings)
        context = ExporterContext(clock=self.clock, metrics=self.metrics, console=StringIO())
        self.exporter: SpanExporter = kind.create(type_name, self.config, context)
        assert isinstance(self.config, SpanExporterConfig)
        self.queue = span_queue(self.exporter, self.config, metrics=self.metrics, clock=self.clock)
        self.fan_out = FanOut(
            {"traces": [self.queue, *(neighbours or [])]}, [], self.limiter, exporters=[self.exporter]
        )
        self.sent: list[bytes] = []

    def send(self, number: int, count: int) -> None:
        trace = make_trace(number, count)
        assert self.limiter.try_acquire(held_bytes(trace.spans))
        self.sent += [span[0] for span in trace.spans]
        self.fan_out.export(trace, held_bytes(trace.spans))

    async def shutdown(self, seconds: float = 10.0) -> None:
        await self.fan_out.shutdown(self.clock.monotonic() + seconds)

    @property
    def forwarded(self) -> float:
        return self.metrics.spans_forwarded.value(self.exporter.name)

    def dropped(self, reason: str) -> float:
        return self.metrics.spans_dropped.value(reason, self.exporter.name)


def test_every_type_of_span_exporter_is_under_contract() -> None:
    assert set(_TYPES) == set(_SINKS)


async def test_what_was_enqueued_reaches_the_sink_exactly_once(type_name: str, sink: Sink) -> None:
    pipeline = Pipeline(type_name, sink.config())
    await pipeline.fan_out.start()

    for number in range(1, 101):
        pipeline.send(number, 1 + number % 7)
    pipeline.send(101, 180)
    await pipeline.shutdown()

    assert sorted(pipeline.sent) == sorted(sink.received())
    assert len(pipeline.sent) == pipeline.forwarded
    assert 0 == pipeline.limiter.used


async def test_a_backend_that_goes_down_and_up_again_loses_nothing(type_name: str, sink: Sink) -> None:
    pipeline = Pipeline(type_name, sink.config())
    await pipeline.fan_out.start()
    pipeline.send(1, 5)
    await eventually(lambda: pipeline.forwarded == 5, "the first spans arrive")

    await sink.go_down()
    for number in range(2, 40):
        pipeline.send(number, 5)
    retries = pipeline.metrics.export_attempts
    await eventually(lambda: retries.value(type_name, "retry") >= 5, "some retries")
    held = pipeline.queue.held_spans
    await sink.come_up()
    await eventually(lambda: pipeline.queue.held_spans == 0, "all spans leave")
    await pipeline.shutdown()

    assert 190 == held
    assert sorted(pipeline.sent) == sorted(sink.received())
    assert 195 == pipeline.forwarded


async def test_shutdown_ends_by_its_deadline_though_the_backend_is_down(type_name: str, sink: Sink) -> None:
    pipeline = Pipeline(type_name, sink.config())
    await pipeline.fan_out.start()
    await sink.go_down()
    pipeline.send(1, 5)

    started = time.monotonic()
    await pipeline.shutdown(0.3)
    elapsed = time.monotonic() - started

    assert elapsed < 3
    assert 5 == pipeline.dropped("shutdown")
    assert 0 == pipeline.limiter.used
    await sink.come_up()


async def test_shutdown_is_safe_before_start_and_twice(type_name: str, sink: Sink) -> None:
    unstarted = Pipeline(type_name, sink.config())
    started = Pipeline(type_name, sink.config())
    await started.fan_out.start()

    await unstarted.shutdown()
    await unstarted.shutdown()
    await started.shutdown()
    await started.shutdown()

    with pytest.raises(ExportError):
        await started.exporter.export(join_spans(make_spans(1, 1)), 1)


async def test_an_exporter_that_was_not_started_asks_for_a_retry(type_name: str, sink: Sink) -> None:
    pipeline = Pipeline(type_name, sink.config())

    with pytest.raises(RetryableExportError, match="not started"):
        await pipeline.exporter.export(join_spans(make_spans(1, 1)), 1)


async def test_a_neighbour_that_hangs_stops_nobody(type_name: str, sink: Sink) -> None:
    stuck = MemoryExporter("otlp/stuck")
    stuck.behave = lambda request, count: asyncio.Event()
    queue = span_queue(
        stuck, SpanExporterConfig.model_validate(_FAST), metrics=Metrics(), clock=SystemClock()
    )
    pipeline = Pipeline(type_name, sink.config(), [queue])
    await pipeline.fan_out.start()

    for number in range(1, 20):
        pipeline.send(number, 3)
    await eventually(lambda: pipeline.forwarded == 57, "the healthy exporter delivers")

    assert sorted(pipeline.sent) == sorted(sink.received())
    assert pipeline.limiter.used > 0
    await pipeline.shutdown(0.2)
    assert 0 == pipeline.limiter.used


@over_the_network
async def test_a_permanent_refusal_is_counted_and_ends_there(type_name: str, sink: Sink) -> None:
    assert isinstance(sink, ServerSink)
    pipeline = Pipeline(type_name, sink.config())
    sink.backend.answer = lambda request: Answer("refuse", message="not yours")
    await pipeline.fan_out.start()

    pipeline.send(1, 5)
    await eventually(lambda: pipeline.queue.held_spans == 0, "the spans are dropped")

    assert 5 == pipeline.dropped("rejected")
    assert 1 == sink.backend.attempts
    await pipeline.shutdown()


@over_the_network
async def test_one_poisonous_span_is_found_and_the_others_arrive(type_name: str, sink: Sink) -> None:
    assert isinstance(sink, ServerSink)
    pipeline = Pipeline(type_name, sink.config())
    poison = make_spans(3, 5)[2][0]
    sink.backend.answer = lambda request: Answer(
        "refuse_content" if poison in span_ids([request]) else "accept", message="bad attribute"
    )
    await pipeline.fan_out.start()

    for number in range(1, 11):
        pipeline.send(number, 5)
    await eventually(lambda: pipeline.queue.held_spans == 0, "all spans are settled")

    assert 1 == pipeline.dropped("rejected")
    assert sorted(set(pipeline.sent) - {poison}) == sorted(sink.received())
    await pipeline.shutdown()


@over_the_network
async def test_a_partial_success_is_taken_at_its_word(type_name: str, sink: Sink) -> None:
    assert isinstance(sink, ServerSink)
    pipeline = Pipeline(type_name, sink.config())
    sink.backend.answer = lambda request: Answer("partial", rejected=2, message="too old")
    await pipeline.fan_out.start()

    pipeline.send(1, 5)
    await pipeline.shutdown()

    assert (3, 2) == (pipeline.forwarded, pipeline.dropped("partial_success"))
    assert 1 == sink.backend.attempts


@over_the_network
async def test_the_backends_delay_is_told_to_the_queue(type_name: str, sink: Sink) -> None:
    assert isinstance(sink, ServerSink)
    pipeline = Pipeline(type_name, sink.config())
    sink.backend.answer = lambda request: Answer("unavailable", retry_after=3, message="later")
    await pipeline.exporter.start()

    with pytest.raises(RetryableExportError, match="later") as raised:
        await pipeline.exporter.export(join_spans(make_spans(1, 1)), 1)

    assert 3.0 == raised.value.retry_after_seconds
    await pipeline.exporter.shutdown(0)


@over_the_network
async def test_an_attempt_ends_at_its_timeout(type_name: str, sink: Sink) -> None:
    assert isinstance(sink, ServerSink)
    gate = asyncio.Event()
    sink.backend.answer = lambda request: Answer(gate=gate)
    pipeline = Pipeline(type_name, sink.config() | {"timeout": "50ms"})
    await pipeline.exporter.start()

    with pytest.raises(RetryableExportError):
        await pipeline.exporter.export(join_spans(make_spans(1, 1)), 1)

    gate.set()
    await pipeline.exporter.shutdown(0)
