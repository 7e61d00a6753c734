"""The service with waits that are learned: what it says of them, and late spans held against its verdicts."""

import json
from pathlib import Path

import aiohttp
import pytest

from collector.otlp import join_spans
from processors.spans import RawSpan
from tests.support.agent_spans import agent, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

NOW = 1_769_846_400_000_000_000
CRITERIA = "agents: {shop: {evaluations: [{evaluator: tool-permission, criteria: {deny: [delete]}}]}}"


def _configuration(folder: Path, root_grace: str) -> str:
    criteria = folder / "criteria.yaml"
    criteria.write_text(CRITERIA)
    listeners = {"grpc": {"endpoint": "127.0.0.1:0"}, "http": {"endpoint": "127.0.0.1:0"}}
    return json.dumps(
        {
            "receivers": {"otlp": {"protocols": listeners}},
            "processors": {
                "group_by_trace": {"root_grace": root_grace},
                "evaluation": {"criteria": [str(criteria)]},
            },
            "exporters": {"file": {"path": str(folder / "spans.jsonl")}},
            "page": {"endpoint": "127.0.0.1:0"},
            "service": {"telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"interval": "1000h"}}},
        }
    )


async def _send(service: ServiceInLoop, *spans: RawSpan) -> None:
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        assert "OK" == (await sender.send(join_spans(spans))).code


async def _page(service: ServiceInLoop) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{service.endpoints['page']}/") as response,
    ):
        return await response.text()


async def test_a_verdict_that_a_late_span_would_have_changed_is_counted(tmp_path: Path) -> None:
    at = NOW // 1_000_000 + 1000
    async with ServiceInLoop(_configuration(tmp_path, "auto"), NOW) as service:
        await service.pass_time(1)
        await _send(service, tool(2, 1, "search", at=(at, at + 1)), agent(1, None, "shop", (at, at + 2)))
        await service.until(lambda now: now.get('tracegrade_agent_runs_total{gen_ai_agent_name="shop"}') == 1)
        await _send(service, tool(3, 1, "delete", at=(at, at + 1)))
        found = await service.until(
            lambda now: now['tracegrade_late_traces_checked_total{result="contradicted"}'] == 1
        )
        page = await _page(service)

    assert 1 == found['tracegrade_verdicts_contradicted_total{outcome="pass"}']
    assert "Not enough traces to learn the wait of any service yet" in page


async def test_with_a_fixed_wait_nothing_is_said_of_waits(tmp_path: Path) -> None:
    async with ServiceInLoop(_configuration(tmp_path, "1s"), NOW) as service:
        samples = await service.metrics()
        page = await _page(service)

    assert not [name for name in samples if "contradicted" in name or "learned" in name]
    assert "<h2>Waits</h2>" not in page
