"""Turns of a conversation, each a trace, graded together by the real service, also over a restart."""

import json
from pathlib import Path

import pytest

from collector.otlp import join_spans
from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

NOW = 1_769_846_400_000_000_000

CRITERIA = """
agents:
  shop:
    evaluations:
      - evaluator: tool-precedence
        name: identity-first
        scope: conversation
        criteria: {before: [[verify, refund]]}
      - evaluator: tool-call-count
        name: one-refund
        scope: conversation
        criteria: {tool_calls_count: {refund: ["<=", 1]}}
"""


def _configuration(folder: Path, max_pause: str) -> str:
    criteria = folder / "criteria.yaml"
    criteria.write_text(CRITERIA)
    return json.dumps(
        {
            "receivers": {
                "otlp": {
                    "protocols": {"grpc": {"endpoint": "127.0.0.1:0"}, "http": {"endpoint": "127.0.0.1:0"}}
                }
            },
            "processors": {
                "evaluation": {"criteria": [str(criteria)], "conversations": {"max_pause": max_pause}}
            },
            "exporters": {
                "results_file": {"path": str(folder / "verdicts.runs.jsonl")},
                "file": {"path": str(folder / "spans.jsonl")},
            },
            "store": {"path": str(folder / "runs.db")},
            "service": {"telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"interval": "1000h"}}},
        }
    )


def _turn(number: int, start_unix_nano: int, name: str) -> list[RawSpan]:
    """A run of half a second that calls one tool."""
    at = start_unix_nano // 1_000_000
    conversation = {"gen_ai.conversation.id": "one"}
    spans = [tool(2, 1, name, at=(at + 1, at + 2)), agent(1, None, "shop", (at, at + 500), **conversation)]
    trace_id = number.to_bytes(16, "big")
    return [(span_id, payload.replace(TRACE_ID, trace_id), of) for span_id, payload, of in spans]


async def _graded(service: ServiceInLoop, folder: Path, number: int, name: str) -> dict[str, JsonObject]:
    """Send a turn that begins now; its verdicts once it is graded, by name."""
    await service.pass_time(1)
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        request = join_spans(_turn(number, service.clock.unix_nano(), name))
        assert "OK" == (await sender.send(request)).code
    trace_id = number.to_bytes(16, "big").hex()

    def lines() -> list[JsonObject]:
        file = folder / "verdicts.runs.jsonl"
        runs = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [run for run in runs if run["trace_id"] == trace_id]

    await service.until(lambda _: bool(lines()))
    (run,) = lines()
    evaluations = run["evaluations"]
    assert isinstance(evaluations, list)
    return {str(each["name"]): each for each in evaluations if isinstance(each, dict)}


def _ended(verdicts: dict[str, JsonObject]) -> list[tuple[object, object, int]]:
    """Of both evaluations the outcome, the reason, and how many runs they looked at."""
    found = [verdicts[name] for name in ("identity-first", "one-refund")]
    runs = [each["conversation_runs"] for each in found]
    return [
        (each["outcome"], each["reason"], len(looked_at) if isinstance(looked_at, list) else -1)
        for each, looked_at in zip(found, runs, strict=True)
    ]


async def test_turns_are_graded_together_before_and_after_a_restart(tmp_path: Path) -> None:
    configuration = _configuration(tmp_path, "100ms")
    async with ServiceInLoop(configuration, NOW) as service:
        first = await _graded(service, tmp_path, 1, "verify")
        closed = service.clock.unix_nano()
    async with ServiceInLoop(configuration, closed + 5_000_000_000) as service:
        second = await _graded(service, tmp_path, 2, "refund")
        third = await _graded(service, tmp_path, 3, "refund")

    assert [("pass", None, 1), ("pass", None, 1)] == _ended(first)
    assert [("pass", None, 2), ("pass", None, 2)] == _ended(second)
    assert [("pass", None, 3), ("fail", None, 3)] == _ended(third)
    assert [f"{number:032x}-{1:016x}" for number in (1, 2, 3)] == third["one-refund"]["conversation_runs"]
    assert 6 == (tmp_path / "spans.jsonl").read_text().count('"tracegrade.conversation.runs"')


async def test_a_conversation_that_may_have_begun_before_the_service_is_judged_by_what_is_certain(
    tmp_path: Path,
) -> None:
    async with ServiceInLoop(_configuration(tmp_path, "1h"), NOW) as service:
        first = await _graded(service, tmp_path, 1, "refund")
        second = await _graded(service, tmp_path, 2, "refund")

    unknown = ("not_evaluated", "interrupted", 1)
    assert [unknown, unknown] == _ended(first)
    assert [("not_evaluated", "interrupted", 2), ("fail", None, 2)] == _ended(second)
