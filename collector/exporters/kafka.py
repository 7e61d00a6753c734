"""Graded spans to a Kafka topic (`kafka`), as the OpenTelemetry Collector's exporter writes them.

A record is an ExportTraceServiceRequest with spans of one trace; its key is the trace id in hex, so that a
trace stays in one partition.
"""

from collections.abc import Iterator, Sequence

from pydantic import Field

from collector.errors import ContentRefusedError
from collector.exporters.exporter import ACCEPTED, ExporterContext, ExportResponse, SpanExporterType
from collector.exporters.kafka_producer import KafkaProducer, KafkaProducerConfig
from collector.exporters.span_exporter_config import Signal, SpanExporterConfig
from collector.kafka_connection import KafkaName
from collector.otlp import join_spans, split_request
from processors.spans import RawSpan


class KafkaConfig(SpanExporterConfig, KafkaProducerConfig):
    """`exporters.kafka`: graded spans as records of a topic."""

    topic: KafkaName = Field(default="graded_spans", description="The topic for spans; it must exist.")


class KafkaExporter:
    """Writes a record for each trace of a request; several for a trace that is too large for one."""

    def __init__(self, name: str, config: KafkaConfig, context: ExporterContext) -> None:
        self.name = name
        queue = config.sending_queue
        largest = max(queue.batch.max_bytes, config.max_message_bytes)
        self._producer = KafkaProducer(
            name, config, context, max_unanswered_bytes=2 * queue.num_consumers * largest
        )
        self.endpoints: dict[Signal, str] = {"traces": self._producer.endpoint}

    async def start(self) -> None:
        """Create the client."""
        await self._producer.start()

    async def export(self, request: bytes, count: int, signal: Signal = "traces") -> ExportResponse:
        """Write the spans of one request; see `SpanExporter.export`."""
        most = self._producer.max_value_bytes
        await self._producer.send(
            [
                (trace_id.hex().encode(), value)
                for trace_id, spans in split_request(request).traces.items()
                for value in _values(spans, most)
            ]
        )
        return ACCEPTED

    async def shutdown(self, deadline: float) -> None:
        """Close the client."""
        await self._producer.close(deadline)


def _values(spans: Sequence[RawSpan], most: int) -> Iterator[bytes]:
    """Requests with these spans, in order, none of them longer than `most`.

    Raises:
        ContentRefusedError: a single span is longer.
    """
    value = join_spans(spans)
    if len(value) <= most:
        yield value
        return
    if len(spans) == 1:
        raise ContentRefusedError(f"A span has {len(value)} bytes; max_message_bytes leaves {most}.")
    half = len(spans) // 2
    yield from _values(spans[:half], most)
    yield from _values(spans[half:], most)


COMPONENT = SpanExporterType(type_name="kafka", config_model=KafkaConfig, create=KafkaExporter)
