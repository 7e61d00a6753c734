"""Kafka: spans and log records out of topics, each held there until it was delivered."""

from collector.clock import Clock
from collector.receivers.consumer import RecordConsumer
from collector.receivers.kafka.config import KafkaReceiverConfig
from collector.receivers.kafka.receiver import KafkaReceiver
from collector.receivers.receiver import ReceiverType
from collector.telemetry import Metrics

__all__ = ["COMPONENT"]


def _create(
    config: KafkaReceiverConfig, consumer: RecordConsumer, metrics: Metrics, clock: Clock
) -> dict[str, KafkaReceiver]:
    return {"kafka": KafkaReceiver(config, consumer, metrics, clock)}


COMPONENT = ReceiverType(type_name="kafka", config_model=KafkaReceiverConfig, create=_create)
