"""From the verdict lines of one service to criteria for the next: good runs pass, broken ones fail."""

import hashlib
import json
import time
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from collector.cli import run_command
from processors.model import JsonValue
from tests.support.agent_population import Line, deploy_agent, population
from tests.support.agent_spans import key_values
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

_STEP_NANO = 2_000_000


def _request(line: Line) -> bytes:
    """A run as the OpenTelemetry conventions for generative AI tell it."""
    began = time.time_ns()
    asked = [{"role": "user", "parts": [{"type": "text", "content": line["input"]}]}]
    root = _span(
        line, 0, "invoke_agent deploy_agent", began, (len(line["tool_calls"]) + 1) * _STEP_NANO,
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": line["agent"]["name"],
            "gen_ai.input.messages": json.dumps(asked),
        },
    )  # fmt: skip
    spans = [root]
    for number, call in enumerate(line["tool_calls"], 1):
        attributes: dict[str, JsonValue] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
        }
        if "result" in call:
            attributes["gen_ai.tool.call.result"] = json.dumps(call["result"])
        else:
            attributes["error.type"] = "TimeoutError"
        at = began + number * _STEP_NANO
        span = _span(line, number, f"execute_tool {call['name']}", at, _STEP_NANO // 2, attributes)
        span.parent_span_id = root.span_id
        if "error" in call:
            span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=call["error"]))
        spans.append(span)
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])
    return request.SerializeToString()


def _span(
    line: Line, number: int, name: str, start: int, nanoseconds: int, attributes: dict[str, JsonValue]
) -> Span:
    return Span(
        trace_id=bytes.fromhex(line["trace_id"]),
        span_id=hashlib.sha256(f"{line['trace_id']}{number}".encode()).digest()[:8],
        name=name,
        start_time_unix_nano=start,
        end_time_unix_nano=start + nanoseconds,
        attributes=key_values(attributes),
    )


async def _graded(service: ServiceProcess, lines: list[Line]) -> dict[str, set[str]]:
    """The evaluations that fail, by trace."""
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        for line in lines:
            await sender.send(_request(line))
    await service.until(lambda: len(service.results()) >= len(lines))
    failed: dict[str, set[str]] = {}
    for run in service.results():
        evaluations = run["evaluations"]
        assert isinstance(evaluations, list)
        results = [result for result in evaluations if isinstance(result, dict)]
        failed[str(run["trace_id"])] = {str(r["name"]) for r in results if r["outcome"] in ("fail", "error")}
    return failed


async def test_criteria_that_were_learned_from_a_service_tell_good_runs_from_broken_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    async with ServiceProcess(before) as service:
        await _graded(service, population(deploy_agent, 200))
        assert 0 == await service.stop()

    criteria = tmp_path / "learned.yaml"
    assert 0 == run_command(["learn", str(service.results_path), "--output", str(criteria)])
    assert "deploy_agent: " in capsys.readouterr().err
    assert 0 == run_command(["validate", str(criteria)])

    good = population(deploy_agent, 20, seed=2)
    broken = population(deploy_agent, 20, seed=3)
    for line in broken:
        line["tool_calls"] = [call for call in line["tool_calls"] if call["name"] != "run_tests"]
    async with ServiceProcess(after, criteria=criteria.read_text()) as service:
        failed = await _graded(service, [*good, *broken])
        assert 0 == await service.stop()

    learned = {
        trace: {name for name in names if name.startswith("learned-")} for trace, names in failed.items()
    }
    assert sum(bool(learned[line["trace_id"]]) for line in good) <= 1
    assert all("learned-order" in learned[line["trace_id"]] for line in broken)
