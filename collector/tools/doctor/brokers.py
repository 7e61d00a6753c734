"""Whether brokers of Kafka answer and have the topic. Nothing is written to it. Blocking."""

from collector.kafka_connection import KafkaConnectionConfig
from collector.tools.doctor.hop import Hop, Trouble, works

_TIMEOUT_SECONDS = 5.0


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
