"""Replicas behind balancing Collectors: whatever happens to them, each verdict is that of the whole trace."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.balanced_replicas import IDLE_SECONDS, BalancedReplicas, Outcomes, Traffic

pytestmark = pytest.mark.end_to_end

Event: TypeAlias = Callable[[BalancedReplicas], Coroutine[object, object, None]]

ORPHANED = "tracegrade_traces_orphaned_total"
RATE = 20
GRADED_SECONDS = 3
"""After the last span and the resolver interval: the grace, and what a busy machine takes."""


@asynccontextmanager
async def _under_load(replicas: BalancedReplicas, traffic: Traffic) -> AsyncIterator[None]:
    """Two replicas that have taken each other in, under traffic until the end; then all of it is graded."""
    await asyncio.gather(replicas.start(1), replicas.start(2))
    await replicas.start_collectors()
    await asyncio.sleep(replicas.interval + 2)
    over = asyncio.Event()
    sending = asyncio.create_task(traffic.send(replicas.senders, RATE, over))
    try:
        yield
    finally:
        over.set()
        await sending
    await asyncio.sleep(replicas.interval + GRADED_SECONDS)


async def _join(replicas: BalancedReplicas) -> None:
    await replicas.start(3)


async def _leave(replicas: BalancedReplicas) -> None:
    await replicas.drain(1)


async def _crash(replicas: BalancedReplicas) -> None:
    await replicas.kill(2)
    await asyncio.sleep(1)
    await replicas.start(2)


async def _roll(replicas: BalancedReplicas) -> None:
    """Each in turn is told to stop, delivers what it holds, and comes back at its address."""
    for number in (1, 2):
        assert 0 == await replicas.replicas.pop(number).stop()
        await replicas.start(number)
        await asyncio.sleep(2)


def _undecided_bound(replicas: BalancedReplicas, traffic: Traffic, seconds: float) -> float:
    """In flight when something happened that took `seconds`, and the traffic of two intervals and 10 s."""
    return RATE * (traffic.seconds + seconds + 2 * replicas.interval + 10)


def _check(
    outcomes: Outcomes, crashed_at: float | None, traffic: Traffic, replicas: BalancedReplicas
) -> None:
    assert [] == outcomes.flips
    # What the crashed replica held is gone: nothing else is.
    held = traffic.seconds + IDLE_SECONDS + replicas.interval + GRADED_SECONDS
    lost = {
        number
        for number in outcomes.undelivered
        if crashed_at is None or not crashed_at - held <= traffic.started[number] <= crashed_at
    }
    assert set() == lost


@pytest.mark.slow
async def test_replicas_that_come_go_and_crash_flip_no_verdict(tmp_path: Path) -> None:
    traffic = Traffic(seconds=3)
    async with BalancedReplicas(tmp_path, interval=2) as replicas:
        async with _under_load(replicas, traffic):
            await asyncio.sleep(3)
            await _join(replicas)
            await asyncio.sleep(6)
            await _leave(replicas)
            await asyncio.sleep(6)
            crashed_at = time.time()
            await _crash(replicas)
            await asyncio.sleep(4)
        metrics = await replicas.metrics()
        await replicas.stop()

    outcomes = replicas.outcomes(traffic)
    _check(outcomes, crashed_at, traffic, replicas)
    assert outcomes.judged > outcomes.traces / 5
    assert 0 < metrics['tracegrade_traces_interrupted_total{reason="peers"}']
    assert 0 < metrics['tracegrade_traces_interrupted_total{reason="start"}']
    assert 2 * 2 == metrics["tracegrade_cluster_peers"]


@pytest.mark.scale
@pytest.mark.parametrize(
    "event", [None, _join, _leave, _crash, _roll], ids=["steady", "join", "leave", "crash", "roll"]
)
@pytest.mark.timeout(300)
async def test_six_hundred_traces_without_a_flip(event: Event | None, tmp_path: Path) -> None:
    traffic = Traffic(seconds=7.6)
    async with BalancedReplicas(tmp_path, interval=5) as replicas:
        async with _under_load(replicas, traffic):
            await asyncio.sleep(10)
            began = time.time()
            if event is not None:
                await event(replicas)
            seconds = time.time() - began
            await asyncio.sleep(max(15, 30 - seconds))
        metrics = await replicas.metrics()
        await replicas.stop()

    outcomes = replicas.outcomes(traffic)
    name = "steady" if event is None else event.__name__.strip("_")
    undecided = len(outcomes.undecided)
    print(f"{name}: {outcomes.traces} traces, {undecided} undecided, {metrics[ORPHANED]:g} orphaned")
    _check(outcomes, began if event is _crash else None, traffic, replicas)
    assert 600 <= outcomes.traces
    if event is None:
        assert set() == outcomes.undecided
        assert 0 == metrics[ORPHANED]
    assert undecided <= _undecided_bound(replicas, traffic, seconds)


@pytest.mark.scale
@pytest.mark.timeout(300)
async def test_a_replica_that_is_dead_for_good_holds_up_no_other(tmp_path: Path) -> None:
    """The Collectors have it in a list, so that its share of the traces waits for it; nothing else does."""
    traffic = Traffic(seconds=5)
    async with BalancedReplicas(tmp_path, interval=5, listed=(1, 2, 3)) as replicas:
        await replicas.start(3)
        async with _under_load(replicas, traffic):
            await asyncio.sleep(10)
            await replicas.kill(2)
            killed_at = time.time()
            await asyncio.sleep(25)
        replicas.replicas.pop(2)
        await replicas.stop()

    outcomes = replicas.outcomes(traffic)
    delays, deliveries = replicas.verdict_delays(), replicas.deliveries()
    later = {number for number, started in traffic.started.items() if started > killed_at}
    waiting = later & outcomes.undelivered.keys()
    p95 = delays[len(delays) * 95 // 100]
    print(f"{len(later)} traces later, {len(waiting)} wait; verdicts p95 {p95:.1f} s after the end of a run")
    assert [] == outcomes.flips
    assert len(later) / 5 < len(waiting) < len(later) / 2
    assert all(outcomes.undelivered[number] == len(traffic.sent[number]) for number in waiting)
    assert set() == (later & outcomes.undecided) - waiting
    assert p95 < 10
    assert len(set(deliveries)) == len(deliveries)
