"""How long senders wait for a service that was killed under their load, on the machine that they run on."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from collector.container import usable_cores
from processors.model import JsonObject
from tests.support.backend_server import free_port
from tests.support.chaos_load import CRITERIA, Load
from tests.support.faulty_backend import FaultyBackend
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

KILLS = 5
SPANS_PER_SECOND = 2_000
READY_SECONDS = 3.0
"""With two runnable processes for each core; in proportion where other work takes more of the machine."""
LIBRARIES = "asyncio grpc jinja2 pydantic prometheus_client starlette.applications uvicorn uvloop yaml"
"""What the service loads that others wrote."""
STARTS_OF_LIBRARIES = 7.0
"""The CPU of a start with the inspection of the journal, in that of loading the libraries at the same time:
seconds alone say more of the machine than of the start."""


def _cpu_seconds(process: int) -> float:
    """What a process has taken, with its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def _cpu_of_libraries() -> float:
    """What an interpreter takes that loads them and does nothing else."""
    code = f"import {LIBRARIES.replace(' ', ', ')}, time; print(time.process_time())"
    loading = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    printed, _ = await loading.communicate()
    return float(printed)


async def test_a_service_that_was_killed_under_load_takes_spans_again_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in an installed package: bytecode is there. The first start writes it.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "bytecode"))
    target = f"127.0.0.1:{free_port()}"
    load = Load(target, SPANS_PER_SECOND)
    seconds: list[float] = []
    cpu: list[float] = []
    libraries: list[float] = []
    sending: asyncio.Task[None] | None = None
    async with FaultyBackend() as backend:
        settings: JsonObject = {
            "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": target}}}},
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
            "journal": {"directory": "journal"},
            "store": {"path": "runs.db"},
            "page": {"endpoint": "127.0.0.1:0"},
            "processors": {"group_by_trace": {"idle_timeout": "5m"}},
        }
        for kill in range(KILLS + 1):
            service = ServiceProcess(tmp_path, settings, CRITERIA)
            started = time.monotonic()
            await service.start()
            if kill:
                seconds.append(time.monotonic() - started)
                cpu.append(_cpu_seconds(service.process.pid))
            sending = sending or asyncio.create_task(load.run())
            libraries.append(await _cpu_of_libraries())
            await asyncio.sleep(4.0)
            if kill < KILLS:
                service.signal(signal.SIGKILL)
                await service.wait()
        load.is_over.set()
        assert sending is not None
        await sending
        await service.until(lambda: len(backend.sink.spans) >= len(load.sent.acknowledged))
        assert 0 == await service.stop()
    load.sent.require_delivered(backend.sink)
    print("seconds until ready:", seconds, "CPU seconds:", cpu, "of the libraries:", libraries)
    runnable = os.getloadavg()[0] / usable_cores()
    assert min(seconds) <= READY_SECONDS * max(1.0, runnable / 2), seconds
    assert min(cpu) <= STARTS_OF_LIBRARIES * min(libraries), (cpu, libraries)
