"""The service's own spans and log records, sent to real OTLP servers."""

import asyncio
import logging
from collections.abc import AsyncIterator

import grpc
import pytest
from aiohttp import web
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_grpc
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from pydantic import SecretStr

from collector.clock import ManualClock, SystemClock
from collector.errors import StartupError
from collector.monitoring import OwnLogs, OwnTraces, refuse_own_receivers
from collector.telemetry.telemetry_config import LogsConfig, OtlpConfig, TelemetryConfig, TracesConfig


class Backend(trace_grpc.TraceServiceServicer, logs_grpc.LogsServiceServicer):
    """Takes traces and logs over gRPC and over HTTP."""

    def __init__(self) -> None:
        self.traces: list[trace_pb.ExportTraceServiceRequest] = []
        self.logs: list[logs_pb.ExportLogsServiceRequest] = []
        self.authorizations: list[str | None] = []
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()
        self.grpc_port = 0
        self.http_port = 0

    async def Export(self, request, context):  # type: ignore[no-untyped-def]  # one method for two services
        metadata = dict(context.invocation_metadata())
        self.authorizations.append(metadata.get("authorization"))
        if isinstance(request, trace_pb.ExportTraceServiceRequest):
            self.traces.append(request)
            return trace_pb.ExportTraceServiceResponse()
        self.logs.append(request)
        return logs_pb.ExportLogsServiceResponse()

    async def take_traces(self, request: web.Request) -> web.Response:
        self.asked.set()
        await self.answers.wait()
        self.authorizations.append(request.headers.get("authorization"))
        self.traces.append(trace_pb.ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")

    async def take_logs(self, request: web.Request) -> web.Response:
        self.authorizations.append(request.headers.get("authorization"))
        self.logs.append(logs_pb.ExportLogsServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")

    def destination(self, protocol: str) -> OtlpConfig:
        headers = {"Authorization": SecretStr("Bearer secret")}
        if protocol == "grpc":
            return OtlpConfig(endpoint=f"127.0.0.1:{self.grpc_port}", protocol="grpc", headers=headers)
        return OtlpConfig(
            endpoint=f"http://127.0.0.1:{self.http_port}", protocol="http/protobuf", headers=headers
        )


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    backend = Backend()
    server = grpc.aio.server()
    trace_grpc.add_TraceServiceServicer_to_server(backend, server)  # type: ignore[no-untyped-call]  # generated
    logs_grpc.add_LogsServiceServicer_to_server(backend, server)  # type: ignore[no-untyped-call]  # generated
    backend.grpc_port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    application = web.Application()
    application.router.add_post("/v1/traces", backend.take_traces)
    application.router.add_post("/v1/logs", backend.take_logs)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    backend.http_port = runner.addresses[0][1]
    yield backend
    await runner.cleanup()
    await server.stop(None)


def in_ten_seconds() -> float:
    return SystemClock().monotonic() + 10


def as_dict(attributes: list[KeyValue]) -> dict[str, object]:
    return {
        attribute.key: getattr(attribute.value, str(attribute.value.WhichOneof("value")))
        for attribute in attributes
    }


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
async def test_an_evaluated_trace_becomes_a_span(backend: Backend, protocol: str) -> None:
    traces = OwnTraces(
        backend.destination(protocol), 1.0, version="0.1.0", instance="one", clock=SystemClock()
    )

    traces.trace_evaluated(spans=12, runs=2, reason="root", start_unix_nano=1000, end_unix_nano=3000)
    await traces.shutdown(in_ten_seconds())

    [request] = backend.traces
    [resource_spans] = request.resource_spans
    [span] = resource_spans.scope_spans[0].spans
    assert {
        "service.name": "tracegrade",
        "service.version": "0.1.0",
        "service.instance.id": "one",
    } == as_dict(list(resource_spans.resource.attributes))
    assert ("evaluate trace", 1000, 3000) == (span.name, span.start_time_unix_nano, span.end_time_unix_nano)
    assert {
        "tracegrade.spans": 12,
        "tracegrade.runs": 2,
        "tracegrade.finish_reason": "root",
    } == as_dict(list(span.attributes))
    assert ["Bearer secret"] == backend.authorizations


async def test_what_is_not_sampled_is_not_sent(backend: Backend) -> None:
    traces = OwnTraces(backend.destination("grpc"), 0.0, version="0.1.0", instance="one", clock=SystemClock())

    traces.trace_evaluated(spans=1, runs=1, reason="root", start_unix_nano=1, end_unix_nano=2)
    await traces.shutdown(in_ten_seconds())

    assert [] == backend.traces


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
async def test_log_records_of_the_project_are_sent_and_those_of_libraries_are_not(
    backend: Backend, protocol: str
) -> None:
    logs = OwnLogs(backend.destination(protocol), version="0.1.0", instance="one", clock=SystemClock())
    logging.getLogger().addHandler(logs)

    logging.getLogger("collector.exporters").warning("Spans were dropped.", extra={"spans": 3})
    logging.getLogger("opentelemetry.exporter").warning("Not for the destination.")
    await logs.shutdown(in_ten_seconds())
    logging.getLogger("collector.exporters").warning("Too late.")

    records = [
        (
            scope_logs.scope.name,
            record.severity_text,
            record.body.string_value,
            as_dict(list(record.attributes)),
        )
        for request in backend.logs
        for resource_logs in request.resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
    ]
    assert [("collector.exporters", "WARNING", "Spans were dropped.", {"spans": 3})] == records


async def test_shutdown_is_over_by_the_deadline_though_the_destination_hangs(backend: Backend) -> None:
    backend.answers.clear()
    clock = ManualClock()
    traces = OwnTraces(
        backend.destination("http/protobuf"), 1.0, version="0.1.0", instance="one", clock=clock
    )
    traces.trace_evaluated(spans=1, runs=1, reason="root", start_unix_nano=1, end_unix_nano=2)

    stopping = asyncio.ensure_future(traces.shutdown(5))
    await asyncio.wait_for(backend.asked.wait(), 10)
    assert not stopping.done()
    clock.advance(5)
    await stopping

    assert [] == backend.traces
    backend.answers.set()


@pytest.mark.parametrize(
    ("endpoint", "protocol", "receiver"),
    [
        ("127.0.0.1:4317", "grpc", "127.0.0.1:4317"),
        ("localhost", "grpc", "127.0.0.1:4317"),
        ("http://localhost:4318/v1/traces", "http/protobuf", "0.0.0.0:4318"),
        ("https://127.0.0.1", "http/protobuf", "0.0.0.0:443"),
        ("127.0.0.2:4317", "grpc", "0.0.0.0:4317"),
    ],
)
def test_the_service_never_sends_to_itself(endpoint: str, protocol: str, receiver: str) -> None:
    otlp = OtlpConfig.model_validate({"endpoint": endpoint, "protocol": protocol})

    for signal, config in (
        ("traces", TelemetryConfig(traces=TracesConfig(otlp=otlp))),
        ("logs", TelemetryConfig(logs=LogsConfig(otlp=otlp))),
    ):
        with pytest.raises(StartupError) as raised:
            refuse_own_receivers(config, ["127.0.0.1:1", receiver])

        assert (
            f"service.telemetry.{signal}.otlp.endpoint: {endpoint} is this service's own receiver "
            f"{receiver}; its telemetry must go elsewhere"
        ) == str(raised.value)


@pytest.mark.parametrize(
    ("endpoint", "receiver"),
    [
        ("127.0.0.1:14317", "0.0.0.0:4317"),
        ("192.0.2.1:4317", "0.0.0.0:4317"),
        ("127.0.0.2:4317", "127.0.0.1:4317"),
    ],
)
def test_other_destinations_are_fine(endpoint: str, receiver: str) -> None:
    config = TelemetryConfig(traces=TracesConfig(otlp=OtlpConfig(endpoint=endpoint)))

    refuse_own_receivers(config, [receiver])


def test_own_telemetry_is_off_by_default_and_headers_are_not_shown() -> None:
    otlp = OtlpConfig(endpoint="x:1", headers={"authorization": SecretStr("secret")})

    assert TelemetryConfig().traces.otlp is None
    assert TelemetryConfig().logs.otlp is None
    assert "secret" not in repr(otlp) + otlp.model_dump_json()
