"""Volume as it is measured on a real Prometheus."""

import asyncio
import time
from pathlib import Path

import pytest

from collector.tools.alerting.windows import volume_on_server
from collector.tools.prometheus_api import PrometheusApi
from tests.support.backfill import PastSeries, write_blocks
from tests.support.prometheus_server import PrometheusServer


def past(agent: str, outcome: str, instance: str, hours: int, an_hour: float, end: float) -> PastSeries:
    labels = {
        "job": "tracegrade",
        "instance": instance,
        "gen_ai_agent_name": agent,
        "gen_ai_evaluation_name": "order",
        "gen_ai_evaluation_score_label": outcome,
    }
    points = [(end - 240 * index, an_hour / 15 * (15 * hours - index)) for index in range(15 * hours, -1, -1)]
    return PastSeries("gen_ai_evaluation_results_total", labels, points, kind="counter")


@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
async def test_results_with_a_verdict_are_counted_an_hour_since_they_came(tmp_path: Path) -> None:
    end = time.time() - 60
    series = [
        past("week", "pass", "a", 170, 6, end),
        past("week", "fail", "b", 170, 4, end),
        past("week", "not_evaluated", "a", 170, 100, end),
        past("new", "pass", "a", 12, 30, end),
        past("__overflow__", "pass", "a", 12, 30, end),
    ]
    blocks = await write_blocks(series, tmp_path)

    async with PrometheusServer(tmp_path, {}, blocks=[blocks]) as server:
        volume = await asyncio.to_thread(volume_on_server, PrometheusApi(server.url), end)

    assert {("week", "order"), ("new", "order")} == set(volume)
    assert pytest.approx(10, rel=0.05) == volume["week", "order"]
    assert pytest.approx(30, rel=0.15) == volume["new", "order"]
