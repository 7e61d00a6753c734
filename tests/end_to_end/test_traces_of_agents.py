"""Agents of one trace, graded together by the real service: on its local root, in store and page."""

import json
from pathlib import Path

import pytest
from aiohttp import ClientSession

from collector.otlp import join_spans
from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, envelope, model, span, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

NOW = 1_769_846_400_000_000_000

CRITERIA = """
agents:
  desk:
    evaluations:
      - evaluator: tool-constraints
        name: not-by-who-executes
        scope: trace
        severity: page
        criteria:
          constraints:
            - {not_response: [approve, execute], where: first.agent == second.agent}
            - precedence: [{tool: approve, agent: reviewer}, execute]
      - {evaluator: token-budget, scope: trace, criteria: {max_total_tokens: 100}}
"""
USAGE: JsonObject = {
    "gen_ai.usage.input_tokens": 40,
    "gen_ai.usage.output_tokens": 5,
    "gen_ai.request.model": "m",
}


def _configuration(folder: Path, processes: int) -> str:
    criteria = folder / "criteria.yaml"
    criteria.write_text(CRITERIA)
    listener = {"endpoint": "127.0.0.1:0"}
    return json.dumps(
        {
            "receivers": {"otlp": {"protocols": {"grpc": listener, "http": listener}}},
            "processors": {"evaluation": {"criteria": [str(criteria)], "processes": processes}},
            "exporters": {
                "results_file": {"path": str(folder / "verdicts.runs.jsonl")},
                "file": {"path": str(folder / "spans.jsonl")},
            },
            "store": {"path": str(folder / "runs.db")},
            "page": listener,
            "service": {"telemetry": {**listener, "self_check": {"interval": "1000h"}}},
        }
    )


def _trace(number: int, start_unix_nano: int, executes: str) -> list[RawSpan]:
    """A request in which a reviewer approves something and the agent `executes` executes it."""
    at, of = start_unix_nano // 1_000_000, envelope("desk")
    spans = [
        span(1, None, "POST /tasks", at=(at, at + 500), of=of),
        agent(2, 1, "reviewer", (at + 1, at + 100)),
        model(3, 2, (at + 2, at + 3), **USAGE),
        tool(4, 2, "approve", at=(at + 10, at + 20)),
        agent(5, 1, executes, (at + 200, at + 300)),
        model(6, 5, (at + 201, at + 202), **USAGE),
        tool(7, 5, "execute", at=(at + 210, at + 220)),
    ]
    trace_id = number.to_bytes(16, "big")
    return [(span_id, payload.replace(TRACE_ID, trace_id), of) for span_id, payload, _ in spans]


@pytest.mark.parametrize("processes", [0, 1])
async def test_agents_of_a_trace_are_graded_together(processes: int, tmp_path: Path) -> None:
    def lines() -> list[JsonObject]:
        file = tmp_path / "verdicts.runs.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    async with ServiceInLoop(_configuration(tmp_path, processes), NOW) as service:
        await service.pass_time(1)
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            for number, executes in ((1, "clerk"), (2, "reviewer")):
                request = join_spans(_trace(number, service.clock.unix_nano(), executes))
                assert "OK" == (await sender.send(request)).code
        await service.until(lambda _: len(lines()) == 6)
        async with ClientSession() as client:
            async with client.get(f"http://{service.endpoints['page']}/run/{2:032x}") as answer:
                page = await answer.text()
            async with client.get(f"http://{service.endpoints['telemetry']}/metrics") as answer:
                metrics = await answer.text()

    standing = {str(line["trace_id"])[-1]: line for line in lines() if line.get("stands_for") == "trace"}
    ended = {
        trace: {each["name"]: (each["outcome"], each["scope"]) for each in line["evaluations"]}  # type: ignore[union-attr,index,call-overload]
        for trace, line in standing.items()
    }
    assert ended == {
        "1": {"not-by-who-executes": ("pass", "trace"), "token-budget": ("pass", "trace")},
        "2": {"not-by-who-executes": ("fail", "trace"), "token-budget": ("pass", "trace")},
    }
    assert ["0000000000000001"] * 2 == [line["span_id"] for line in standing.values()]
    roots = [
        each
        for request in (tmp_path / "spans.jsonl").read_text().splitlines()
        for resource in json.loads(request)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for each in scope["spans"]
        if each.get("events")
    ]
    assert ["POST /tasks"] * 2 == [root["name"] for root in roots]
    assert [2, 2] == [len(root["events"]) for root in roots]
    assert "over the trace" in page
    assert 'gen_ai_agent_name="desk",gen_ai_evaluation_name="not-by-who-executes"' in metrics
