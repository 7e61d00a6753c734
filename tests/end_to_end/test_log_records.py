"""Log records go the way of spans: received, forwarded unchanged, accounted for, kept over a crash.

The service is the real one with real senders: the SDK's exporters, and OpenTelemetry Collectors with
pipelines of both signals on either side.
"""

import asyncio
import json
import logging
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from opentelemetry import trace as trace_api
from opentelemetry._logs import LogRecord as SdkLogRecord
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from collector.otlp import logs_json_to_request, logs_request_to_json, split_records
from processors.model import JsonObject
from tests.support.backend_server import free_port
from tests.support.backends import ACCEPT, Answer, GrpcBackend, HttpBackend, eventually
from tests.support.held_spans import START_UNIX_NANO
from tests.support.otel_collector import OtelCollector
from tests.support.otlp_senders import GrpcSender, HttpSender, Sender, logs_request
from tests.support.service_in_loop import ServiceInLoop
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

Record = tuple[bytes, bytes, bytes]
"""Bytes of the record, of its resource and of its scope."""

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: "127.0.0.1:0"}}}}}}}}
processors: {{memory_limiter: {{limit_mib: 2}}}}
exporters: {exporters}
results: {results}
service: {{telemetry: {{endpoint: "127.0.0.1:0", self_check: {{enabled: false}}}}, shutdown_timeout: 20s}}
"""


def _records(*requests: bytes) -> list[Record]:
    return [
        (payload, envelope.resource, envelope.scope)
        for request in requests
        for _, payload, envelope in split_records(request).records
    ]


def _decoded(records: Iterable[Record]) -> set[bytes]:
    """The records with their fields in one order: a Collector encodes what it passes on anew."""
    return {LogRecord.FromString(payload).SerializeToString(deterministic=True) for payload, _, _ in records}


@asynccontextmanager
async def _service(exporters: JsonObject, results: str = "{}") -> AsyncIterator[ServiceInLoop]:
    configuration = _CONFIGURATION.format(exporters=json.dumps(exporters), results=results)
    async with ServiceInLoop(configuration, START_UNIX_NANO) as service:
        yield service


@asynccontextmanager
async def _backend(kind: Literal["otlp", "otlp_http"]) -> AsyncIterator[GrpcBackend | HttpBackend]:
    backend = GrpcBackend() if kind == "otlp" else HttpBackend()
    await backend.start()
    try:
        yield backend
    finally:
        await backend.stop()


@pytest.mark.parametrize("kind", ["otlp", "otlp_http"])
@pytest.mark.parametrize("results", ["{}", "{mode: stream}", "{emit: [span_event, log]}"])
async def test_records_are_forwarded_byte_for_byte_however_they_came(
    kind: Literal["otlp", "otlp_http"], results: str, tmp_path: Path
) -> None:
    logs_path = tmp_path / "logs.jsonl"
    sent = [logs_request(3, padding=number) for number in range(1, 5)]
    async with _backend(kind) as backend:
        exporters: JsonObject = {
            kind: {"endpoint": backend.endpoint, "tls": {"insecure": True}},
            "file": {"path": str(tmp_path / "spans.jsonl"), "logs_path": str(logs_path)},
        }
        async with _service(exporters, results) as service:
            http = service.endpoints["http"]
            async with (
                GrpcSender(service.endpoints["grpc"]) as over_grpc,
                HttpSender(http) as over_http,
                HttpSender(http, json=True) as in_json,
            ):
                senders: list[Sender] = [over_grpc, over_grpc, over_http, in_json]
                for sender, body, compress in zip(senders, sent, (False, True, True, False), strict=True):
                    assert "OK" == (await sender.send(body, compress=compress, signal="logs")).code
            done = f'tracegrade_log_records_forwarded_total{{exporter="{kind}"}}'
            metrics = await service.until(
                lambda samples: samples[done] == 12 == samples[done.replace(kind, "file")]
            )

    assert Counter(_records(*sent)) == Counter(_records(*backend.log_requests))
    written = [logs_json_to_request(line) for line in logs_path.read_bytes().splitlines()]
    assert Counter(_records(*sent)) == Counter(_records(*written))
    assert 12 == metrics["tracegrade_log_records_received_total"]
    for exporter in (kind, "file"):
        assert 0 == metrics[f'tracegrade_accounting_error_log_records{{exporter="{exporter}"}}']
    assert 0 == metrics["tracegrade_spans_received_total"]
    assert 0 == metrics["tracegrade_log_records_awaiting_verdict"]
    assert backend.requests == []


@pytest.mark.parametrize(
    ("exporters", "results", "end"),
    [
        ({"debug": {}}, "{}", "debug"),
        ({"otlp": {"signals": ["traces"]}}, "{}", "prometheus"),
        ({"otlp": {}, "prometheus": {}}, "{mode: verdicts_only}", "prometheus"),
    ],
)
async def test_where_nothing_takes_records_they_end_here_and_are_counted(
    exporters: JsonObject, results: str, end: str
) -> None:
    async with _backend("otlp") as backend:
        for settings in exporters.values():
            assert isinstance(settings, dict)
        if isinstance(otlp := exporters.get("otlp"), dict):
            exporters = {
                **exporters,
                "otlp": {**otlp, "endpoint": backend.endpoint, "tls": {"insecure": True}},
            }
        async with _service(exporters, results) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                assert "OK" == (await sender.send(logs_request(5), signal="logs")).code
            metrics = await service.metrics()

    assert backend.log_requests == []
    assert 5 == metrics[f'tracegrade_log_records_forwarded_total{{exporter="{end}"}}']
    assert 0 == metrics[f'tracegrade_accounting_error_log_records{{exporter="{end}"}}']


async def test_a_backend_that_is_down_costs_no_record_and_full_memory_sends_senders_away() -> None:
    async with _backend("otlp") as backend:
        backend.answer = lambda _: Answer("unavailable")
        exporters: JsonObject = {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}}
        accepted = []
        async with _service(exporters) as service, GrpcSender(service.endpoints["grpc"]) as sender:
            for number in range(1, 41):
                body = logs_request(number, padding=9000)
                answer = await sender.send(body, signal="logs")
                assert answer.code in ("OK", "UNAVAILABLE")
                if answer.code == "OK":
                    accepted.append(body)
            too_large = await sender.send(logs_request(300, padding=9000), signal="logs")
            held = await service.metrics()
            backend.answer = lambda _: ACCEPT
            count = len(_records(*accepted))
            after = await service.until(
                lambda samples: samples['tracegrade_log_records_forwarded_total{exporter="otlp"}'] == count
            )

    assert too_large.code == "RESOURCE_EXHAUSTED"
    assert 0 < after["tracegrade_finish_clock_standstill_seconds_total"]
    assert 0 < len(accepted) < 40
    assert count == held['tracegrade_log_records_held{exporter="otlp"}']
    refused = sum(range(1, 41)) - count
    assert refused == held['tracegrade_log_records_refused_total{reason="overloaded"}']
    assert 300 == held['tracegrade_log_records_refused_total{reason="too_large"}']
    for metrics in (held, after):
        assert count == metrics["tracegrade_log_records_received_total"]
        assert 0 == metrics['tracegrade_accounting_error_log_records{exporter="otlp"}']
    assert Counter(_records(*accepted)) == Counter(_records(*backend.log_requests))


async def test_what_a_backend_refuses_is_a_dead_letter_and_partial_success_is_counted(tmp_path: Path) -> None:
    async with _backend("otlp") as backend:
        backend.answer = lambda body: (
            Answer("refuse_content") if b"line 2" in body else Answer("partial", rejected=1)
        )
        settings: JsonObject = {
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
            "service": {"dead_letters": {"path": "dead.jsonl"}},
        }
        async with ServiceProcess(tmp_path, settings) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                assert "OK" == (await sender.send(logs_request(3), signal="logs")).code
            await service.until(lambda: bool((tmp_path / "dead.jsonl").read_bytes()))
            assert 0 == await service.stop()

    (line,) = (tmp_path / "dead.jsonl").read_bytes().splitlines()
    assert _records(logs_request(3))[1:2] == _records(logs_json_to_request(line))
    header = json.loads(line)["tracegrade"]
    assert ("otlp", "log_records", 1) == (header["exporter"], header["kind"], header["count"])


async def test_results_among_records_are_content_and_counted() -> None:
    lines = [
        LogRecord(event_name="gen_ai.evaluation.result", observed_time_unix_nano=1),
        LogRecord(body=AnyValue(string_value="about gen_ai.evaluation.result"), observed_time_unix_nano=1),
    ]
    request = ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=lines)])]
    )
    async with _service({"debug": {}}) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(request.SerializeToString(), signal="logs")
        metrics = await service.metrics()

    assert 1 == metrics["tracegrade_foreign_results_total"]
    assert 2 == metrics['tracegrade_log_records_forwarded_total{exporter="debug"}']


async def test_records_that_are_not_hex_are_rejected_alone() -> None:
    document = logs_request_to_json(logs_request(3)).replace(b"0000000000000002", b"AAAAAAAAAAI=")
    async with _service({"debug": {}}) as service:
        async with HttpSender(service.endpoints["http"], json=True) as sender:
            answer = await sender.send_raw(document, signal="logs")
        metrics = await service.metrics()

    assert ("OK", 1) == (answer.code, answer.rejected)
    assert "must be hex" in answer.message
    assert 2 == metrics["tracegrade_log_records_received_total"]
    assert 1 == metrics['tracegrade_log_records_refused_total{reason="invalid_id"}']


def _emit_everything(endpoint: str, transport: Literal["grpc", "http"]) -> None:
    """A program with one endpoint for spans, log records and metrics. Blocking."""
    resource = Resource.create({"service.name": "shop"})
    if transport == "grpc":
        spans = GrpcSpanExporter(endpoint=endpoint, insecure=True)
        logs = GrpcLogExporter(endpoint=endpoint, insecure=True)
        numbers = GrpcMetricExporter(endpoint=endpoint, insecure=True)
    else:
        spans = HttpSpanExporter(endpoint=f"http://{endpoint}/v1/traces")  # type: ignore[assignment]
        logs = HttpLogExporter(endpoint=f"http://{endpoint}/v1/logs")  # type: ignore[assignment]
        numbers = HttpMetricExporter(endpoint=f"http://{endpoint}/v1/metrics")  # type: ignore[assignment]
    tracers, loggers = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(spans))
    loggers.add_log_record_processor(BatchLogRecordProcessor(logs))
    meters = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(numbers)])
    meters.get_meter("shop").create_counter("orders").add(1)
    with tracers.get_tracer("shop").start_as_current_span("order"):
        loggers.get_logger("shop").emit(
            SdkLogRecord(
                timestamp=1,
                context=trace_api.set_span_in_context(trace_api.get_current_span()),
                severity_number=SeverityNumber.INFO,
                body={"content": "an order", "role": "user"},
                event_name="gen_ai.user.message",
            )
        )
    for provider in (meters, loggers, tracers):
        provider.shutdown()


@pytest.mark.parametrize("transport", ["grpc", "http"])
async def test_a_program_with_one_endpoint_for_all_signals_reports_no_error(
    transport: Literal["grpc", "http"], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings: JsonObject = {"exporters": {"file": {"path": "spans.jsonl", "logs_path": "logs.jsonl"}}}
    async with ServiceProcess(tmp_path, settings) as service:
        with caplog.at_level(logging.WARNING, logger="opentelemetry"):
            await asyncio.to_thread(_emit_everything, service.endpoints[transport], transport)
        await service.until(lambda: bool((tmp_path / "logs.jsonl").read_bytes()))
        await service.until(lambda: bool(service.exported_requests()))
        metrics = await service.metrics()

    assert [] == [record.message for record in caplog.records if record.name.startswith("opentelemetry")]
    (request,) = (tmp_path / "logs.jsonl").read_bytes().splitlines()
    (record,) = json.loads(request)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    (span_request,) = service.exported_requests()
    span = span_request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]  # type: ignore[index, call-overload]
    assert (span["traceId"], span["spanId"]) == (record["traceId"], record["spanId"])  # type: ignore[index, call-overload]
    assert "gen_ai.user.message" == record["eventName"]
    assert 1 == metrics["tracegrade_log_records_received_total"]
    assert 1 == metrics[f'tracegrade_metrics_requests_discarded_total{{transport="{transport}"}}']


@pytest.mark.slow
async def test_collectors_with_both_pipelines_before_and_behind_the_service(tmp_path: Path) -> None:
    before, behind = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    sent = [logs_request(50, padding=number) for number in range(1, 9)]
    async with (
        _backend("otlp_http") as backend,
        OtelCollector(
            tmp_path, "behind", _pipelines(behind, "otlphttp", {"endpoint": backend.endpoint}), behind
        ),
    ):
        settings: JsonObject = {"exporters": {"otlp": {"endpoint": behind, "tls": {"insecure": True}}}}
        async with ServiceProcess(tmp_path, settings) as service:
            onward: JsonObject = {"endpoint": service.endpoints["grpc"], "tls": {"insecure": True}}
            async with (
                OtelCollector(tmp_path, "before", _pipelines(before, "otlp", onward), before),
                GrpcSender(before) as sender,
            ):
                for body in sent:
                    assert "OK" == (await sender.send(body, signal="logs")).code
                await asyncio.to_thread(_emit_everything, before, "grpc")
                await eventually(
                    lambda: len(_records(*backend.log_requests)) == 401 and bool(backend.requests),
                    "both signals behind the service",
                    seconds=60,
                )
            metrics = await service.metrics()

    arrived = _decoded(_records(*backend.log_requests))
    assert _decoded(_records(*sent)) <= arrived
    assert 401 == metrics["tracegrade_log_records_received_total"]
    assert 0 == metrics['tracegrade_accounting_error_log_records{exporter="otlp"}']


def _pipelines(endpoint: str, exporter: str, settings: JsonObject) -> JsonObject:
    """A Collector that receives at `endpoint`, batches, and sends all signals on."""
    pipeline: JsonObject = {"receivers": ["otlp"], "processors": ["batch"], "exporters": [exporter]}
    return {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": endpoint}}}},
        "processors": {"batch": {"timeout": "200ms"}},
        "exporters": {exporter: settings},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {
                "traces": pipeline,
                "logs": dict(pipeline),
                **({"metrics": dict(pipeline)} if exporter == "otlp" else {}),
            },
        },
    }


async def test_a_crash_loses_no_record_that_was_acknowledged(tmp_path: Path) -> None:
    sent = [logs_request(7, padding=number) for number in range(1, 6)]
    async with _backend("otlp") as backend:
        backend.answer = lambda _: Answer("unavailable")
        settings: JsonObject = {
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
            "journal": {"directory": "journal"},
        }
        async with ServiceProcess(tmp_path, settings) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                for body in sent:
                    assert "OK" == (await sender.send(body, signal="logs")).code
            service.signal(signal.SIGKILL)
            await service.wait()
        backend.answer = lambda _: ACCEPT
        async with ServiceProcess(tmp_path, settings) as service:
            await service.until(lambda: len(_records(*backend.log_requests)) >= 35)
            metrics = await service.metrics()
            assert 0 == await service.stop()
        async with ServiceProcess(tmp_path, settings) as service:
            again = await service.metrics()
            assert 0 == await service.stop()

    assert Counter(_records(*sent)) == Counter(_records(*backend.log_requests))
    assert 35 == metrics['tracegrade_log_records_recovered_total{exporter=""}']
    assert 35 == metrics['tracegrade_log_records_sent_again_total{exporter="otlp"}']
    assert 0 == metrics['tracegrade_accounting_error_log_records{exporter="otlp"}']
    assert 0 == metrics['tracegrade_spans_recovered_total{exporter=""}']
    assert 0 == again['tracegrade_log_records_recovered_total{exporter=""}']


async def test_what_is_not_delivered_at_a_shutdown_stays_in_the_journal(tmp_path: Path) -> None:
    async with _backend("otlp") as backend:
        backend.answer = lambda _: Answer("unavailable")
        settings: JsonObject = {
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
            "journal": {"directory": "journal"},
            "service": {"shutdown_timeout": "1s"},
        }
        async with ServiceProcess(tmp_path, settings) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                assert "OK" == (await sender.send(logs_request(4), signal="logs")).code
            assert 0 == await service.stop()
        backend.answer = lambda _: ACCEPT
        async with ServiceProcess(tmp_path, settings) as service:
            await service.until(lambda: len(_records(*backend.log_requests)) >= 4)
            assert 0 == await service.stop()

    assert Counter(_records(logs_request(4))) == Counter(_records(*backend.log_requests))
