"""Metrics of the real service: hostile names stay bounded, and tools of Prometheus take what is served."""

import subprocess

import aiohttp
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.telemetry import OVERFLOW, Limits
from tests.support.agent_spans import key_values
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop, read_samples

pytestmark = pytest.mark.end_to_end

START_UNIX_NANO = 1_700_000_000_000_000_000
HOSTILE_NAMES = 10_000
NAMES_PER_REQUEST = 500

CONFIGURATION = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}}
exporters:
  prometheus: {endpoint: "127.0.0.1:0", resource_attributes: [service.version]}
service: {telemetry: {self_check: {enabled: false}}, shutdown_timeout: 5s}
"""


def traces(numbers: range, agent: str, tool: str) -> bytes:
    """A trace for each number: one agent that calls one tool, both named after it."""
    spans: list[Span] = []
    for number in numbers:
        trace_id = (number + 1).to_bytes(16)
        spans += [
            Span(
                trace_id=trace_id,
                span_id=b"the-tool",
                parent_span_id=b"an-agent",
                name="tool",
                start_time_unix_nano=START_UNIX_NANO,
                end_time_unix_nano=START_UNIX_NANO + 1,
                attributes=key_values(
                    {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": tool.format(number),
                        "gen_ai.tool.call.arguments": "{}",
                        "gen_ai.tool.call.result": "{}",
                    }
                ),
            ),
            Span(
                trace_id=trace_id,
                span_id=b"an-agent",
                name="agent",
                start_time_unix_nano=START_UNIX_NANO,
                end_time_unix_nano=START_UNIX_NANO + 2,
                attributes=key_values(
                    {
                        "gen_ai.operation.name": "invoke_agent",
                        "gen_ai.agent.name": agent.format(number),
                        "gen_ai.agent.version": f"{number}",
                    }
                ),
            ),
        ]
    resource = Resource(attributes=key_values({"service.name": "demo", "service.version": f"{numbers[0]}"}))
    of_resource = ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=spans)])
    return ExportTraceServiceRequest(resource_spans=[of_resource]).SerializeToString()


async def text_of(service: ServiceInLoop, accept: str = "text/plain") -> str:
    url = f"http://{service.endpoints['telemetry']}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url, headers={"accept": accept}) as response:
        return await response.text()


async def test_hostile_names_of_agents_and_tools_are_bounded_and_counted() -> None:
    async with ServiceInLoop(CONFIGURATION, START_UNIX_NANO) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            for first in range(0, HOSTILE_NAMES, NAMES_PER_REQUEST):
                numbers = range(first, first + NAMES_PER_REQUEST)
                answer = await sender.send(traces(numbers, 'agent "{}"\\\n', "tool\x00{}"))
                assert answer.code == "OK"
        counted = 0.0
        while counted < HOSTILE_NAMES:
            await service.pass_time(5)
            text = await text_of(service)
            counted = sum_of(samples_of(text, "tracegrade_agent_runs"), "tracegrade_agent_runs_total")

    samples = samples_of(text, "tracegrade_agent_runs") | samples_of(text, "tracegrade_tool_calls")
    agents = [name for name in samples if name.startswith("tracegrade_agent_runs_total")]
    overflow = f'gen_ai_agent_name="{OVERFLOW}"'
    assert HOSTILE_NAMES == sum_of(samples, "tracegrade_agent_runs_total")
    assert HOSTILE_NAMES == sum_of(samples, "tracegrade_tool_calls_total")
    assert Limits.AGENTS < len(agents) < Limits.AGENTS + 200
    assert HOSTILE_NAMES - Limits.AGENTS == sum(samples[name] for name in agents if overflow in name)
    assert text.count("\n") < 150_000


@pytest.mark.requires_program("promtool")
async def test_promtool_takes_a_live_scrape() -> None:
    async with ServiceInLoop(CONFIGURATION, START_UNIX_NANO) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(traces(range(3), "agent {}", "tool"))
        await service.pass_time(30)
        await text_of(service)
        text = await text_of(service)

    own_only = "".join(
        line for line in text.splitlines(keepends=True) if "tracegrade_" in line or "gen_ai_" in line
    )
    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=own_only.encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert 3 == sum_of(read_samples(text), "tracegrade_agent_runs_total")
    assert (0, b"") == (checked.returncode, checked.stderr)


def samples_of(text: str, family: str) -> dict[str, float]:
    """The samples of one family of a big scrape."""
    return read_samples("".join(line for line in text.splitlines(keepends=True) if family in line))


def sum_of(samples: dict[str, float], name: str) -> float:
    return sum(value for sample, value in samples.items() if sample.partition("{")[0] == name)
