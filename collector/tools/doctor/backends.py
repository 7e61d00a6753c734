"""Whether each exporter delivers: one span, or one log record, sent as the service would.

The span is of no agent. It ends at the backend; the running service never sees it.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Iterator
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
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
from collector.tools.self_check import records_request, spans_request

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
        yield (
            exporter.endpoints["traces"],
            "spans",
            exporter.export(spans_request([_span(clock.unix_nano())]), 1),
        )
    if "log" in config.results.emit and "log" in contents:
        sending = exporter.export(records_request([_record(clock.unix_nano())]), 1, "logs")
        yield exporter.endpoints["logs"], "log records", sending


def _span(unix_nano: int) -> Span:
    return Span(
        trace_id=secrets.token_bytes(16),
        span_id=secrets.token_bytes(8),
        name=SPAN_NAME,
        start_time_unix_nano=unix_nano,
        end_time_unix_nano=unix_nano,
    )


def _record(unix_nano: int) -> LogRecord:
    return LogRecord(time_unix_nano=unix_nano, body=AnyValue(string_value=SPAN_NAME))


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
