"""What small traces really take is counted: memory stays near `limit_mib`, with a journal and without."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp import join_spans
from processors.model import JsonObject
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.backend_server import free_port
from tests.support.otlp_senders import GrpcSender
from tests.support.process_resources import resident_mib
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

LIMIT_MIB = 16
MARGIN_MIB = 24
"""What the service takes for the work itself beside what it holds: requests, and traces being graded."""
TRACES_A_REQUEST = 50
MAX_REQUESTS = 1000


def small_runs(first: int) -> bytes:
    """Runs of one call each, whose verdicts take several times what their spans do."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    now = time.time_ns()
    for trace in range(first, first + TRACES_A_REQUEST):
        for number, (operation, key, name) in enumerate(
            [("invoke_agent", "gen_ai.agent.name", "support"), ("execute_tool", "gen_ai.tool.name", "search")]
        ):
            span = spans.add(
                trace_id=trace.to_bytes(16, "big"),
                span_id=(2 * trace + number).to_bytes(8, "big"),
                name=operation,
                start_time_unix_nano=now,
                end_time_unix_nano=now,
            )
            if number:
                span.parent_span_id = (2 * trace).to_bytes(8, "big")
            span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
            span.attributes.add(key=key).value.string_value = name
    return request.SerializeToString()


@pytest.mark.parametrize("journal", [False, True])
async def test_small_traces_that_wait_for_a_backend_take_no_more_than_the_limit(
    tmp_path: Path, journal: bool
) -> None:
    settings: JsonObject = {
        "exporters": {"otlp": {"endpoint": f"127.0.0.1:{free_port()}", "tls": {"insecure": True}}},
        "processors": {"memory_limiter": {"limit_mib": LIMIT_MIB}},
    }
    if journal:
        settings["journal"] = {"directory": "journal"}
    async with (
        ServiceProcess(tmp_path, settings) as service,
        GrpcSender(service.endpoints["grpc"]) as sender,
    ):
        assert "OK" == (await sender.send(small_runs(1))).code
        while not (await service.metrics())['tracegrade_spans_held{exporter="otlp"}']:
            await asyncio.sleep(0.1)
        before = resident_mib(service.process.pid)
        for number in range(1, MAX_REQUESTS):
            answer = await sender.send(small_runs(1 + number * TRACES_A_REQUEST))
            if answer.code != "OK":
                break
            await asyncio.sleep(0.05)  # so that most of what is held are graded traces
        metrics = await service.metrics()
        taken = resident_mib(service.process.pid) - before

    assert "UNAVAILABLE" == answer.code
    waiting = metrics['tracegrade_spans_held{exporter="otlp"}']
    assert waiting > metrics['tracegrade_spans_held{exporter=""}']
    assert metrics["tracegrade_held_bytes"] > 0.9 * LIMIT_MIB * 1024 * 1024
    assert taken < LIMIT_MIB + MARGIN_MIB, f"{waiting:g} spans wait"
    print(f"journal {journal}: {taken:.1f} MiB for a limit of {LIMIT_MIB}, {waiting:g} spans wait")


def long_runs(first: int) -> bytes:
    """Runs of eight calls with results of one KiB."""
    now = time.time_ns() // 1_000_000
    result = json.dumps([{"city": "Oslo", "hour": hour, "degrees": hour / 2} for hour in range(24)])
    calls = [tool(number, 1, "forecast", at=(now, now), result=result) for number in range(2, 10)]
    body = join_spans([agent(1, None, "support", (now, now)), *calls])
    return b"".join(
        body.replace(TRACE_ID, trace.to_bytes(16, "big")) for trace in range(first, first + TRACES_A_REQUEST)
    )


async def test_runs_that_cannot_be_written_take_little_memory_and_are_written_later(tmp_path: Path) -> None:
    criteria = "agents: {support: {evaluations: [{evaluator: run-error}]}}"
    runs = 3_000
    async with (
        ServiceProcess(tmp_path, {}, criteria) as service,
        GrpcSender(service.endpoints["grpc"]) as sender,
    ):

        async def send_runs(first: int) -> dict[str, float]:
            for number in range(first, first + runs, TRACES_A_REQUEST):
                assert "OK" == (await sender.send(long_runs(number))).code
            async with asyncio.timeout(60):
                while True:
                    metrics = await service.metrics()
                    if metrics['tracegrade_traces_finished_total{reason="root"}'] == first + runs - 1:
                        return metrics
                    await asyncio.sleep(0.1)

        await send_runs(1)  # as much memory as the work itself takes
        await service.until(lambda: len(service.results()) == runs)
        service.results_path.unlink()
        service.results_path.mkdir()
        before = resident_mib(service.process.pid)
        metrics = await send_runs(1 + runs)
        taken = resident_mib(service.process.pid) - before
        service.results_path.rmdir()
        await service.until(service.results_path.is_file)
        await service.until(lambda: len(service.results()) == runs)
        after = await service.metrics()

    numbers = [int(str(run["trace_id"]), 16) for run in service.results()]
    assert list(range(1 + runs, 1 + 2 * runs)) == numbers
    counted = metrics["tracegrade_held_bytes"] / (1 << 20)
    assert taken < counted + MARGIN_MIB
    assert 0 == after['tracegrade_results_dropped_total{exporter="results_file",reason="queue_full"}']
    assert 0 == after["tracegrade_held_bytes"]
    print(f"{runs} runs wait: {taken:.1f} MiB, {counted:.1f} counted")
