"""A trace of 100,000 spans is graded while requests are answered: the loop is never late for long.

How late it was is told by the clock, or by the CPU time of this process where that is less: a machine that
is busy with others makes every process late, and none of that is the service's doing.
"""

import asyncio
import gc
import io
import time
import urllib.request
from pathlib import Path

from collector.clock import SystemClock
from collector.configuration.service_file import parse_configuration
from collector.otlp.codec import join_spans
from collector.service import Service
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, tool

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


async def test_the_loop_turns_while_a_large_trace_is_graded(tmp_path: Path) -> None:
    body = join_spans(large_trace(time.time_ns() // 1_000_000 - 1000))
    lines: list[str] = []
    configuration = _CONFIGURATION.format(spans=2 * SPANS, folder=tmp_path)
    service = Service(parse_configuration(configuration, "test", {}), environment={}, console=io.StringIO())
    serving = asyncio.create_task(service.run(lines.append))
    while not lines:
        assert not serving.done(), serving
        await SystemClock().sleep(0.01)
    endpoints = dict(pair.split("=") for pair in lines[0].split())
    (endpoint,) = [address for name, address in endpoints.items() if "http" in name]
    request = urllib.request.Request(
        f"http://{endpoint}/v1/traces", body, {"Content-Type": "application/x-protobuf"}
    )
    gc.collect()
    gc.freeze()  # as the command `run` does
    lags: list[float] = []
    measuring = asyncio.create_task(_measure(lags))
    try:
        await asyncio.to_thread(urllib.request.urlopen, request, timeout=PATIENCE_SECONDS)
        deadline = time.monotonic() + PATIENCE_SECONDS
        forwarded = service._metrics.spans_forwarded
        while forwarded.value("file") < SPANS:
            assert time.monotonic() < deadline
            await SystemClock().sleep(0.05)
    finally:
        measuring.cancel()
        gc.unfreeze()
        service.request_stop()
        await serving

    assert max(lags) < LONGEST_LAG_SECONDS, sorted(lags)[-5:]
    runs = -(-(SPANS - 1) // (CALLS_OF_A_RUN + 1)) + 1
    assert runs == sum(service._metrics.agent_runs.values.values())
    assert 1 == service._metrics.evaluation_seconds.row()[-2]
    assert 0 == service._metrics.traces_failed.value()
    assert 0 == service._metrics.accounting_error.value("file")


async def _measure(lags: list[float]) -> None:
    while True:
        due, used = time.monotonic() + 0.005, time.process_time()
        await SystemClock().sleep(0.005)
        lags.append(min(time.monotonic() - due, time.process_time() - used))
