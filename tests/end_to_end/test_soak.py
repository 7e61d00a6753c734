"""A mix of frameworks for long, with failures and reloads: memory and files stay flat, books balance.

A short form of half a minute; `make soak` takes an hour (`SOAK_SECONDS`).
"""

import asyncio
import hashlib
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from collector.otlp import split_request
from processors.model import JsonObject
from tests.support.corpus import recorded_requests
from tests.support.faulty_backend import Fault, FaultyBackend
from tests.support.otlp_senders import GrpcSender, HttpSender, Sender
from tests.support.process_resources import open_files, resident_mib
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

SOAK_SECONDS = float(os.environ.get("SOAK_SECONDS", "30"))
REQUESTS_PER_SECOND = 40
WARM_UP = 0.5
"""Of the time; then caches are full, as far as this traffic fills them."""
MAX_GROWTH_MIB, MAX_MORE_FILES = 16, 16
"""Between what is usual in the third and in the last quarter of the time."""
MIX = """
agents:
  "*":
    evaluations:
      - {evaluator: tool-repetition}
      - {evaluator: tool-response-handling}
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {get_temperature: ["=", 1]}}}
"""


@pytest.mark.timeout(SOAK_SECONDS + 150)
async def test_resources_stay_flat_and_books_balanced(tmp_path: Path) -> None:
    async with FaultyBackend() as backend:
        settings: JsonObject = {
            "processors": {"group_by_trace": {"max_lateness": "1000000h"}},
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}, "timeout": "2s"}},
            "journal": {"directory": "journal"},
        }
        async with ServiceProcess(tmp_path, settings, MIX) as service:
            resources: list[tuple[float, int]] = []
            errors: set[float] = set()
            grpc, http = GrpcSender(service.endpoints["grpc"]), HttpSender(service.endpoints["http"])
            started = time.monotonic()
            async with grpc, http:
                disturbing = asyncio.create_task(_disturb(service, backend))
                sending = asyncio.create_task(_send([grpc, http], started + SOAK_SECONDS))
                while not sending.done():
                    resources.append((resident_mib(service.process.pid), open_files(service.process.pid)))
                    errors |= _accounting_errors(await service.metrics())
                    await asyncio.sleep(min(0.5, SOAK_SECONDS / 100))
                sent = await sending
                disturbing.cancel()
            await backend.become(Fault.NONE)
            await _until_nothing_is_held(service)
            metrics = await service.metrics()
            errors |= _accounting_errors(metrics)
            assert 0 == await service.stop()
    settled = resources[int(len(resources) * WARM_UP) :]
    before, after = settled[: len(settled) // 2], settled[len(settled) // 2 :]
    memory = [median(taken for taken, _ in part) for part in (before, after)]
    files = [median(count for _, count in part) for part in (before, after)]
    reloads = metrics['tracegrade_criteria_reloads_total{outcome="success"}']
    print(
        f"{SOAK_SECONDS:g} s, {sent} requests, {metrics['tracegrade_spans_received_total']:g} spans, "
        f"{reloads:g} reloads, "
        f"{len(resources)} scrapes: resident memory {memory[0]:.1f}, then {memory[1]:.1f} MiB, "
        f"files {files[0]:g}, then {files[1]:g}"
    )
    assert {0.0} == errors
    assert any(
        value
        for name, value in metrics.items()
        if name.startswith("gen_ai_evaluation_results_total") and 'label="pass"' in name
    )
    assert memory[1] - memory[0] < MAX_GROWTH_MIB
    assert files[1] - files[0] < MAX_MORE_FILES
    assert reloads
    assert metrics['tracegrade_criteria_reloads_total{outcome="failure"}']


async def _send(senders: list[Sender], end: float) -> int:
    """Recordings of all frameworks in turn, over both protocols, each time as other traces; how many."""
    interval, due = 1 / REQUESTS_PER_SECOND, time.monotonic()
    count = 0
    for body, sender in zip(_requests(), itertools.cycle(senders), strict=False):
        while (await sender.send(body)).code != "OK":
            await asyncio.sleep(0.1)
        count += 1
        if count % 50 == 0:
            assert "OK" != (await sender.send_raw(b"\x0a\xff no request")).code
        if time.monotonic() >= end:
            break
        due += interval
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    return count


def _requests() -> Iterator[bytes]:
    recorded = [(body, list(split_request(body).traces)) for body in recorded_requests()]
    for number in itertools.count():
        for body, trace_ids in recorded:
            fresh = body
            for trace_id in trace_ids:
                another = hashlib.blake2b(trace_id, digest_size=16, salt=number.to_bytes(8)).digest()
                fresh = fresh.replace(trace_id, another)
            yield fresh


async def _disturb(service: ServiceProcess, backend: FaultyBackend) -> None:
    """One fault of the backend after the other, criteria that change, and now and then cannot be read.

    Spans and verdicts of the file exporters are thrown away as log rotation does.
    """
    for number, fault in enumerate(itertools.cycle(Fault)):
        await backend.become(fault)
        service.criteria_path.write_text(f"{MIX}# {number}\n" if number % 3 else "agents: no\n")
        await asyncio.sleep(2.5)
        await backend.become(Fault.NONE)
        backend.sink.spans.clear()
        backend.sink.verdicts.clear()
        for path in (service.spans_path, service.results_path):
            path.unlink(missing_ok=True)
        await asyncio.sleep(1.5)


def _accounting_errors(metrics: dict[str, float]) -> set[float]:
    return {value for name, value in metrics.items() if name.startswith("tracegrade_accounting_error_spans")}


async def _until_nothing_is_held(service: ServiceProcess) -> None:
    async with asyncio.timeout(60):
        while any(
            value
            for name, value in (await service.metrics()).items()
            if name.startswith("tracegrade_spans_held")
        ):
            await asyncio.sleep(0.2)
