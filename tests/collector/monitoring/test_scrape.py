"""Writing a scrape shares the loop: in short turns, whatever its size, and with the same text."""

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor

import pytest

from collector.clock import ManualClock
from collector.monitoring.exposition import MetricsRegistry, MetricsSnapshot
from collector.monitoring.http import TURN_SECONDS, scrape_body
from collector.telemetry import Metrics
from tests.support.metric_table import rendered

OPENMETRICS_ACCEPT = "application/openmetrics-text"
_BLOCKS_PER_TURN = 4


class BusyClock(ManualClock):
    """A clock on which every look takes as long as a quarter of a turn."""

    def monotonic(self) -> float:
        self.advance(TURN_SECONDS / _BLOCKS_PER_TURN)
        return super().monotonic()


@pytest.fixture
def snapshot() -> MetricsSnapshot:
    metrics = Metrics()
    for number in range(2000):
        metrics.score.observe(1.0, f"agent-{number}", "order")
    return MetricsRegistry(metrics).snapshot()


@pytest.mark.parametrize("accept", ["", OPENMETRICS_ACCEPT])
async def test_the_pieces_are_the_text_compressed_or_not(snapshot: MetricsSnapshot, accept: str) -> None:
    plain = await scrape_body(snapshot, accept, BusyClock())
    with ThreadPoolExecutor(1) as compressing:
        compressed = await scrape_body(snapshot, accept, BusyClock(), compressing)

    own = [line for line in b"".join(plain).splitlines() if b"tracegrade_" in line or b"gen_ai_" in line]
    assert 30_000 < len(own)
    assert set(own) <= set(gzip.decompress(b"".join(compressed)).splitlines())
    assert set(own) <= set(rendered(snapshot, accept).splitlines())
    assert 1_000_000 > max(map(len, plain))


async def test_others_get_their_turn_while_a_big_scrape_is_written(
    snapshot: MetricsSnapshot,
) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(others())
    await scrape_body(snapshot, "", BusyClock())
    beside.cancel()

    blocks = sum(1 for _ in snapshot.blocks())
    assert turns >= blocks / _BLOCKS_PER_TURN
