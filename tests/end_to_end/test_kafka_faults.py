"""A group that reads from a real broker while brokers, partitions and what a commit holds give way."""

import asyncio
import time
from pathlib import Path

import pytest
from confluent_kafka import fnv1a

from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.balanced_replicas import Traffic, trace_id_of
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker
from tests.support.kafka_group import KafkaGroup

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, ONE_BROKER]

FAILED = 'tracegrade_kafka_commits_total{outcome="failure"}'


async def test_a_broker_that_restarts_is_read_on(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=2)
    async with KafkaGroup(tmp_path, broker) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        async with group.under_load(traffic):
            await asyncio.sleep(3)
            broker.kill()
            await asyncio.sleep(3)
            await asyncio.to_thread(broker.start)
            await asyncio.sleep(3)

    group.check(traffic, undecided=0)


async def test_partitions_that_are_added_flip_no_verdict(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=1)
    async with KafkaGroup(tmp_path, broker, partitions=3) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        async with group.under_load(traffic):
            await asyncio.sleep(2)
            added_at = time.time()
            group.add_partitions(6)
            await group.until_assigned("a", "b")
            await asyncio.sleep(2)

    keys = {number: trace_id_of(number).hex().encode() for number in traffic.sent}
    astray = {number for number, key in keys.items() if fnv1a(key, 3) != fnv1a(key, 6)}
    outcomes = group.check(traffic, undecided=len(astray))
    assert outcomes.undecided <= {number for number in astray if traffic.started[number] > added_at - 5}
    after = {number for number, started in traffic.started.items() if started > added_at + 1}
    assert after - astray
    assert after & astray & outcomes.undecided


async def _until_refused(group: KafkaGroup, times: int) -> None:
    """Wait until the broker has refused so many commits; earlier ones, of less, may have been taken."""
    async with asyncio.timeout(60):
        while await group.metric(FAILED) < times:
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(("takes", "refused"), [(4096, 0), (1200, 2)])
async def test_more_is_done_than_a_commit_can_tell(takes: int, refused: int, tmp_path: Path) -> None:
    traffic = Traffic(seconds=1)
    roots: dict[int, RawSpan] = {}
    traces = takes // 2
    settings: JsonObject = {"processors": {"group_by_trace": {"idle_timeout": "120s"}}}
    folder = tmp_path / "broker"
    folder.mkdir()
    with KafkaBroker(folder, more={"offset.metadata.max.bytes": str(takes)}) as broker:
        async with KafkaGroup(tmp_path, broker, partitions=1, settings=settings) as group:
            await group.start("a")
            for number in range(traces):
                spans = traffic.sent[number] = traffic.trace(number, time.time())
                if number % 2:
                    roots[number] = spans[-1]
                    spans = spans[:-1]
                group.sender.write_spans(spans)
            group.sender.flush()
            async with asyncio.timeout(60):
                while len(group.members["a"].results()) < traces / 2:
                    await asyncio.sleep(0.2)
            await _until_refused(group, refused)
            await group.until_noted(0, takes // 4 + 1 if refused else takes - 20)
            failed = await group.metric(FAILED)
            await group.kill("a")
            await group.start("b")
            await _until_refused(group, refused)
            for root in roots.values():
                group.sender.write_spans([root])
            await group.until_committed()
            again = await group.metric(FAILED)

    assert (refused, refused) == (failed, again)
    group.check(traffic, undecided=0)
    sent_again = group.deliveries() - sum(map(len, traffic.sent.values()))
    assert 0 < sent_again < traces / 2 * 7


async def test_a_verdict_is_not_committed_before_it_is_written(broker: KafkaBroker, tmp_path: Path) -> None:
    settings: JsonObject = {
        "results": {"mode": "verdicts_only"},
        "exporters": {"file": {"logs_path": "logs.jsonl"}},
    }
    traffic = Traffic(seconds=1)
    async with KafkaGroup(tmp_path, broker, settings=settings, forwards_spans=False) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        async with group.under_load(traffic):
            await asyncio.sleep(2)
            killed = group.members["b"]
            with group.no_results("b"):
                await asyncio.sleep(3)
                graded = (await killed.metrics())['tracegrade_agent_runs_total{gen_ai_agent_name="shop"}']
                await group.kill("b")
            await asyncio.sleep(2)

    group.check(traffic, undecided=0)
    assert len(killed.results()) + 10 < graded
