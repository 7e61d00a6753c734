"""A backend that is down, fails, hangs, resets or is slow: nothing is lost, and no verdict is another.

Short forms of some seconds; `make faults` lets each fault last for a minute (`FAULT_SECONDS`).
"""

import asyncio
import os
import time
from pathlib import Path

import pytest

from processors.model import JsonObject
from tests.support.chaos_load import CRITERIA, Load
from tests.support.faulty_backend import Fault, FaultyBackend
from tests.support.process_resources import resident_mib
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

FAULT_SECONDS = float(os.environ.get("FAULT_SECONDS", "3"))
SPANS_PER_SECOND = 1_500
LIMIT_MIB = 24
"""Reached after some ten seconds without a backend; from then on senders are rejected and retry."""
FAULTS = [fault for fault in Fault if fault is not Fault.NONE]
RECOVERY_SECONDS = 60.0
"""The longest wait between two attempts, 45 s, and the time to send what waits."""


@pytest.mark.timeout(len(FAULTS) * (FAULT_SECONDS + RECOVERY_SECONDS) + 60)
async def test_a_backend_that_fails_costs_time_and_nothing_else(tmp_path: Path) -> None:
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
            sink = backend.sink
            load = Load(service.endpoints["grpc"], SPANS_PER_SECOND, http=service.endpoints["http"])
            sending = asyncio.create_task(load.run())
            await service.until(lambda: len(sink.spans) > SPANS_PER_SECOND)
            before = resident_mib(service.process.pid)
            for fault in FAULTS:
                await _endure(fault, backend, load, service, before)
            load.is_over.set()
            await sending
            await service.until(lambda: load.sent.acknowledged.keys() <= sink.spans.keys())
            metrics = await service.metrics()
            assert 0 == await service.stop()
    load.sent.require_delivered(sink)
    # While senders are rejected and retry, traces may be finished before they were quiet for long enough.
    cut_short = metrics['tracegrade_traces_finished_total{reason="pressure"}']
    outcomes = load.sent.outcomes(sink, cut_short=cut_short)
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
    print(f"{len(sink.spans)} spans, {sink.deliveries - len(sink.spans)} repeated, outcomes {outcomes}")


async def _endure(
    fault: Fault, backend: FaultyBackend, load: Load, service: ServiceProcess, before: float
) -> None:
    """Let the backend fail for a while; then all that was acknowledged meanwhile has to come."""
    sink = backend.sink
    repeated = sink.deliveries - len(sink.spans)
    resident = [before]
    await backend.become(fault)
    fault_end = time.monotonic() + FAULT_SECONDS
    while time.monotonic() < fault_end:
        await asyncio.sleep(0.5)
        resident.append(resident_mib(service.process.pid))
    metrics = await service.metrics()
    waiting = set(load.sent.acknowledged)
    well_again = time.monotonic()
    await backend.become(Fault.NONE)
    async with asyncio.timeout(RECOVERY_SECONDS):
        while not waiting <= sink.spans.keys():
            await asyncio.sleep(0.1)
    assert max(resident) - before < 2 * LIMIT_MIB + 32
    held = metrics['tracegrade_spans_held{exporter="otlp"}']
    print(
        f"{fault.value} for {FAULT_SECONDS:g} s: {held:g} spans held at its end, all delivered "
        f"{time.monotonic() - well_again:.1f} s after it, {sink.deliveries - len(sink.spans) - repeated} "
        f"repeated, resident memory from {before:.0f} to {max(resident):.0f} MiB"
    )
