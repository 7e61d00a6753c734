"""Graded spans and graded runs leave to topics of a real broker."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from collector.exporters.dead_letters import read_header
from collector.otlp import join_spans, split_request
from processors.model import JsonObject
from tests.support.balanced_replicas import CRITERIA, Traffic, trace_id_of
from tests.support.held_spans import raw_span, trace_id
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker
from tests.support.kafka_group import KafkaGroup
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, ONE_BROKER]

RATE = 15


def _exporters(broker: KafkaBroker, spans: str, runs: str) -> JsonObject:
    return {
        "exporters": {
            "kafka": {**broker.client_config(), "topic": spans, "max_message_bytes": 20_000},
            "kafka_results": {**broker.client_config(), "topic": runs},
        }
    }


def _sent(traffic: Traffic) -> set[tuple[bytes, bytes]]:
    return {(trace_id_of(number), span[0]) for number, spans in traffic.sent.items() for span in spans}


def _written(broker: KafkaBroker, topic: str) -> Counter[tuple[bytes, bytes]]:
    """Trace and span ids of all spans in the topic; each record has one trace, and its id for a key."""
    found: Counter[tuple[bytes, bytes]] = Counter()
    for key, value in broker.records(topic):
        ((trace, spans),) = split_request(value).traces.items()
        assert trace.hex().encode() == key
        found.update((trace, span[0]) for span in spans)
    return found


async def _send(traffic: Traffic, endpoint: str, seconds: float) -> None:
    over = asyncio.Event()
    async with GrpcSender(endpoint) as sender:
        sending = asyncio.create_task(traffic.send([sender, sender], RATE, over))
        await asyncio.sleep(seconds)
        over.set()
        await sending


async def test_spans_with_verdicts_and_runs_are_written_once(broker: KafkaBroker, tmp_path: Path) -> None:
    spans, runs = broker.create_topic(3), broker.create_topic(2)
    settings = _exporters(broker, spans, runs)
    dead = tmp_path / "dead.jsonl"
    settings["service"] = {"dead_letters": {"path": str(dead)}}
    traffic = Traffic(seconds=0.5)
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await _send(traffic, service.endpoints["grpc"], 1)
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            large = raw_span(1, trace=9000, name="x" * 30_000)
            small = [raw_span(number, 1, trace=9000, name="y" * 3000) for number in range(2, 20)]
            await sender.send(join_spans([large, *small]))
        await service.until(lambda: any("stored as dead letters" in line for line in service.log))
        metrics = await service.metrics()
        assert 0 == await service.stop()

    expected = _sent(traffic)
    expected |= {(trace_id(9000), span[0]) for span in small}
    assert Counter(expected) == _written(broker, spans)
    written = broker.records(runs)
    assert len(traffic.sent) == len(written)
    assert sorted(service.results_path.read_bytes().splitlines()) == sorted(value for _, value in written)
    assert all(json.loads(value)["trace_id"].encode() == key for key, value in written)
    told = read_header(dead.read_bytes().splitlines()[0])
    assert ("kafka", 1) == (told["exporter"], told["count"])
    assert 1 == metrics['tracegrade_dead_letters_total{exporter="kafka",outcome="kept"}']
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="kafka"}']
    verdicts = sum(value.count(b"gen_ai.evaluation.result") for _, value in broker.records(spans))
    assert 3 * len(traffic.sent) == verdicts


async def test_a_group_that_writes_to_kafka_loses_nothing_to_kill_9(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    spans, runs = broker.create_topic(3), broker.create_topic(2)
    traffic = Traffic(seconds=1)
    async with KafkaGroup(tmp_path, broker, settings=_exporters(broker, spans, runs)) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        over = asyncio.Event()
        sending = asyncio.create_task(traffic.send([group.sender, group.sender], RATE, over))
        await asyncio.sleep(3)
        await group.kill("b")
        over.set()
        await sending
        await group.until_committed()

    expected = _sent(traffic)
    assert expected == set(_written(broker, spans))
    graded = {json.loads(value)["trace_id"] for _, value in broker.records(runs)}
    assert {trace.hex() for trace, _ in expected} == graded
    assert [] == group.passed
    assert [] == group.outcomes(traffic).flips


async def test_a_broker_that_restarts_gets_everything_once(broker: KafkaBroker, tmp_path: Path) -> None:
    spans, runs = broker.create_topic(3), broker.create_topic(2)
    traffic = Traffic(seconds=1)
    async with ServiceProcess(tmp_path, _exporters(broker, spans, runs), CRITERIA) as service:
        sending = asyncio.create_task(_send(traffic, service.endpoints["grpc"], 3))
        await asyncio.sleep(1.5)
        broker.kill()
        await sending
        await asyncio.to_thread(broker.start)
        async with asyncio.timeout(60):
            while (await service.metrics())['tracegrade_spans_held{exporter="kafka"}']:
                await asyncio.sleep(0.1)
        assert 0 == await service.stop()

    assert Counter(_sent(traffic)) == _written(broker, spans)
    graded = [json.loads(value)["trace_id"] for _, value in broker.records(runs)]
    assert {trace.hex(): 1 for trace, _ in _sent(traffic)} == Counter(graded)
