"""Whether each exporter delivers: one span, or one log record, sent as the service would.

The span is of no agent. It ends at the backend; the service that runs never sees it.
"""

import asyncio
import io
import secrets
from collections.abc import Awaitable
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from pydantic import BaseModel
from yarl import URL

from collector.clock import Clock
from collector.configuration import ServiceConfig
from collector.errors import ExportError, StartupError
from collector.exporters import (
    ExporterContext,
    ScoreExporter,
    SpanExporterConfig,
    exporter_types,
    receives_evaluation_spans,
    receives_log_records,
    receives_spans,
)
from collector.kafka_connection import KafkaConnectionConfig
from collector.telemetry import Metrics
from collector.tools.doctor.hop import Hop, Trouble, works
from collector.tools.doctor.places import file_hop
from collector.tools.doctor.refusals import EXPORTER_ADVICE, refusal_trouble
from collector.tools.doctor.wire import Remote, wire_trouble
from processors.criteria import SELF_CHECK_AGENT

SPAN_NAME = "tracegrade doctor"
_LONGEST_SECONDS = 15.0
_OTHER_PROTOCOL = {
    "http": "Use an exporter of type otlp for this address, or give the backend's port for OTLP/HTTP.",
    "grpc": "Use an exporter of type otlp_http for this address, or give the backend's port for gRPC.",
}
_TIMEOUT_SECONDS = 5.0


async def exporter_hops(config: ServiceConfig, clock: Clock) -> list[Hop]:
    """A hop for each exporter and each signal that goes there, in their order."""
    checks = [_exporter_hops(name, settings, config, clock) for name, settings in config.exporters.items()]
    return [hop for hops in await asyncio.gather(*checks) for hop in hops]


async def _exporter_hops(name: str, settings: BaseModel, config: ServiceConfig, clock: Clock) -> list[Hop]:
    where = f"exporters.{name}"
    files = [path for key in ("path", "logs_path") if (path := getattr(settings, key, None)) is not None]
    if files:
        return [await asyncio.to_thread(file_hop, where, path) for path in files]
    if isinstance(settings, KafkaConnectionConfig):
        return [await asyncio.to_thread(kafka_hop, where, settings, getattr(settings, "topic", ""))]
    component = exporter_types()[name.partition("/")[0]]
    if component.kind == "results" or not hasattr(settings, "timeout"):
        return [works(where, "leads to no other machine")]
    context = ExporterContext(clock=clock, metrics=Metrics(), console=io.StringIO())
    exporter: Any = component.create(name, settings, context)
    hops: list[Hop] = []
    try:
        await exporter.start()
        for url, signal, sending in _trials(exporter, settings, config, clock):
            told = f"{where} ({signal})"
            try:
                answer = await asyncio.wait_for(sending, _LONGEST_SECONDS)
            except (ExportError, TimeoutError) as error:
                message = str(error) or f"No answer within {_LONGEST_SECONDS:g} s."
                trouble = await asyncio.to_thread(wire_trouble, _remote(url, settings, where))
                hops.append((trouble or refusal_trouble(message, EXPORTER_ADVICE)).at(told))
                continue
            hops.append(_taken(told, url, answer))
    except StartupError as error:
        hops.append(Trouble(str(error), "files that can be read", "Correct the path or its mode.").at(where))
    finally:
        await exporter.shutdown(clock.monotonic())
    return hops


def _taken(where: str, url: str, answer: object) -> Hop:
    if rejected := getattr(answer, "rejected_spans", 0):
        message = getattr(answer, "message", "")
        return Trouble(
            f"{url} answered that it rejected {rejected} of 1: {message}",
            "that all of it is stored",
            "See the backend's own limits and log.",
        ).at(where)
    return works(where, f"{url} took it")


def _trials(
    exporter: Any, settings: BaseModel, config: ServiceConfig, clock: Clock
) -> list[tuple[str, str, Awaitable[object]]]:
    """What to send where: the address, the signal, and the sending of it."""
    if isinstance(exporter, ScoreExporter):
        return [(exporter.endpoint, "scores", exporter.check())]
    if not isinstance(settings, SpanExporterConfig):
        return []
    trials: list[tuple[str, str, Awaitable[object]]] = []
    now = clock.unix_nano()
    if receives_spans(settings, config.results) or receives_evaluation_spans(settings, config.results):
        trials.append((exporter.endpoint, "spans", exporter.export(_span_request(now), 1)))
    if receives_log_records(settings, config.results):
        trials.append((exporter.logs_endpoint, "log records", exporter.export_logs(_log_request(now), 1)))
    return trials


def _remote(url: str, settings: Any, where: str) -> Remote:
    tls = settings.tls
    kind = "grpc" if where.removeprefix("exporters.").partition("/")[0] == "otlp" else "http"
    parts = URL(url if "://" in url else f"//{url}")
    secure = settings.is_secure if kind == "grpc" else parts.scheme == "https"
    host = parts.host or ""
    return Remote(
        host,
        parts.port or (443 if secure else 80),
        "grpc" if kind == "grpc" else "http",
        secure,
        trusted=tls.ca_file,
        name=tls.server_name_override or host,
        tls_setting=f"{where}.tls",
        other_protocol=_OTHER_PROTOCOL[kind],
    )


def _span_request(unix_nano: int) -> bytes:
    span = Span(
        trace_id=secrets.token_bytes(16),
        span_id=secrets.token_bytes(8),
        name=SPAN_NAME,
        start_time_unix_nano=unix_nano,
        end_time_unix_nano=unix_nano,
    )
    resource_spans = ResourceSpans(resource=_resource(), scope_spans=[ScopeSpans(spans=[span])])
    return ExportTraceServiceRequest(resource_spans=[resource_spans]).SerializeToString()


def _log_request(unix_nano: int) -> bytes:
    record = LogRecord(time_unix_nano=unix_nano, body=AnyValue(string_value=SPAN_NAME))
    resource_logs = ResourceLogs(resource=_resource(), scope_logs=[ScopeLogs(log_records=[record])])
    return ExportLogsServiceRequest(resource_logs=[resource_logs]).SerializeToString()


def _resource() -> Resource:
    name = KeyValue(key="service.name", value=AnyValue(string_value=SELF_CHECK_AGENT))
    return Resource(attributes=[name])


def kafka_hop(where: str, config: KafkaConnectionConfig, topic: str) -> Hop:
    """The hop to or from `topic`."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return Trouble(
            "the Kafka client is not installed", "confluent-kafka", "Install tracegrade[kafka]."
        ).at(where)
    brokers = ", ".join(config.brokers)
    try:
        client = AdminClient({**config.client_settings(), "log_level": 0})
        found = client.list_topics(topic, _TIMEOUT_SECONDS).topics.get(topic)
    except KafkaException as error:
        return Trouble(
            f"no answer from {brokers}: {error.args[0].str()}",
            "a broker that answers",
            f"Correct brokers, tls and sasl of {where}, or start the broker.",
        ).at(where)
    if found is None or found.error is not None or not found.partitions:
        return Trouble(f"{brokers} has no topic {topic}", "the topic", "Create it, or correct topic.").at(
            where
        )
    return works(where, f"{topic} has {len(found.partitions)} partitions")
