"""Work that is large in one piece goes on while requests are answered: the loop is never late for long.

How late it was is told by the clock, or by the CPU time of this process where that is less: a machine that
is busy with others makes every process late, and none of that is the service's doing.
"""

import asyncio
import gc
import io
import json
import time
import urllib.request
from pathlib import Path

import pytest

from collector.clock import SystemClock
from collector.configuration import parse_configuration
from collector.otlp import join_spans, request_to_json
from collector.service import Service
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool

SPANS = 100_000
CALLS_OF_A_RUN = 24
LONGEST_LAG_SECONDS = 0.25
PATIENCE_SECONDS = 240.0
_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: 127.0.0.1:0}}}}}}}}
processors:
  group_by_trace: {{max_spans_per_trace: {spans}, root_grace: 0.2s, incomplete_grace: 0.2s}}
exporters: {{file: {{path: {folder}/spans.jsonl}}}}
service: {{telemetry: {{endpoint: 127.0.0.1:0, self_check: {{enabled: false}}}}}}
"""


def large_trace(start: int) -> list[RawSpan]:
    """A planner whose workers make their calls one after the other; it begins at `start` milliseconds."""
    spans = [agent(1, None, "planner", (start, start + 900))]
    number = 2
    while number <= SPANS:
        run = number
        spans.append(agent(run, 1, "worker", (start, start + 800)))
        for number in range(run + 1, min(run + CALLS_OF_A_RUN, SPANS) + 1):
            at = start + 10 * (number - run)
            spans.append(tool(number, run, f"tool_{number % 7}", (at, at + 9), call_id=f"call_{number}"))
        number += 1
    return spans


@pytest.mark.slow
async def test_the_loop_turns_while_a_large_trace_is_graded(tmp_path: Path) -> None:
    body = join_spans(large_trace(time.time_ns() // 1_000_000 - 1000))

    service, lags = await _served(tmp_path, body, "application/x-protobuf", SPANS)

    assert max(lags) < LONGEST_LAG_SECONDS, sorted(lags)[-5:]
    runs = -(-(SPANS - 1) // (CALLS_OF_A_RUN + 1)) + 1
    assert runs == sum(service.parts.metrics.agent_runs.values.values())
    assert 1 == service.parts.metrics.evaluation_seconds.row()[-2]


@pytest.mark.slow
async def test_the_loop_turns_while_a_request_of_sixty_mib_of_json_is_read(tmp_path: Path) -> None:
    start = time.time_ns() // 1_000_000
    result = json.dumps([{"city": "Oslo", "hour": hour, "degrees": hour / 2} for hour in range(24)])
    trace = [agent(1, None, "clerk", (start, start + 9))]
    trace += [tool(number, 1, "look", (start, start + 9), result=result) for number in range(2, 14)]
    one, traces = join_spans(trace), 2800
    body = b"".join([one.replace(TRACE_ID, number.to_bytes(16)) for number in range(1, traces + 1)])
    text = request_to_json(body)
    assert 55 * 2**20 < len(text) < 64 * 2**20

    service, lags = await _served(tmp_path, text, "application/json", traces * len(trace))

    assert max(lags) < LONGEST_LAG_SECONDS, sorted(lags)[-5:]
    assert traces == sum(service.parts.metrics.agent_runs.values.values())


async def _served(folder: Path, body: bytes, content_type: str, spans: int) -> tuple[Service, list[float]]:
    """A service that took the request and has forwarded its spans, and how late its loop was meanwhile."""
    lines: list[str] = []
    configuration = _CONFIGURATION.format(spans=2 * SPANS, folder=folder)
    service = Service(parse_configuration(configuration, "test", {}), environment={}, console=io.StringIO())
    serving = asyncio.create_task(service.run(lines.append))
    while not lines:
        assert not serving.done(), serving
        await SystemClock().sleep(0.01)
    endpoints = dict(pair.split("=") for pair in lines[0].split())
    (endpoint,) = [address for name, address in endpoints.items() if "http" in name]
    request = urllib.request.Request(f"http://{endpoint}/v1/traces", body, {"Content-Type": content_type})
    gc.collect()
    gc.freeze()  # as the command `run` does
    lags: list[float] = []
    measuring = asyncio.create_task(_measure(lags))
    try:
        await asyncio.to_thread(urllib.request.urlopen, request, timeout=PATIENCE_SECONDS)
        deadline = time.monotonic() + PATIENCE_SECONDS
        forwarded = service.parts.metrics.spans_forwarded
        while forwarded.value("file") < spans:
            assert time.monotonic() < deadline
            await SystemClock().sleep(0.05)
    finally:
        measuring.cancel()
        gc.unfreeze()
        service.request_stop()
        await serving
    assert 0 == service.parts.metrics.traces_failed.value()
    assert 0 == service.parts.metrics.accounting_error.value("file")
    return service, lags


async def _measure(lags: list[float]) -> None:
    while True:
        due, used = time.monotonic() + 0.005, time.process_time()
        await SystemClock().sleep(0.005)
        lags.append(min(time.monotonic() - due, time.process_time() - used))
