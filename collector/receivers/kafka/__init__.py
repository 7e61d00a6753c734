"""Kafka: spans out of a topic, each held there until it was delivered."""

from collections.abc import Mapping

from collector.clock import Clock
from collector.receivers.consumer import RecordConsumer
from collector.receivers.kafka.config import KafkaReceiverConfig
from collector.receivers.kafka.receiver import KafkaReceiver
from collector.receivers.receiver import ReceiverType
from collector.telemetry import Metrics

__all__ = ["COMPONENT"]


def _create(
    config: KafkaReceiverConfig, consumer: RecordConsumer, metrics: Metrics, clock: Clock
) -> Mapping[str, KafkaReceiver]:
    return {"kafka": KafkaReceiver(config, consumer, metrics, clock)}


COMPONENT = ReceiverType(type_name="kafka", config_model=KafkaReceiverConfig, create=_create)
