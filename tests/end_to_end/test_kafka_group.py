"""A group that reads from a real broker: whatever becomes of its members, no verdict flips."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.balanced_replicas import Traffic
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_group import KafkaGroup

pytestmark = pytest.mark.end_to_end

RATE = 15


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@asynccontextmanager
async def _under_load(group: KafkaGroup, traffic: Traffic) -> AsyncIterator[None]:
    """Traffic until the end; then all of it is graded and committed."""
    over = asyncio.Event()
    sending = asyncio.create_task(traffic.send([group.sender, group.sender], RATE, over))
    try:
        yield
    finally:
        over.set()
        await sending
    await group.until_committed()


def _check(group: KafkaGroup, traffic: Traffic, *, undecided: int) -> None:
    outcomes = group.outcomes(traffic)
    print(
        f"{outcomes.traces} traces, {len(outcomes.undecided)} undecided, "
        f"{group.deliveries() - sum(map(len, traffic.sent.values()))} sent again"
    )
    assert [] == outcomes.flips
    assert {} == outcomes.undelivered
    assert [] == group.passed
    assert undecided >= len(outcomes.undecided)


async def test_members_that_join_and_leave_flip_no_verdict(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=2)
    async with KafkaGroup(tmp_path, broker) as group:
        await group.start("a")
        await group.until_assigned("a")
        async with _under_load(group, traffic):
            await asyncio.sleep(3)
            await group.start("b")
            await group.until_assigned("a", "b")
            await asyncio.sleep(2)
            await group.stop("a")
            await group.until_assigned("b")
            await asyncio.sleep(2)
        assert 0 == await group.metric('tracegrade_accounting_error_spans{exporter="file"}')

    _check(group, traffic, undecided=0)


async def test_a_member_that_is_killed_loses_nothing(broker: KafkaBroker, tmp_path: Path) -> None:
    traffic = Traffic(seconds=2)
    async with KafkaGroup(tmp_path, broker) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        async with _under_load(group, traffic):
            await asyncio.sleep(3)
            await group.kill("b")
            await group.until_assigned("a")
            await asyncio.sleep(2)

    _check(group, traffic, undecided=0)


async def test_a_member_that_slept_past_its_session_judges_nothing_wrong(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    traffic = Traffic(seconds=2)
    async with KafkaGroup(tmp_path, broker) as group:
        await asyncio.gather(group.start("a"), group.start("b"))
        await group.until_assigned("a", "b")
        async with _under_load(group, traffic):
            await asyncio.sleep(3)
            group.members["b"].signal(signal.SIGSTOP)
            await asyncio.sleep(12)
            group.members["b"].signal(signal.SIGCONT)
            await group.until_assigned("a", "b")
            await asyncio.sleep(2)

    _check(group, traffic, undecided=0)
