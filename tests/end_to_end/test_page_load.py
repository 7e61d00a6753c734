"""Readers of the page that do harm cost senders nothing, and hide neither metrics nor probes."""

import asyncio
import json
import shutil
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from processors.model import JsonObject
from tests.support.chaos_load import CRITERIA, Load
from tests.support.process_resources import peak_mib
from tests.support.service_process import ServiceProcess
from tests.support.stored_runs import filled, graded_run

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

SECONDS = 5.0
SPANS_PER_SECOND = 300
RUN_BYTES = 1_500_000
MIB = 300
"""What the readers may add to the process at most, the answers that wait for them included."""


async def test_two_hundred_readers_that_do_harm_cost_senders_nothing(tmp_path: Path) -> None:
    run = graded_run(1, text="".join(f"{number:08x} " for number in range(RUN_BYTES // 9)))
    filled([run], tmp_path / "runs.db")
    settings: JsonObject = {"page": {"endpoint": "127.0.0.1:0"}, "store": {"path": "runs.db"}}
    (tmp_path / "other").mkdir()
    shutil.copy(tmp_path / "runs.db", tmp_path / "other")
    path = f"/run/{run.run.trace_id.hex()}"
    async with (
        ServiceProcess(tmp_path, settings, CRITERIA) as service,
        ServiceProcess(tmp_path / "other", settings, CRITERIA) as other,
    ):
        load = Load(service.endpoints["grpc"], SPANS_PER_SECOND, senders=4, traces_per_request=8)
        sending = asyncio.create_task(load.run())
        before = peak_mib(service.process.pid)
        calm: list[float] = []
        disturbed: list[float] = []
        probes: list[float] = []
        # Those of another service take as much of the machine; in turns, as what else runs comes and goes.
        for attacked, seconds in 2 * ((other, calm), (service, disturbed)):
            readers = await asyncio.create_subprocess_exec(
                *("nice", sys.executable, "-m", "tests.support.hostile_readers"),
                *(attacked.endpoints["page"], path, str(SECONDS + 5)),
                stdout=asyncio.subprocess.PIPE,
            )
            await asyncio.sleep(4)
            load.sent.seconds.clear()
            probes += await _probed(service, SECONDS)
            seconds += load.sent.seconds
            opened, _ = await readers.communicate()
        added = peak_mib(service.process.pid) - before
        load.is_over.set()
        await sending
        metrics = await service.metrics()
    calm.sort()
    disturbed.sort()
    print(
        f"p99 {1000 * _p99(calm):.0f} and {1000 * _p99(disturbed):.0f} ms, median "
        f"{1000 * _median(calm):.1f} and {1000 * _median(disturbed):.1f} ms, "
        f"{added:.0f} MiB, probes {max(probes):.2f} s, {len(probes)} of them, {json.loads(opened)}"
    )
    assert _median(disturbed) <= 2 * _median(calm) + 0.005
    assert _p99(disturbed) <= 2 * _p99(calm) + 0.15  # another process may run while the page is at a step
    assert max(probes) < 1.0
    assert added <= MIB
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="file"}']


async def _probed(service: ServiceProcess, seconds: float) -> list[float]:
    """How long `/metrics` and both probes took, each several times a second."""
    taken = []
    end = time.monotonic() + seconds
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < end:
            for path in ("/metrics", "/readyz", "/healthz"):
                started = time.monotonic()
                async with session.get(f"http://{service.endpoints['telemetry']}{path}") as response:
                    await response.read()
                    assert 200 == response.status, path
                taken.append(time.monotonic() - started)
            await asyncio.sleep(0.2)
    return taken


def _median(seconds: list[float]) -> float:
    return seconds[len(seconds) // 2]


def _p99(seconds: list[float]) -> float:
    return seconds[int(len(seconds) * 0.99)]
