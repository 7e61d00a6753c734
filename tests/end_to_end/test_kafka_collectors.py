"""Collectors that write to Kafka as `deploy/otelcol/kafka.collector.yaml` says, and a group that reads it."""

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from benchmarks.child_process import cpu_seconds
from collector.buffer import GroupByTraceConfig
from processors.model import JsonObject
from processors.spans import RawSpan, read_span_head
from tests.support.agent_spans import REMOTE_PARENT, envelope
from tests.support.backend_server import free_port
from tests.support.balanced_replicas import Traffic
from tests.support.check_tools import DEPLOY
from tests.support.deploy_files import placed, read_yaml, section
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker
from tests.support.kafka_group import SESSION_SECONDS, KafkaGroup
from tests.support.otel_collector import OtelCollector
from tests.support.otlp_senders import GrpcSender
from tests.support.process_resources import resident_mib

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, ONE_BROKER]

Event: TypeAlias = Callable[[KafkaGroup], Coroutine[object, object, None]]

RATE = 20
EXPORT_MILLI = 5000
"""How often the SDK's processors export."""
TOOLS = envelope("tools")
MEMBERS = ("a", "b", "c")
WAITS: JsonObject = {
    "root_grace": "1s",
    "multi_service_grace": "1s",
    "incomplete_grace": "1s",
    "idle_timeout": "5s",
}


@asynccontextmanager
async def _collectors(group: KafkaGroup, folder: Path) -> AsyncIterator[Sequence[GrpcSender]]:
    """Two Collectors with the shipped configuration, and who sends to them."""
    async with AsyncExitStack() as running:
        senders = []
        for number in range(2):
            endpoint = f"127.0.0.1:{free_port()}"
            places = {
                "0.0.0.0:4317": endpoint,
                "0.0.0.0:4318": f"127.0.0.1:{free_port()}",
                "/var/lib/otelcol": str(folder / f"queue-{number}"),
                "kafka:9092": group.broker.endpoint,
                "otlp_spans": group.topic,
            }
            config = placed(read_yaml(DEPLOY / "otelcol" / "kafka.collector.yaml"), places)
            assert isinstance(config, dict)
            section(config, "service")["telemetry"] = {"metrics": {"level": "none"}}
            name = f"collector-{number}"
            await running.enter_async_context(OtelCollector(folder, name, config, endpoint))
            senders.append(await running.enter_async_context(GrpcSender(endpoint)))
        yield senders


async def _join(group: KafkaGroup) -> None:
    await group.start("d")
    await group.until_assigned(*MEMBERS, "d")


async def _leave(group: KafkaGroup) -> None:
    await group.stop("c")
    await group.until_assigned("a", "b")


async def _crash(group: KafkaGroup) -> None:
    await group.kill("c")
    await asyncio.sleep(9)
    await group.start("c")
    await group.until_assigned(*MEMBERS)


async def _sleep(group: KafkaGroup) -> None:
    """A member is stopped for twice its session, and wakes up as one whose partitions others have."""
    group.members["c"].signal(signal.SIGSTOP)
    await asyncio.sleep(2 * SESSION_SECONDS)
    group.members["c"].signal(signal.SIGCONT)
    await group.until_assigned(*MEMBERS)


async def _roll(group: KafkaGroup) -> None:
    for name in MEMBERS:
        await group.stop(name)
        await group.start(name)
        await group.until_assigned(*MEMBERS)


async def _run(
    group: KafkaGroup, traffic: Traffic, folder: Path, event: Event | None, *, before: float, after: float
) -> float:
    """Two Collectors and three members under traffic; how long what happened took."""
    await asyncio.gather(*map(group.start, MEMBERS))
    await group.until_assigned(*MEMBERS)
    async with _collectors(group, folder) as senders, group.under_load(traffic, RATE, senders):
        await asyncio.sleep(before)
        began = time.time()
        if event is not None:
            await event(group)
        seconds = time.time() - began
        await asyncio.sleep(after - seconds)
    return seconds


async def test_collectors_write_what_a_group_grades(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=2)
    settings: JsonObject = {"processors": {"group_by_trace": WAITS}}
    async with KafkaGroup(tmp_path, broker, settings=settings, reads_topic=True) as group:
        await _run(group, traffic, tmp_path, _leave, before=2, after=4)

    group.check(traffic, undecided=0)


@pytest.mark.scale
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "event",
    [None, _join, _leave, _crash, _sleep, _roll],
    ids=["steady", "join", "leave", "crash", "sleep", "roll"],
)
async def test_six_hundred_traces_through_kafka(
    event: Event | None, broker: KafkaBroker, tmp_path: Path
) -> None:
    traffic = Traffic(seconds=7.6)
    settings: JsonObject = {"processors": {"group_by_trace": WAITS}}
    async with KafkaGroup(tmp_path, broker, partitions=12, settings=settings, reads_topic=True) as group:
        seconds = await _run(group, traffic, tmp_path, event, before=10, after=25)

    outcomes = group.check(traffic, undecided=int(RATE * (traffic.seconds + seconds)) if event else 0)
    assert 600 <= outcomes.traces


def _by_two_processes(trace: Sequence[RawSpan]) -> list[RawSpan]:
    """The same trace, but every second tool runs in another process that serves the agent's."""
    told = []
    for place, told_by_one in enumerate(trace):
        if place % 2 == 0 or place == len(trace) - 1:
            told.append(told_by_one)
            continue
        span = Span.FromString(told_by_one[1])
        span.kind, span.flags = Span.SPAN_KIND_SERVER, REMOTE_PARENT
        told.append((span.span_id, span.SerializeToString(), TOOLS))
    return told


@pytest.mark.scale
@pytest.mark.timeout(300)
async def test_an_hour_of_traffic_of_two_processes_is_read_in_a_minute(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    """Both export what has ended every 5 s, as the SDK does, one half of that after the other."""
    spans_a_second, seconds = 50, 3600
    traffic = Traffic(seconds=6)
    each = len(traffic.trace(1, 0))
    count = spans_a_second * seconds // each
    began = time.time() - seconds - 60
    defaults = GroupByTraceConfig().model_dump()
    waits: JsonObject = {name: defaults[name] for name in WAITS}
    settings: JsonObject = {"processors": {"group_by_trace": waits}}
    async with KafkaGroup(tmp_path, broker, partitions=12, settings=settings) as group:
        records: defaultdict[tuple[int, int], list[RawSpan]] = defaultdict(list)
        for number in range(1, count + 1):
            trace = _by_two_processes(traffic.trace(number, began + seconds * number / count))
            traffic.sent[number] = trace
            for span in trace:
                ended = read_span_head(span[1])[3] // 1_000_000
                offset = EXPORT_MILLI // 2 if span[2] is TOOLS else 0
                exported = ended + EXPORT_MILLI - (ended + offset) % EXPORT_MILLI
                records[exported, number].append(span)
        for (exported, _), spans in sorted(records.items(), key=lambda record: record[0]):
            group.sender.write_spans(spans, unix_milli=exported)
        group.sender.flush()
        started = time.time()
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_committed(patience=120)
        took = time.time() - started
        resident = [resident_mib(member.process.pid) for member in group.members.values()]

    spans_read = sum(map(len, traffic.sent.values()))
    print(f"{spans_read} spans in {len(records)} records in {took:.0f} s, resident {resident} MiB")
    group.check(traffic, undecided=0)
    assert took < 60
    assert max(resident) < 600


async def _micros_a_trace(broker: KafkaBroker, folder: Path, partitions: int, names: Sequence[str]) -> float:
    """The CPU that all members together take for a trace, which is one record."""
    folder.mkdir()
    traffic = Traffic(seconds=0.5)
    traces = 5000
    async with KafkaGroup(folder, broker, partitions=partitions) as group:
        members = await asyncio.gather(*map(group.start, names))
        await group.until_assigned(*names)
        await asyncio.sleep(2)
        before = sum(cpu_seconds(member.process.pid) for member in members)
        for number in range(1, traces + 1):
            traffic.sent[number] = traffic.trace(number, time.time())
            group.sender.write_spans(traffic.sent[number])
        await group.until_committed()
        took = sum(cpu_seconds(member.process.pid) for member in members) - before
    assert [] == group.passed
    return took * 1e6 / traces


@pytest.mark.scale
@pytest.mark.timeout(300)
async def test_a_trace_costs_the_same_in_one_partition_and_in_two_hundred(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    costs: dict[int, list[float]] = {1: [], 200: []}
    for attempt in range(3):
        for partitions, found in costs.items():
            folder = tmp_path / f"{attempt}-{partitions}"
            found.append(await _micros_a_trace(broker, folder, partitions, ["a"]))
    print({partitions: [round(cost) for cost in found] for partitions, found in costs.items()})
    assert min(costs[200]) < 1.25 * min(costs[1])


@pytest.mark.scale
@pytest.mark.timeout(300)
async def test_two_members_with_a_core_each_carry_nearly_twice_the_traffic_of_one(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    """Told by the CPU of a trace, so that a machine without two free cores can tell as well."""
    costs: dict[str, list[float]] = {"a": [], "ab": []}
    for attempt in range(3):
        for names, found in costs.items():
            folder = tmp_path / f"{attempt}-{names}"
            found.append(await _micros_a_trace(broker, folder, 12, list(names)))
    print({names: [round(cost) for cost in found] for names, found in costs.items()})
    assert 2 * min(costs["a"]) > 1.8 * min(costs["ab"])
