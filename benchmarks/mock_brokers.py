"""A Kafka cluster in memory, librdkafka's own: prints its address, and lives until its input ends."""

import sys

from confluent_kafka import Producer

if __name__ == "__main__":
    cluster = Producer({"bootstrap.servers": "localhost:1", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = cluster.list_topics(timeout=10).brokers.values()
    print(f"{broker.host}:{broker.port}", flush=True)
    sys.stdin.read()
