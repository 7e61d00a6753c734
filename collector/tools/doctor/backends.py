"""Whether each exporter delivers: one span, or one log record, sent as the service would.

The span is of no agent. It ends at the backend; the running service never sees it.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Iterator
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from pydantic import BaseModel

from collector.clock import Clock
from collector.configuration import ServiceConfig
from collector.errors import StartupError
from collector.exporters import (
    ScoreExporter,
    contents_of,
    exporter_types,
)
from collector.kafka_connection import KafkaConnectionConfig
from collector.tools.doctor.hop import Hop
from collector.tools.doctor.places import file_hop
from collector.tools.doctor.sending import open_exporter, sent
from processors.criteria import SELF_CHECK_AGENT

SPAN_NAME = "tracegrade doctor"
_KAFKA_SECONDS = 5.0


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
        return [await asyncio.to_thread(kafka_hop, where, settings)]
    kind = name.partition("/")[0]
    if exporter_types()[kind].kind == "results" or not hasattr(settings, "timeout"):
        return [Hop(where, "leads to no other machine")]
    try:
        async with open_exporter(kind, settings, clock, name) as exporter:
            return [
                await sent(f"{where} ({signal})", url, settings, sending, where)
                for url, signal, sending in _trials(exporter, settings, config, clock)
            ]
    except StartupError as error:
        return [Hop(where, str(error), "files that can be read", "Correct the path or its mode.")]


def _trials(
    exporter: Any, settings: BaseModel, config: ServiceConfig, clock: Clock
) -> Iterator[tuple[str, str, Awaitable[object]]]:
    """What to send where: the address, the signal, and the sending of it."""
    if isinstance(exporter, ScoreExporter):
        yield exporter.endpoints["logs"], "scores", exporter.check()
    contents = contents_of(settings, config.results)
    if "traces" in contents or "span" in contents:
        yield exporter.endpoints["traces"], "spans", exporter.export(_span_request(clock.unix_nano()), 1)
    if "log" in config.results.emit and "log" in contents:
        sending = exporter.export(_log_request(clock.unix_nano()), 1, "logs")
        yield exporter.endpoints["logs"], "log records", sending


_RESOURCE = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value=SELF_CHECK_AGENT))])


def _span_request(unix_nano: int) -> bytes:
    span = Span(
        trace_id=secrets.token_bytes(16),
        span_id=secrets.token_bytes(8),
        name=SPAN_NAME,
        start_time_unix_nano=unix_nano,
        end_time_unix_nano=unix_nano,
    )
    spans = ResourceSpans(resource=_RESOURCE, scope_spans=[ScopeSpans(spans=[span])])
    return ExportTraceServiceRequest(resource_spans=[spans]).SerializeToString()


def _log_request(unix_nano: int) -> bytes:
    record = LogRecord(time_unix_nano=unix_nano, body=AnyValue(string_value=SPAN_NAME))
    logs = ResourceLogs(resource=_RESOURCE, scope_logs=[ScopeLogs(log_records=[record])])
    return ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()


def kafka_hop(where: str, config: KafkaConnectionConfig) -> Hop:
    """The hop to or from the topics."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        missing = "the Kafka client is not installed"
        return Hop(where, missing, "confluent-kafka", "Install tracegrade[kafka].")
    brokers = ", ".join(config.brokers)
    counts: list[str] = []
    try:
        client = AdminClient({**config.client_settings(), "log_level": 0})
        for key, topic in config.topics.items():
            listed = client.list_topics(topic, _KAFKA_SECONDS).topics.get(topic)
            if listed is None or listed.error is not None or not listed.partitions:
                missing = f"{brokers} has no topic {topic}"
                return Hop(where, missing, "the topic", f"Create it, or correct {key}.")
            counts.append(f"{topic} has {len(listed.partitions)} partitions")
    except KafkaException as error:
        return Hop(
            where,
            f"no answer from {brokers}: {error.args[0].str()}",
            "a broker that answers",
            f"Correct brokers, tls and sasl of {where}, or start the broker.",
        )
    return Hop(where, ", ".join(counts))
