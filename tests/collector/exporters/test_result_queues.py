"""Results in forms of their own: queues beside those of spans, counted apart, never in a sender's way."""

import asyncio
from io import StringIO
from pathlib import Path

import orjson
import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.clock import ManualClock, SystemClock
from collector.errors import PermanentExportError, RetryableExportError, StartupError
from collector.exporters import FanOut, SpanExporterConfig, build_fan_out, exporter_types
from collector.exporters.counts import ExportCounts
from collector.exporters.exporter import ACCEPTED, ExporterContext, ExportResponse, SpanExporter
from collector.exporters.file import FileConfig, FileExporter
from collector.exporters.otlp_grpc import OtlpGrpcConfig, OtlpGrpcExporter
from collector.exporters.otlp_http import OtlpHttpConfig, OtlpHttpExporter
from collector.exporters.sending_queue import SendingQueue
from collector.exporters.sink import exporter_sink
from collector.memory_limiter import MemoryLimiter
from collector.otlp import join_spans
from collector.results_config import ResultsConfig
from collector.telemetry import Metrics
from collector.trace import GradedTrace, Signal, held_bytes
from processors.annotation import evaluation_spans, result_records
from processors.spans import RawSpan
from tests.support.backends import Answer, GrpcBackend, HttpBackend, eventually, log_records, span_ids
from tests.support.deliveries import MemoryExporter, make_trace, span_queue
from tests.support.graded_spans import FAILED_CALL, PASSED, RUN, SPANS

RECORDS = result_records(SPANS, [(RUN, [PASSED, FAILED_CALL])], time_unix_nano=7, instance="i")
VERDICT_SPANS = evaluation_spans(SPANS, [(RUN, [PASSED])], time_unix_nano=7, instance="i")


class _LoggingExporter(MemoryExporter):
    """Takes log records as well."""

    def __init__(self, name: str = "otlp/memory") -> None:
        super().__init__(name)
        self.endpoints["logs"] = "memory of logs"
        self.log_requests: list[bytes] = []
        self.refusal: Exception | None = None

    async def export(self, request: bytes, span_count: int, signal: Signal = "traces") -> ExportResponse:
        if signal == "traces":
            return await super().export(request, span_count)
        if self.refusal is not None:
            raise self.refusal
        self.log_requests.append(request)
        return ACCEPTED


class _Rig:
    """An exporter that takes spans and log records, behind a queue for each, on a clock of the test."""

    def __init__(self, limit_bytes: int = 1_000_000) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.limiter = MemoryLimiter(limit_bytes)
        self.exporter = _LoggingExporter()
        config = SpanExporterConfig()
        self.queue = span_queue(self.exporter, config, metrics=self.metrics, clock=self.clock)
        self.logs = SendingQueue(
            exporter_sink(self.exporter, "logs"),
            config.sending_queue.one_at_a_time(),
            config.retry_on_failure,
            counts=ExportCounts(self.metrics, self.exporter.name, "log"),
            clock=self.clock,
        )
        self.fan_out = FanOut(
            {"traces": [self.queue], "log": [self.logs]}, [], self.limiter, exporters=[self.exporter]
        )

    def grade(self, records: list[RawSpan]) -> None:
        self.fan_out.export(GradedTrace(trace_id=RUN.trace_id, spans=(), log_records=records), 0)

    def dropped(self, reason: str) -> float:
        return self.metrics.results_dropped.value(reason, self.exporter.name)

    async def advance(self, seconds: float) -> None:
        for _ in range(50):
            await asyncio.sleep(0)
        self.clock.advance(seconds)
        for _ in range(50):
            await asyncio.sleep(0)

    async def close(self) -> None:
        closing = asyncio.ensure_future(self.fan_out.shutdown(self.clock.monotonic() + 5))
        while not closing.done():
            await self.advance(1)
        await closing


async def test_results_leave_beside_the_spans_and_are_never_counted_as_such() -> None:
    rig = _Rig()
    await rig.fan_out.start()
    trace = make_trace(1, 3)
    rig.limiter.try_acquire(held_bytes(trace.spans))

    rig.fan_out.export(trace, held_bytes(trace.spans))
    rig.grade(RECORDS)
    held_spans = rig.queue.held_spans
    held_results = rig.metrics.results_held.value("otlp/memory", "log")
    await rig.close()

    assert 3 == held_spans
    assert 2 == held_results
    assert 3 == rig.metrics.spans_forwarded.value("otlp/memory")
    assert 2 == rig.metrics.results_exported.value("otlp/memory", "log")
    assert 2 == len(log_records(rig.exporter.log_requests))
    assert 3 == len(span_ids(rig.exporter.requests))
    assert 0 == rig.limiter.used
    assert 1 == rig.exporter.shutdowns


async def test_a_backend_that_refuses_log_records_loses_these_alone() -> None:
    rig = _Rig()
    rig.exporter.refusal = PermanentExportError("UNIMPLEMENTED")
    await rig.fan_out.start()
    trace = make_trace(1, 3)
    rig.limiter.try_acquire(held_bytes(trace.spans))

    rig.fan_out.export(trace, held_bytes(trace.spans))
    rig.grade(RECORDS)
    await rig.close()

    assert 2 == rig.dropped("rejected")
    assert 3 == rig.metrics.spans_forwarded.value("otlp/memory")
    assert 0 == sum(rig.metrics.spans_dropped.values.values())


async def test_results_are_sent_again_when_the_backend_comes_back() -> None:
    rig = _Rig()
    rig.exporter.refusal = RetryableExportError("down")
    await rig.fan_out.start()
    rig.grade(RECORDS)
    for _ in range(10):
        await rig.advance(1)

    rig.exporter.refusal = None
    for _ in range(40):
        await rig.advance(1)

    assert 2 == rig.metrics.results_exported.value("otlp/memory", "log")
    assert 2 == len(log_records(rig.exporter.log_requests))
    await rig.close()


async def test_held_results_make_room_for_spans_and_what_finds_no_room_is_dropped() -> None:
    one = held_bytes(RECORDS)
    rig = _Rig(limit_bytes=3 * one)
    for _ in range(3):
        rig.grade(RECORDS)

    admitted = rig.limiter.try_acquire(2 * one)
    after_admission = rig.dropped("queue_full")
    room_left = rig.limiter.try_acquire(one)
    rig.grade(RECORDS)

    assert admitted
    assert 4 == after_admission
    assert room_left
    assert 8 == rig.dropped("queue_full")
    await rig.close()


async def test_what_is_held_at_the_deadline_is_dropped_and_counted() -> None:
    rig = _Rig()
    rig.exporter.refusal = RetryableExportError("down")
    await rig.fan_out.start()
    rig.grade(RECORDS)

    await rig.close()

    assert 2 == rig.dropped("shutdown")
    assert 0 == rig.limiter.used


async def test_an_exporter_without_log_records_cannot_be_asked_for_them() -> None:
    with pytest.raises(TypeError, match="otlp/memory accepts no logs"):
        exporter_sink(MemoryExporter(), "logs")


@pytest.mark.parametrize("backend_type", [GrpcBackend, HttpBackend])
async def test_log_records_arrive_at_a_real_backend(backend_type: type[GrpcBackend | HttpBackend]) -> None:
    backend = backend_type()
    await backend.start()
    clock = SystemClock()
    metrics = Metrics()
    kind = "otlp" if isinstance(backend, GrpcBackend) else "otlp_http"
    settings: dict[str, object] = {"endpoint": backend.endpoint}
    if kind == "otlp":
        settings["tls"] = {"insecure": True}
    config = exporter_types()[kind].config_model.model_validate(settings)
    fan_out = build_fan_out(
        {kind: config},
        ResultsConfig.model_validate({"mode": "stream", "emit": ["log", "span"]}),
        ExporterContext(clock=clock, metrics=metrics, console=StringIO()),
        MemoryLimiter(1 << 20),
        end_of_spans="prometheus",
    )
    await fan_out.start()

    graded = GradedTrace(trace_id=RUN.trace_id, spans=(), log_records=RECORDS, evaluation_spans=VERDICT_SPANS)
    fan_out.export(graded, 0)
    await fan_out.shutdown(clock.monotonic() + 20)
    await backend.stop()

    arrived = log_records(backend.log_requests)
    assert [("demo", "test")] * 2 == [(service, scope) for service, scope, _ in arrived]
    assert [LogRecord.FromString(record[1]) for record in RECORDS] == [record for _, _, record in arrived]
    assert [VERDICT_SPANS[0][0]] == span_ids(backend.requests)
    assert (2, 1) == tuple(metrics.results_exported.value(kind, form) for form in ("log", "span"))
    assert 0 == metrics.spans_forwarded.value(kind)
    if isinstance(backend, HttpBackend):
        assert {"/v1/logs", "/v1/traces"} == set(backend.paths)


async def test_a_partial_success_of_log_records_is_counted() -> None:
    backend = HttpBackend(lambda _: Answer("partial", rejected=1, message="too old"))
    await backend.start()
    exporter = OtlpHttpExporter("otlp_http", OtlpHttpConfig(endpoint=backend.endpoint), SystemClock())
    await exporter.start()

    answer = await exporter.export(join_spans(RECORDS), 2, "logs")

    assert ExportResponse(1, "too old") == answer
    await exporter.shutdown(0)
    await backend.stop()


async def test_log_records_can_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    config = FileConfig(path=tmp_path / "spans.jsonl", logs_path=tmp_path / "logs.jsonl")
    exporter = FileExporter("file", config)
    await exporter.start()

    await exporter.export(join_spans(RECORDS), 2, "logs")
    await exporter.export(join_spans(SPANS), 2)
    await exporter.shutdown(0)
    await eventually(lambda: (tmp_path / "spans.jsonl").read_bytes().endswith(b"\n"), "both are written")

    (line,) = (tmp_path / "logs.jsonl").read_bytes().splitlines()
    (resource_logs,) = orjson.loads(line)["resourceLogs"]
    records = resource_logs["scopeLogs"][0]["logRecords"]
    assert [("gen_ai.evaluation.result", record[0].hex()) for record in RECORDS] == [
        (record["eventName"], record["spanId"]) for record in records
    ]
    assert b"resourceLogs" not in (tmp_path / "spans.jsonl").read_bytes()


async def test_a_file_for_log_records_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "logs.jsonl"
    exporter = FileExporter("file", FileConfig(path=tmp_path / "spans.jsonl", logs_path=path))

    with pytest.raises(StartupError, match=r"exporters\.file\.logs_path: .*cannot be written"):
        await exporter.start()


async def test_log_records_are_refused_where_there_is_nowhere_to_put_them(tmp_path: Path) -> None:
    file = FileExporter("file", FileConfig(path=tmp_path / "spans.jsonl"))
    http = OtlpHttpExporter("otlp_http", OtlpHttpConfig(traces_endpoint="http://a/v1"), SystemClock())
    await http.start()

    for exporter in (file, http):
        with pytest.raises(PermanentExportError):
            await exporter.export(b"", 0, "logs")
    await http.shutdown(0)


def test_what_takes_log_records_can_be_asked_for_them(tmp_path: Path) -> None:
    exporters: list[SpanExporter] = [
        OtlpGrpcExporter("otlp", OtlpGrpcConfig(endpoint="a:4317")),
        OtlpHttpExporter("otlp_http", OtlpHttpConfig(endpoint="http://a"), SystemClock()),
        FileExporter("file", FileConfig(path=tmp_path / "a", logs_path=tmp_path / "b")),
    ]

    assert all("logs" in exporter.endpoints for exporter in exporters)
