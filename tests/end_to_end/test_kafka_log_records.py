"""Log records to a topic of a real broker and out of it, in protobuf and JSON: none is lost, none changed."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.otlp import logs_request_to_json, split_records
from processors.model import JsonObject
from tests.support.backends import ACCEPT, Answer, GrpcBackend
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker, KafkaSender
from tests.support.otlp_senders import GrpcSender, logs_request
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, ONE_BROKER]


def _payloads(*requests: bytes) -> Counter[bytes]:
    return Counter(payload for request in requests for _, payload, _ in split_records(request).records)


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


async def test_records_go_through_a_topic_and_out_of_it(broker: KafkaBroker, tmp_path: Path) -> None:
    spans, logs = broker.create_topic(3), broker.create_topic(3)
    sent = [logs_request(number, padding=number) for number in range(1, 6)]
    foreign = [logs_request(3, padding=700), logs_request(2, padding=800)]
    backend = GrpcBackend()
    await backend.start()
    writes: JsonObject = {
        "exporters": {
            "kafka": {
                **broker.client_config(),
                "topic": spans,
                "logs_topic": logs,
                "signals": ["traces", "logs"],
                "max_message_bytes": 10_000,
            }
        }
    }
    reads: JsonObject = {
        "receivers": {"kafka": {**broker.client_config(), "topic": spans, "logs_topic": logs}},
        "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
    }
    async with ServiceProcess(_folder(tmp_path, "writer"), writes) as writer:
        async with GrpcSender(writer.endpoints["grpc"]) as sender:
            for body in sent:
                assert "OK" == (await sender.send(body, signal="logs")).code
        assert 0 == await writer.stop()
    written = broker.records(logs)
    producer = KafkaSender(broker, logs)
    producer.write(logs_request_to_json(foreign[0]), b"01" * 16)
    producer.write(foreign[1], None)
    producer.write(b"no request", None)
    producer.flush()

    expected = _payloads(*sent, *foreign)
    async with ServiceProcess(_folder(tmp_path, "reader"), reads) as reader:
        await reader.until(lambda: _payloads(*backend.log_requests).total() >= expected.total())
        await asyncio.sleep(1.5)  # so that it is committed
        metrics = await reader.metrics()
        assert 0 == await reader.stop()
    async with ServiceProcess(_folder(tmp_path, "again"), reads) as again:
        await asyncio.sleep(2)
        after = await again.metrics()
    await backend.stop()

    assert _payloads(*sent) == _payloads(*(value for _, value in written))
    assert {b"01" * 16} == {key for key, _ in written}
    assert expected == _payloads(*backend.log_requests)
    assert expected.total() == metrics["tracegrade_log_records_received_total"]
    assert 0 == metrics['tracegrade_accounting_error_log_records{exporter="otlp"}']
    assert 1 == metrics['tracegrade_kafka_records_total{outcome="malformed"}']
    assert f'tracegrade_kafka_lag_records{{partition="0",topic="{logs}"}}' in metrics
    assert 0 == after["tracegrade_log_records_received_total"]


async def test_records_that_were_not_delivered_are_read_again(broker: KafkaBroker, tmp_path: Path) -> None:
    spans, logs = broker.create_topic(1), broker.create_topic(1)
    backend = GrpcBackend(lambda _: Answer("unavailable"))
    await backend.start()
    settings: JsonObject = {
        "receivers": {
            "kafka": {
                **broker.client_config(),
                "topic": spans,
                "logs_topic": logs,
                "session_timeout": "6s",
                "group_instance_id": "one",
            }
        },
        "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
    }
    producer = KafkaSender(broker, logs)
    body = logs_request(4)
    producer.write(body, None)
    producer.flush()
    async with ServiceProcess(tmp_path, settings) as service:
        while (await service.metrics())["tracegrade_log_records_received_total"] < 4:
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.5)  # longer than between two commits
        service.signal(signal.SIGKILL)
        await service.wait()
    backend.answer = lambda _: ACCEPT
    async with ServiceProcess(tmp_path, settings) as service:
        await service.until(lambda: _payloads(*backend.log_requests).total() >= 4)
        assert 0 == await service.stop()
    await backend.stop()

    assert _payloads(body) == _payloads(*backend.log_requests)
    assert all(LogRecord.FromString(payload).trace_id for payload in _payloads(*backend.log_requests))
