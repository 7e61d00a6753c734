"""Graded spans, and log records, to Kafka topics (`kafka`), as the OpenTelemetry Collector's exporter writes.

A record of Kafka is an export request with spans, or log records, of one trace; its key is the trace id in
hex, so that a trace stays in one partition. Log records without a trace id have no key.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from pydantic import Field, model_validator

from collector.errors import ContentRefusedError, PermanentExportError
from collector.exporters.exporter import ACCEPTED, ExporterContext, ExportResponse, SpanExporterType
from collector.exporters.kafka_producer import KafkaProducer, KafkaProducerConfig
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.kafka_connection import KafkaName
from collector.otlp import join_spans, records_by_trace, split_records, split_request
from collector.trace import Signal
from processors.spans import RawSpan

_TOPIC_KEYS: Mapping[Signal, str] = {"traces": "topic", "logs": "logs_topic"}


class KafkaConfig(SpanExporterConfig, KafkaProducerConfig):
    """`exporters.kafka`: graded spans, and log records, as records of topics."""

    topic: KafkaName = Field(default="graded_spans", description="The topic for spans; it must exist.")
    logs_topic: KafkaName = Field(
        default="otlp_logs", description="The topic for log records, if `signals` has logs; it must exist."
    )
    signals: tuple[Signal, ...] = Field(
        default=("traces",),
        min_length=1,
        description="What goes there: spans, and received log records and those of `results.emit`.",
    )

    @model_validator(mode="after")
    def _check_topics(self) -> Self:
        if "logs_topic" in self.model_fields_set and "logs" not in self.signals:
            raise ValueError('logs_topic: expected "logs" in signals')
        if self.logs_topic == self.topic and len(set(self.signals)) > 1:
            raise ValueError("logs_topic: expected another topic than that of spans")
        return self

    @property
    def topics(self) -> Mapping[str, str]:
        """See `KafkaConnectionConfig`."""
        topics = {"topic": self.topic, "logs_topic": self.logs_topic}
        return {key: topics[key] for signal, key in _TOPIC_KEYS.items() if signal in self.signals}

    @property
    def accepts(self) -> tuple[Signal, ...]:
        """What goes to the exporter."""
        return self.signals


class KafkaExporter:
    """Writes a record for each trace of a request; several for what is too large for one."""

    def __init__(self, name: str, config: KafkaConfig, context: ExporterContext) -> None:
        self.name = name
        queue = config.sending_queue
        largest = max(queue.batch.max_bytes, config.max_message_bytes)
        self._producer = KafkaProducer(
            name, config, context, max_unanswered_bytes=2 * queue.num_consumers * largest
        )
        topics: dict[Signal, str] = {"traces": config.topic, "logs": config.logs_topic}
        self._topics = {signal: topics[signal] for signal in config.accepts}
        brokers = ",".join(config.brokers)
        self.endpoints = {signal: f"{brokers}/{topic}" for signal, topic in self._topics.items()}

    async def start(self) -> None:
        """Create the client."""
        await self._producer.start()

    async def export(self, request: bytes, count: int, signal: Signal = "traces") -> ExportResponse:
        """Write the spans, or log records, of one request; see `SpanExporter.export`."""
        if signal not in self._topics:
            raise PermanentExportError(f"There is no topic for {signal}.")
        most = self._producer.max_value_bytes
        traces = (
            split_request(request).traces
            if signal == "traces"
            else records_by_trace(split_records(request).records)
        )
        await self._producer.send(
            [
                (trace_id.hex().encode() or None, value)
                for trace_id, items in traces.items()
                for value in _values(items, most)
            ],
            self._topics[signal],
        )
        return ACCEPTED

    async def shutdown(self, deadline: float) -> None:
        """Close the client."""
        await self._producer.close(deadline)


def _values(spans: Sequence[RawSpan], most: int) -> Iterator[bytes]:
    """Requests with these spans (or log records), in order, none of them longer than `most`.

    Raises:
        ContentRefusedError: a single one is longer.
    """
    value = join_spans(spans)
    if len(value) <= most:
        yield value
        return
    if len(spans) == 1:
        raise ContentRefusedError(f"A single item has {len(value)} bytes; max_message_bytes leaves {most}.")
    half = len(spans) // 2
    yield from _values(spans[:half], most)
    yield from _values(spans[half:], most)


COMPONENT = SpanExporterType(type_name="kafka", config_model=KafkaConfig, create=KafkaExporter)
