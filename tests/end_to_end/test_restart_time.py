"""How long senders wait for a service that was killed under their load, on the machine that they run on."""

import asyncio
import os
import signal
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
CPU_SECONDS = 1.8
"""Of a start with the inspection of the journal: what else runs makes it longer, but hardly more."""


def _cpu_seconds(process: int) -> float:
    """What a process has taken, with its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


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
    print("seconds until ready:", seconds, "CPU seconds:", cpu)
    runnable = os.getloadavg()[0] / usable_cores()
    assert min(seconds) <= READY_SECONDS * max(1.0, runnable / 2), seconds
    assert min(cpu) <= CPU_SECONDS, cpu
