"""What the loop keeps its timers waiting is observed every 250 ms."""

import asyncio

from collector.clock import ManualClock
from collector.telemetry import Metrics, measure_loop_lag


async def rounds() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_timer_that_fires_late_is_observed_by_how_late_it_was() -> None:
    metrics, clock = Metrics(), ManualClock()
    measuring = asyncio.create_task(measure_loop_lag(metrics, clock))
    await rounds()

    for seconds in (0.25, 1.25, 0.2):
        clock.advance(seconds)
        await rounds()
    measuring.cancel()

    row = metrics.event_loop_lag_seconds.row()
    assert 1.0 == row[-1]
    assert 2 == sum(row[:-1])
    assert 1 == row[metrics.event_loop_lag_seconds.buckets.index(1)]
