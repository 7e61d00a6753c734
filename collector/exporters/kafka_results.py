"""Graded runs to a Kafka topic (`kafka_results`): the lines of a results file, one a record.

The key is the trace id in hex. After a crash a run may arrive twice, with the same trace and span id.
"""

from collections.abc import Sequence

from pydantic import Field

from collector.errors import ContentRefusedError
from collector.exporters.exporter import ExporterContext, ResultExporterType
from collector.exporters.kafka_producer import KafkaProducer, KafkaProducerConfig
from collector.exporters.run_writer import RunWriter, RunWriterConfig
from collector.kafka_connection import KafkaName
from processors.spans import RawSpan


class KafkaResultsConfig(RunWriterConfig, KafkaProducerConfig):
    """`exporters.kafka_results`: graded runs as records of a topic."""

    topic: KafkaName = Field(default="graded_runs", description="The topic for runs; it must exist.")


class KafkaResultsExporter(RunWriter):
    """Writes graded runs to a topic, in order for each trace."""

    def __init__(self, name: str, config: KafkaResultsConfig, context: ExporterContext) -> None:
        self._producer = KafkaProducer(
            name, config, context, max_unanswered_bytes=64 * 1024 * 1024 + config.max_message_bytes
        )
        super().__init__(name, self._producer.endpoint, config, context)

    async def open(self) -> None:
        """See `RunWriter`."""
        await self._producer.start()

    async def write(self, lines: Sequence[RawSpan]) -> int:
        """See `RunWriter`; a run that is too large for a record is left out."""
        largest = self._producer.max_value_bytes
        records = [(trace_id.hex().encode(), text) for trace_id, text, _ in lines if len(text) <= largest]
        refused = len(lines) - len(records)
        try:
            await self._producer.send(records)
        except ContentRefusedError:  # each alone: those that were written are not written again
            for record in records:
                try:
                    await self._producer.send([record])
                except ContentRefusedError:
                    refused += 1
        return refused

    async def close(self, deadline: float) -> None:
        """See `RunWriter`."""
        await self._producer.close(deadline)


COMPONENT = ResultExporterType(
    type_name="kafka_results", config_model=KafkaResultsConfig, create=KafkaResultsExporter
)
