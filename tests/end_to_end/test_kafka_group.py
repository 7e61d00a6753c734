"""A group that reads from a real broker: whatever becomes of its members, no verdict flips."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from confluent_kafka import fnv1a, murmur2

from collector.otlp import join_spans, split_request
from processors.model import JsonObject
from processors.spans import RawSpan, read_span_head
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.balanced_replicas import Traffic, trace_id_of
from tests.support.held_spans import raw_span, trace_id
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker, KafkaSender
from tests.support.kafka_group import KafkaGroup, SpanKey

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, ONE_BROKER]


@asynccontextmanager
async def _hanging_backend() -> AsyncIterator[tuple[str, asyncio.Event, set[SpanKey]]]:
    """An endpoint that answers nobody before the event is set, and the spans that it said it has."""
    answers = asyncio.Event()
    taken: set[SpanKey] = set()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        await answers.wait()
        for trace, spans in split_request(body).traces.items():
            taken.update((trace, span[0]) for span in spans)
        return web.Response(content_type="application/x-protobuf")

    application = web.Application(client_max_size=1 << 26)
    application.router.add_post("/v1/traces", take)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}", answers, taken
    finally:
        answers.set()
        await runner.cleanup()


async def test_members_that_join_and_leave_flip_no_verdict(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=2)
    async with KafkaGroup(tmp_path, broker) as group:
        await group.start("a")
        await group.until_assigned("a")
        async with group.under_load(traffic):
            await asyncio.sleep(3)
            await group.start("b")
            await group.until_assigned("a", "b")
            await asyncio.sleep(2)
            await group.stop("a")
            await group.until_assigned("b")
            await asyncio.sleep(2)
        assert 0 == await group.metric('tracegrade_accounting_error_spans{exporter="file"}')

    group.check(traffic, undecided=0)


async def test_a_member_that_is_killed_loses_nothing(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=2)
    async with KafkaGroup(tmp_path, broker) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        async with group.under_load(traffic):
            await asyncio.sleep(3)
            await group.kill("b")
            await group.until_assigned("a")
            await asyncio.sleep(2)

    group.check(traffic, undecided=0)


_DEADLY = """
import os
import signal

def die(run, config, criteria):
    os.kill(os.getppid(), signal.SIGKILL)
    return True, ""
"""


async def test_a_trace_that_kills_who_grades_it_does_not_kill_each_member_in_turn(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    (tmp_path / "deadly.py").write_text(_DEADLY)
    deadly: JsonObject = {"deadly": {"file": str(tmp_path / "deadly.py"), "function": "die"}}
    (tmp_path / "deadly.yaml").write_text("agents: {deadly: {evaluations: [{evaluator: deadly}]}}")
    evaluation: JsonObject = {
        "custom_evaluators": deadly,
        "criteria": ["criteria.yaml", str(tmp_path / "deadly.yaml")],
    }
    settings: JsonObject = {"processors": {"evaluation": evaluation}}
    traffic = Traffic(seconds=1)
    ended: list[str] = []
    over = asyncio.Event()
    async with KafkaGroup(tmp_path, broker, settings=settings) as group:

        async def start_again() -> None:
            while not over.is_set():
                for name, member in list(group.members.items()):
                    if member.process.returncode is not None:
                        ended.append(name)
                        await member.wait()
                        await group.start(name)
                await asyncio.sleep(0.1)

        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        supervisor = asyncio.create_task(start_again())
        async with group.under_load(traffic):
            await asyncio.sleep(1)
            now = int(time.time() * 1000)
            trace = [tool(2, 1, "look", at=(now, now + 1)), agent(1, None, "deadly", at=(now, now + 2))]
            ids = frozenset((TRACE_ID, span[0]) for span in trace)
            group.sender.write(join_spans(trace), TRACE_ID.hex().encode(), ids=ids)
            await asyncio.sleep(2)
        over.set()
        await supervisor
        quarantined = await group.metric("tracegrade_traces_quarantined_total")

    assert (2, 1) == (len(ended), quarantined)
    assert [("deadly", "quarantined")] == group.errors()
    group.check(traffic, undecided=0)


async def test_a_member_that_slept_past_its_session_judges_nothing_wrong(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    traffic = Traffic(seconds=2)
    async with KafkaGroup(tmp_path, broker) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        async with group.under_load(traffic):
            await asyncio.sleep(3)
            group.members["b"].signal(signal.SIGSTOP)
            await asyncio.sleep(12)
            group.members["b"].signal(signal.SIGCONT)
            await group.until_assigned("a", "b")
            await asyncio.sleep(2)

    group.check(traffic, undecided=0)


async def test_records_that_cannot_be_read_hold_nothing_up(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=1)
    limit: JsonObject = {"receivers": {"kafka": {"max_record_bytes": 100_000}}}
    async with KafkaGroup(tmp_path, broker, settings=limit) as group:
        await group.start("a")
        async with group.under_load(traffic):
            for partition in range(6):
                group.sender.write(b"no request", b"poison", partition=partition)
                group.sender.write(bytes(200_000), b"much", partition=partition)
                group.sender.write(None, None, partition=partition)
            await asyncio.sleep(2)
        malformed = await group.metric('tracegrade_kafka_records_total{outcome="malformed"}')
        oversized = await group.metric('tracegrade_kafka_records_total{outcome="oversized"}')

    group.check(traffic, undecided=0)
    assert (6, 6) == (malformed, oversized)


async def test_traces_whose_keys_cannot_be_trusted_are_not_judged(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    async with KafkaGroup(tmp_path, broker) as group:
        await group.start("a")
        traffic = Traffic(seconds=1)
        traces = {number: traffic.trace(number, time.time()) for number in range(1, 61)}
        foreign = KafkaSender(broker, group.topic, partitioner="murmur2_random")
        for number, spans in traces.items():
            key = trace_id_of(number)
            ids = frozenset((key, span[0]) for span in spans)
            if number <= 20:
                group.sender.write(join_spans(spans), None, ids=ids, partition=number % 6)
            elif number <= 40:
                group.sender.write(join_spans(spans), b"service", ids=ids)
            else:
                foreign.write(join_spans(spans), key.hex().encode(), ids=ids)
        foreign.flush()
        group.sender.written |= foreign.written
        await group.until_committed()
        missing = await group.metric('tracegrade_kafka_untrusted_keys_total{reason="missing"}')
        strange = await group.metric('tracegrade_kafka_untrusted_keys_total{reason="foreign"}')
        interrupted = await group.metric('tracegrade_traces_interrupted_total{reason="keys"}')

    astray = {
        number
        for number in range(41, 61)
        if fnv1a(trace_id_of(number).hex().encode(), 6) != murmur2(trace_id_of(number).hex().encode(), 6)
    }
    traffic.sent = traces
    outcomes = group.outcomes(traffic)
    assert [] == outcomes.flips
    assert {} == outcomes.undelivered
    assert (20, 20) == (missing, strange)
    assert 40 + len(astray) == interrupted
    beyond_doubt = {35}  # it paid twice and deleted: no further span could change that
    assert (set(range(1, 41)) | astray) - beyond_doubt == outcomes.undecided


async def test_records_that_retention_took_are_counted_and_the_rest_is_read(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    traffic = Traffic(seconds=1)
    async with KafkaGroup(tmp_path, broker, partitions=1) as group:
        await group.start("a")
        for number in range(1, 4):
            traffic.sent[number] = traffic.trace(number, time.time() - 1)
            await group.sender.send(join_spans(traffic.sent[number]))
        await group.until_committed()
        await group.stop("a")
        lost = traffic.trace(4, time.time() - 1)
        await group.sender.send(join_spans(lost))
        group.sender.flush()
        broker.delete_records(group.topic, {0: len(group.sender.written)})
        traffic.sent[5] = traffic.trace(5, time.time())
        await group.sender.send(join_spans(traffic.sent[5]))
        await group.start("b")
        await group.until_committed()
        out_of_range = await group.metric("tracegrade_kafka_offsets_out_of_range_total")

    outcomes = group.outcomes(traffic)
    assert 1 == out_of_range
    assert ([], {}) == (outcomes.flips, outcomes.undelivered)
    assert {5} >= outcomes.undecided


async def test_a_member_that_is_back_within_its_session_goes_on_with_its_partitions(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    traffic = Traffic(seconds=1)
    names: dict[str, JsonObject] = {
        name: {"receivers": {"kafka": {"group_instance_id": name, "session_timeout": "30s"}}}
        for name in ("a", "b")
    }
    async with KafkaGroup(tmp_path, broker) as group:
        await asyncio.gather(*(group.start(name, settings) for name, settings in names.items()))
        await group.until_assigned("a", "b")
        rebalances = 'tracegrade_kafka_rebalances_total{kind="assigned"}'
        before = (await group.members["a"].metrics())[rebalances]
        async with group.under_load(traffic):
            await asyncio.sleep(1)
            await group.kill("b")
            await group.start("b", names["b"])
            await group.until_assigned("a", "b")
            assigned = (await group.members["a"].metrics())[rebalances]

    assert before == assigned
    group.check(traffic, undecided=0)


async def test_ten_minutes_of_traffic_are_read_by_their_own_time(broker: KafkaBroker, tmp_path: Path) -> None:
    began = time.time() - 600
    traffic = Traffic(seconds=40)  # a tool takes seven seconds
    waits: JsonObject = {"root_grace": "8s", "incomplete_grace": "8s", "idle_timeout": "12s"}
    settings: JsonObject = {"processors": {"group_by_trace": waits}}
    async with KafkaGroup(tmp_path, broker, settings=settings) as group:
        due: list[tuple[int, int, RawSpan]] = []
        for number in range(1, 301):
            traffic.sent[number] = traffic.trace(number, began + number * 1.5)
            due += [(read_span_head(span[1])[3], number, span) for span in traffic.sent[number]]
        for end, number, span in sorted(due):
            group.sender.write(
                join_spans([span]),
                trace_id_of(number).hex().encode(),
                ids=frozenset({(trace_id_of(number), span[0])}),
                unix_milli=end // 1_000_000,
            )
        group.sender.flush()
        await group.start("a")
        await group.until_committed()
        assert 0 == await group.metric('tracegrade_accounting_error_spans{exporter="file"}')
        finished_at_once = await group.metric('tracegrade_hold_seconds_bucket{le="5.0"}')

    group.check(traffic, undecided=0)
    assert 250 < finished_at_once < 300  # but those that end at the end of a partition


async def test_a_backend_that_hangs_pauses_reading_and_loses_nothing(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    traffic = Traffic(seconds=1)
    async with _hanging_backend() as (endpoint, answers, taken):
        settings: JsonObject = {
            "processors": {"memory_limiter": {"limit_mib": 1}},
            "exporters": {"otlp_http": {"endpoint": endpoint}},
        }
        async with KafkaGroup(tmp_path, broker, settings=settings, elsewhere=lambda: taken) as group:
            await group.start("a")
            await group.until_assigned("a")
            async with group.under_load(traffic):
                for number in range(1000, 1040):
                    span = raw_span(1, trace=number, name="x" * 30_000)
                    ids = frozenset({(trace_id(number), span[0])})
                    group.sender.write(join_spans([span]), trace_id(number).hex().encode(), ids=ids)
                await asyncio.sleep(8)
                paused = await group.metric('tracegrade_kafka_partitions{state="paused"}')
                await group.start("b")
                await group.until_assigned("a", "b")
                answers.set()

    assert 6 == paused
    group.check(traffic, undecided=0)


async def test_a_broker_that_asks_for_tls_and_scram_is_read(tmp_path: Path) -> None:
    traffic = Traffic(seconds=1)
    folder = tmp_path / "broker"
    folder.mkdir()
    with KafkaBroker(folder, is_secure=True) as secure:
        async with KafkaGroup(tmp_path, secure) as group:
            await group.start("a")
            async with group.under_load(traffic):
                await asyncio.sleep(1)

    group.check(traffic, undecided=0)
