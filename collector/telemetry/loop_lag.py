"""How long the event loop keeps its timers waiting: what every request, answer and verdict waits as well."""

from typing import NoReturn

from collector.clock import Clock
from collector.telemetry.metrics import Metrics

SAMPLE_INTERVAL_SECONDS = 0.25


async def measure_loop_lag(metrics: Metrics, clock: Clock) -> NoReturn:
    """Observe every 250 ms how late a timer fired, until cancelled."""
    while True:
        due = clock.monotonic() + SAMPLE_INTERVAL_SECONDS
        await clock.sleep(SAMPLE_INTERVAL_SECONDS)
        metrics.event_loop_lag_seconds.observe(max(0.0, clock.monotonic() - due))
