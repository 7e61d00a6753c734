"""Log records to a topic of a real broker and out of it, in protobuf and JSON: none is lost, none changed."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.otlp import (
    join_spans,
    logs_json_to_request,
    logs_request_to_json,
    records_by_trace,
    split_records,
)
from processors.model import JsonObject
from tests.support import both_signals
from tests.support.backends import ACCEPT, Answer, GrpcBackend
from tests.support.both_signals import requests
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker, KafkaSender
from tests.support.otlp_senders import GrpcSender, logs_request
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, ONE_BROKER]


def _payloads(*requests: bytes) -> Counter[bytes]:
    return Counter(payload for request in requests for _, payload, _ in split_records(request).records)


IN_RECORDS_ALONE = ("adot_strands", "claude_code", "genai_langchain", "genai_openai", "semantic_kernel")
"""Whose arguments no span has."""
NAMES = [
    name
    for name in both_signals.NAMES
    # Runs of records alone, and of pieces of several traces, need another key than the trace id.
    if requests(name, "traces") and name != "gemini_cli"
]


def _outcomes(runs: Sequence[JsonObject]) -> list[str]:
    """What was decided of each run, without when and by whom."""
    lines: list[str] = []
    for run in runs:
        evaluations: Any = run["evaluations"]
        decided = sorted((each["name"], each["outcome"], each["reason"] or "") for each in evaluations)
        calls: Any = run["tool_calls"]
        lines.append(json.dumps([run["trace_id"], run["span_id"], len(calls), run["output"], decided]))
    return sorted(lines)


def _write(sender: KafkaSender, bodies: Sequence[bytes]) -> None:
    """Write log records as the Collector does with `partition_logs_by_trace_id`: a record for each trace."""
    for body in bodies:
        for trace_id, records in records_by_trace(split_records(body).records).items():
            sender.write(join_spans(records), trace_id.hex().encode() or None)
    sender.flush()


@pytest.mark.parametrize("order", ["logs first", "logs last", "side by side"])
async def test_records_are_graded_with_their_traces(order: str, broker: KafkaBroker, tmp_path: Path) -> None:
    spans, logs = broker.create_topic(3), broker.create_topic(3)
    settings: JsonObject = {
        "receivers": {"kafka": {**broker.client_config(), "topic": spans, "logs_topic": logs}},
        "processors": {
            "group_by_trace": {"root_grace": "3s", "multi_service_grace": "3s", "incomplete_grace": "3s"}
        },
    }
    directly = ServiceProcess(_folder(tmp_path, "directly"), {"processors": settings["processors"]})
    async with directly as service, GrpcSender(service.endpoints["grpc"]) as sender:
        for name in NAMES:
            for signal_name in ("logs", "traces"):
                for body in requests(name, signal_name):
                    assert "OK" == (await sender.send(body, signal=signal_name)).code
        await asyncio.sleep(4)
        assert 0 == await service.stop()
    expected = _outcomes(directly.results())

    of_spans, of_logs = KafkaSender(broker, spans), KafkaSender(broker, logs)
    steps = [("logs", name) for name in NAMES], [("traces", name) for name in NAMES]
    async with ServiceProcess(_folder(tmp_path, "reader"), settings) as reader:
        await reader.until(lambda: any("were assigned" in line for line in reader.log))
        for first, second in zip(*(reversed(steps) if order == "logs last" else steps), strict=True):
            for signal_name, name in (first, second):
                if signal_name == "logs":
                    _write(of_logs, requests(name, "logs"))
                else:
                    for body in requests(name, "traces"):
                        await of_spans.send(body)
                    of_spans.flush()
                if order != "side by side":
                    await asyncio.sleep(0.3)
        await reader.until(lambda: len(reader.results()) >= len(expected))
        await asyncio.sleep(1.5)
        metrics = await reader.metrics()
        assert 0 == await reader.stop()
    async with ServiceProcess(_folder(tmp_path, "again"), settings) as again:
        await asyncio.sleep(2)
        after = await again.metrics()

    assert expected == _outcomes(reader.results())
    assert (
        0
        == metrics["tracegrade_log_records_awaiting_verdict"]
        == metrics["tracegrade_late_log_records_total"]
    )
    sent = sum(len(split_records(body).records) for name in NAMES for body in requests(name, "logs"))
    assert sent == metrics["tracegrade_log_records_received_total"]
    assert 0 == after["tracegrade_log_records_received_total"]  # all was committed


async def test_a_member_that_is_killed_leaves_the_records_of_its_traces_to_another(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    spans, logs = broker.create_topic(4), broker.create_topic(4)
    settings: JsonObject = {
        "receivers": {
            "kafka": {**broker.client_config(), "topic": spans, "logs_topic": logs, "session_timeout": "6s"}
        },
        "exporters": {"file": {"path": "spans.jsonl", "logs_path": "logs.jsonl"}},
    }
    of_spans, of_logs = KafkaSender(broker, spans), KafkaSender(broker, logs)
    assigned = [
        f'tracegrade_kafka_partitions{{state="assigned"{topic}}}' for topic in ("", f',topic="{logs}"')
    ]
    async with (
        ServiceProcess(_folder(tmp_path, "one"), settings) as one,
        ServiceProcess(_folder(tmp_path, "other"), settings) as other,
    ):
        for service in (one, other):
            while [2, 2] != [(await service.metrics()).get(name) for name in assigned]:
                await asyncio.sleep(0.2)
        for name in IN_RECORDS_ALONE:
            _write(of_logs, requests(name, "logs"))
        sent = sum(
            len(split_records(body).records) for name in IN_RECORDS_ALONE for body in requests(name, "logs")
        )
        received = "tracegrade_log_records_received_total"
        while sum([(await service.metrics())[received] for service in (one, other)]) < sent:
            await asyncio.sleep(0.2)
        await asyncio.sleep(1.5)
        one.signal(signal.SIGKILL)
        await one.wait()
        for name in IN_RECORDS_ALONE:
            for body in requests(name, "traces"):
                await of_spans.send(body)
        of_spans.flush()
        await other.until(lambda: len(other.results()) >= len(IN_RECORDS_ALONE))
        metrics = await other.metrics()
        assert 0 == await other.stop()

    graded = {(run["trace_id"], run["span_id"]): run for run in other.results()}
    runs: Any = graded.values()
    assert all(run["tool_calls"] and run["tool_calls"][0]["arguments_state"] == "present" for run in runs)
    assert 0 == metrics["tracegrade_log_records_awaiting_verdict"]
    assert [4, 4] == [metrics[name] for name in assigned]
    written = Counter(
        payload
        for service in (one, other)
        for line in (service.folder / "logs.jsonl").read_bytes().splitlines()
        for _, payload, _ in split_records(logs_json_to_request(line)).records
    )
    assert set(written) == {
        payload
        for name in IN_RECORDS_ALONE
        for body in requests(name, "logs")
        for _, payload, _ in split_records(logs_json_to_request(logs_request_to_json(body))).records
    }


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
