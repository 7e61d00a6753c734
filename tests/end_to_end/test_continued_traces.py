"""A second run in a trace that was graded, as a resumed agent sends it, also over kill -9."""

import asyncio
import json
import signal
import time
from pathlib import Path

import pytest

from collector.otlp import join_spans
from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import agent, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

CRITERIA = """
agents:
  shop:
    evaluations:
      - evaluator: tool-call-count
        name: no-refund
        criteria: {tool_calls_count: {refund: ["=", 0]}}
"""
SETTINGS: JsonObject = {
    "processors": {"group_by_trace": {"root_grace": "500ms", "multi_service_grace": "500ms"}}
}
CONVERSATION = {"gen_ai.conversation.id": "c"}


def _first_run(at: int) -> list[RawSpan]:
    return [
        tool(2, 1, "look_up", at=(at + 10, at + 20)),
        agent(1, None, "shop", (at, at + 50), **CONVERSATION),
    ]


def _second_run(at: int) -> list[RawSpan]:
    """The run goes on: its invocation is a child of the first one, and ends last."""
    return [
        tool(12, 11, "refund", at=(at + 10, at + 20)),
        agent(11, 1, "shop", (at, at + 50), **CONVERSATION),
    ]


async def _send(service: ServiceProcess, *spans: RawSpan) -> None:
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        assert "OK" == (await sender.send(join_spans(spans))).code


def _now() -> int:
    """In milliseconds."""
    return time.time_ns() // 1_000_000


def _verdicts(service: ServiceProcess) -> list[tuple[str, list[str], str]]:
    """Of each graded run: its span, its calls, and its only verdict."""
    return [
        (
            str(run["span_id"])[-2:],
            [call["name"] for call in run["tool_calls"]],  # type: ignore[union-attr, index, call-overload, misc]
            run["evaluations"][0]["outcome"],  # type: ignore[index, call-overload]
        )
        for run in service.results()
    ]


def _events(folder: Path) -> list[tuple[str, int]]:
    """The spans that left, by the end of their id, and how many results are on each."""
    found = []
    for line in (folder / "spans.jsonl").read_text().splitlines():
        for resource_spans in json.loads(line)["resourceSpans"]:
            for scope_spans in resource_spans["scopeSpans"]:
                found += [(span["spanId"][-2:], len(span.get("events", ()))) for span in scope_spans["spans"]]
    return sorted(found)


async def test_a_second_run_in_a_graded_trace_is_graded_and_the_first_is_not_graded_again(
    tmp_path: Path,
) -> None:
    settings: JsonObject = {**SETTINGS, "exporters": {"file": {"path": "spans.jsonl"}}}
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await _send(service, *_first_run(_now()))
        await service.until(lambda: len(service.results()) == 1)
        call, invocation = _second_run(_now())
        await _send(service, call)
        await asyncio.sleep(1)  # longer than the grace: the run's own span has yet to come
        assert 1 == len(service.results())
        await _send(service, invocation, *_first_run(_now())[:1])  # and a repeat of the first part
        await service.until(lambda: len(service.results()) == 2)
        await service.until(lambda: len(_events(tmp_path)) == 4)
        metrics = await service.metrics()

    assert [("01", ["look_up"], "pass"), ("0b", ["refund"], "fail")] == _verdicts(service)
    assert [("01", 1), ("02", 0), ("0b", 1), ("0c", 0)] == _events(tmp_path)
    assert 1 == metrics["tracegrade_traces_continued_total"]
    assert 0 == metrics["tracegrade_late_spans_total"]
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="file"}']


async def test_a_second_run_is_graded_though_the_process_is_killed_while_it_is_under_way(
    tmp_path: Path,
) -> None:
    settings: JsonObject = {
        **SETTINGS,
        "exporters": {"file": {"path": "spans.jsonl"}},
        "journal": {"directory": "journal"},
    }
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await _send(service, *_first_run(_now()))
        await service.until(lambda: len(service.results()) == 1)
        await asyncio.sleep(0.5)  # that it was delivered is written as well; else it comes again
        call, invocation = _second_run(_now())
        await _send(service, call)
        service.signal(signal.SIGKILL)
        await service.wait()
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await _send(service, invocation)
        await service.until(lambda: len(service.results()) == 2)
        metrics = await service.metrics()

    assert [("01", ["look_up"], "pass"), ("0b", ["refund"], "fail")] == _verdicts(service)
    assert 1 == metrics['tracegrade_spans_recovered_total{exporter=""}']
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="file"}']
