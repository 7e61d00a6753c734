"""The sample agent exports what it does, and goes wrong as often as it is told."""

from collections import defaultdict

import aiohttp
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.backends import GrpcBackend, eventually
from tests.support.sample_agent import PATIENCE_SECONDS, SampleAgent

CAREFUL = ["get_temperature", "get_weather_condition", "get_humidity", "get_forecast"]
CARELESS = ["get_forecast", "get_weather_condition", "get_temperature"]


def finished_runs(backend: GrpcBackend) -> list[list[str]]:
    """The tools that each finished run called, in order, the oldest run first."""
    runs: dict[bytes, list[Span]] = defaultdict(list)
    for body in backend.requests:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    runs[span.trace_id].append(span)
    in_order = [sorted(spans, key=lambda span: span.start_time_unix_nano) for spans in runs.values()]
    in_order.sort(key=lambda spans: spans[0].start_time_unix_nano)
    return [
        [span.name.removeprefix("execute_tool ") for span in spans if span.name.startswith("execute_tool ")]
        for spans in in_order
        if not spans[0].parent_span_id
    ]


async def test_as_many_runs_go_wrong_as_the_share_says() -> None:
    backend = GrpcBackend()
    await backend.start()
    async with SampleAgent(backend.endpoint, runs_per_second=50) as agent:
        await eventually(lambda: len(finished_runs(backend)) >= 3, "runs", seconds=PATIENCE_SECONDS)
        before = int((await agent.turn("/bad?share=0.5"))["runs"])
        await eventually(lambda: len(finished_runs(backend)) >= before + 11, "runs", seconds=PATIENCE_SECONDS)
        recovered = int((await agent.turn("/good"))["runs"])
        await eventually(
            lambda: len(finished_runs(backend)) >= recovered + 3, "runs", seconds=PATIENCE_SECONDS
        )
        exit_code = await agent.stop()
    await backend.stop()

    runs = finished_runs(backend)
    assert 0 == exit_code
    assert [CAREFUL] * 3 == runs[:3]
    assert 5 == runs[before + 1 : before + 11].count(CARELESS)
    assert 5 == runs[before + 1 : before + 11].count(CAREFUL)
    assert {"".join(CAREFUL)} == {"".join(run) for run in runs[recovered + 1 :]}


@pytest.mark.parametrize("path", ["/worse", "/bad?share=2", "/bad?share=nan", "/bad?share=all"])
async def test_what_it_does_not_understand_changes_nothing(path: str) -> None:
    async with SampleAgent("127.0.0.1:1") as agent, aiohttp.ClientSession() as session:
        async with session.post(f"{agent.control_url}{path}") as refused:
            status = refused.status
        async with session.get(agent.control_url) as response:
            state = await response.json()

    assert 400 == status
    assert 0 == state["bad_share"]
