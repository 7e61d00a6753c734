"""A backend that is down, fails, hangs, resets or is slow: nothing is lost, and no verdict is another.

Short forms of some seconds; `make faults` lets each fault last for a minute (`FAULT_SECONDS`).
"""

import asyncio
import os
import time
from pathlib import Path

import pytest

from processors.model.json_values import JsonObject
from tests.support.chaos_load import CRITERIA, Load
from tests.support.faulty_backend import Fault, FaultyBackend
from tests.support.process_resources import resident_mib
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

FAULT_SECONDS = float(os.environ.get("FAULT_SECONDS", "3"))
SPANS_PER_SECOND = 1_500
LIMIT_MIB = 24
"""Reached after some ten seconds without a backend; from then on senders are told to come back."""
RECOVERY_SECONDS = 40.0
"""The longest wait between two attempts, and the time to send what waits."""


@pytest.mark.timeout(FAULT_SECONDS + 120)
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.NONE])
async def test_a_backend_that_fails_costs_time_and_nothing_else(tmp_path: Path, fault: Fault) -> None:
    async with FaultyBackend() as backend:
        settings: JsonObject = {
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}, "timeout": "2s"}},
            "journal": {"directory": "journal"},
            "processors": {
                "memory_limiter": {"limit_mib": LIMIT_MIB},
                "group_by_trace": {"idle_timeout": "5m"},
            },
        }
        async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
            sink, load = backend.sink, Load(service.endpoints["grpc"], SPANS_PER_SECOND)
            sending = asyncio.create_task(load.run())
            await service.until(lambda: len(sink.spans) > SPANS_PER_SECOND)
            resident = [resident_mib(service.process.pid)]
            await backend.become(fault)
            fault_end = time.monotonic() + FAULT_SECONDS
            while time.monotonic() < fault_end:
                await asyncio.sleep(0.5)
                resident.append(resident_mib(service.process.pid))
            metrics = await service.metrics()
            held = metrics['tracegrade_spans_held{exporter="otlp"}']
            waiting = set(load.sent.acknowledged)
            recovered = time.monotonic()
            await backend.become(Fault.NONE)
            async with asyncio.timeout(RECOVERY_SECONDS):
                while not waiting <= sink.spans.keys():
                    await asyncio.sleep(0.1)
            recovery = time.monotonic() - recovered
            load.is_over.set()
            await sending
            await service.until(lambda: load.sent.acknowledged.keys() <= sink.spans.keys())
            metrics = await service.metrics()
            assert 0 == await service.stop()
    load.sent.require_delivered(sink)
    outcomes = load.sent.outcomes(sink)
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
    assert "not_evaluated" not in outcomes
    assert max(resident) - resident[0] < 2 * LIMIT_MIB + 32
    print(
        f"{fault.value} for {FAULT_SECONDS:g} s: {len(sink.spans)} spans, {held:g} held at its end, "
        f"all delivered {recovery:.1f} s after it, {sink.deliveries - len(sink.spans)} repeated, "
        f"resident memory from {resident[0]:.0f} to {max(resident):.0f} MiB, outcomes {outcomes}"
    )
