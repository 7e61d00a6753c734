"""`receivers.kafka`: which topic is read, as which group, and how the brokers are reached."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from collector.config_fields import Duration, PositiveDuration
from collector.kafka_connection import KafkaConnectionConfig, KafkaName


class KafkaReceiverConfig(KafkaConnectionConfig):
    """Reads spans, and log records, from topics, as one of a group: each partition is read by one member."""

    topic: KafkaName = Field(
        default="otlp_spans",
        description="The topic: one ExportTraceServiceRequest a record, with the trace id in hex as its key.",
    )
    logs_topic: KafkaName | None = Field(
        default=None,
        description="A topic with log records: one ExportLogsServiceRequest a record, such as otlp_logs. "
        "With the trace id as their key, and as many partitions as topic has, agents' records are graded "
        "with their trace. Off unless written.",
        examples=["otlp_logs"],
    )
    group_id: KafkaName = Field(
        default="tracegrade",
        description="The consumer group, the same for all processes that share the traffic.",
    )
    group_instance_id: KafkaName | None = Field(
        default=None,
        description="A name unique to this process that is stable over restarts, such as the pod's: after a "
        "restart within session_timeout it keeps its partitions.",
    )
    partitioner: Literal["fnv1a", "murmur2", "crc32", "any"] = Field(
        default="fnv1a",
        description="How the producer determines the partition of a key: fnv1a is the OpenTelemetry "
        "Collector's, murmur2 that of Java clients, crc32 that of librdkafka. A trace in another partition "
        "is interrupted. With any, nothing is checked.",
    )
    initial_offset: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="Where the group starts reading the first time: at the earliest record, or at new "
        "ones only.",
    )
    lookback: Duration = Field(
        default=120.0,
        description="How much of what was delivered before is read again when a partition is taken over, to "
        "recognize late spans. A trace that began earlier is interrupted. Longer than most traces take "
        "until their first span ends.",
    )
    session_timeout: PositiveDuration = Field(
        default=15.0,
        ge=6.0,
        le=1800.0,
        description="How long a member may be silent before its partitions are given to others.",
    )
    max_record_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1,
        le=512 * 1024 * 1024,
        description="Larger records are skipped permanently and counted.",
    )

    @model_validator(mode="after")
    def _check_topics(self) -> Self:
        if self.logs_topic == self.topic:
            raise ValueError("logs_topic: expected another topic than that of spans")
        return self

    @property
    def topics(self) -> Mapping[str, str]:
        """See `KafkaConnectionConfig`."""
        topics = {"topic": self.topic, "logs_topic": self.logs_topic}
        return {key: topic for key, topic in topics.items() if topic is not None}
