"""Kafka: spans out of a topic, each held there until it was delivered."""

from collector.receivers.kafka.config import KafkaReceiverConfig
from collector.receivers.kafka.receiver import KafkaReceiver
from collector.receivers.receiver import ReceiverType

__all__ = ["COMPONENT"]

COMPONENT = ReceiverType(
    type_name="kafka",
    config_model=KafkaReceiverConfig,
    create=lambda config, consumer, metrics, clock: {
        "kafka": KafkaReceiver(config, consumer, metrics, clock)
    },
)
