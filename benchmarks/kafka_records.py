"""What a record of Kafka costs until its spans are split, from the socket on, and what of that is what."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import process_time

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from benchmarks.micro import bodies_of
from benchmarks.page import with_range
from benchmarks.workload import SHAPES
from collector.otlp import EnvelopeRegistry, join_spans, split_request

_TOPIC = "spans"
_BYTES = 12_000_000
"""Of records in a measurement: a cluster in memory keeps 5 MB of each partition."""
_REPEATS = 5
_BATCH_RECORDS = 500
_PARTITIONS = 4
"""That many a topic has in a cluster in memory."""


def kafka_lines(brokers: str | None) -> Iterator[str]:
    """Measure reading at `brokers`, or from a cluster in another process: rows of a table, medians [range].

    CPU time is that of the whole process, the client's threads included. At `brokers` there must be a topic
    `spans` with 4 partitions, which is written to.
    """
    yield "| step | records hold | CPU µs | for a |"
    yield "| --- | --- | --- | --- |"
    with _cluster() if brokers is None else _given(brokers) as address:
        for name, spans_each in (("1 span", 1), ("8 spans", 8)):
            records = _records(spans_each)
            size = sum(map(len, records)) / len(records)
            count = int(_BYTES / size)
            start = _write(address, records, count)
            received: list[float] = []
            split: list[float] = []
            for _ in range(_REPEATS):
                receiving, splitting = _measure(address, start, count)
                received.append(receiving)
                split.append(splitting)
            both = [one + other for one, other in zip(received, split, strict=True)]
            holds = f"{name}, {size / 1000:.1f} KB"
            for step, figures in (("receive", received), ("split", split), ("receive and split", both)):
                yield f"| {step} | {holds} | {with_range(figures, '.1f')} | record |"


@contextmanager
def _cluster() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.mock_brokers"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        yield cluster.stdout.readline().strip()
        cluster.stdin.close()


@contextmanager
def _given(brokers: str) -> Iterator[str]:
    yield brokers


def _records(spans_each: int) -> list[bytes]:
    """Requests with spans of one trace each, as the Collector's exporter writes them."""
    records: list[bytes] = []
    for body in bodies_of(SHAPES[0]):
        for spans in split_request(body).traces.values():
            records += [
                join_spans(spans[first : first + spans_each])
                for first in range(0, len(spans) - spans_each + 1, spans_each)
            ]
    return records


def _write(address: str, records: Sequence[bytes], count: int) -> dict[int, int]:
    """Write records, the same over and over, to all partitions; where they begin."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 0})
    reader = Consumer({"bootstrap.servers": address, "group.id": "bench", "log_level": 0})
    producer.list_topics(_TOPIC, 10)
    ends = [reader.get_watermark_offsets(TopicPartition(_TOPIC, number), 10) for number in range(_PARTITIONS)]
    reader.close()
    for number in range(count):
        value = records[number % len(records)]
        while True:
            try:
                producer.produce(_TOPIC, value, f"{number:032x}".encode(), partition=number % _PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush(60)
    return {number: high for number, (_, high) in enumerate(ends)}


def _measure(address: str, start: dict[int, int], count: int) -> tuple[float, float]:
    """CPU µs a record of getting all of them here, and of splitting them."""
    settings = {
        "bootstrap.servers": address,
        "group.id": "bench",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    reader = Consumer({**settings, "queued.max.messages.kbytes": 32 * 1024})
    reader.assign([TopicPartition(_TOPIC, number, offset) for number, offset in start.items()])
    batches: list[list[Message]] = []
    left = count
    began = process_time()
    while left > 0:
        batch = reader.consume(_BATCH_RECORDS, 0.1)
        for message in batch:
            message.offset(), message.timestamp(), message.key(), message.value(), message.error()
        left -= len(batch)
        batches.append(batch)
    received = process_time()
    split = partial(split_request, envelopes=EnvelopeRegistry())
    held = [split(message.value() or b"") for batch in batches for message in batch]  # as in the trace buffer
    ended = process_time()
    assert len(held) == count
    reader.close()
    return (received - began) * 1e6 / count, (ended - received) * 1e6 / count
