"""kill -9 and a restart within traces: what may have lost spans is never judged as if it were whole."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from collector.otlp import join_spans
from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

CRITERIA = """
agents:
  shop:
    evaluations:
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {search: ["=", 1], pay: ["=", 1]}}
      - {evaluator: tool-permission, criteria: {deny: [delete]}}
"""


def _trace(number: int, started: float, ended: float, *, deletes: bool = False) -> tuple[RawSpan, ...]:
    """A run that searches first and pays last; the agent's own span comes with the payment."""
    start, end = int(started * 1000), int(ended * 1000)
    spans = [
        tool(2, 1, "search", at=(start + 1, start + 2)),
        tool(3, 1, "delete" if deletes else "pay", at=(end - 2, end - 1)),
        agent(1, None, "shop", at=(start, end)),
    ]
    trace_id = number.to_bytes(16, "big")
    return tuple((span_id, payload.replace(TRACE_ID, trace_id), of) for span_id, payload, of in spans)


async def _send(service: ServiceProcess, *spans: RawSpan) -> None:
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        assert "OK" == (await sender.send(join_spans(spans))).code


def _verdicts(service: ServiceProcess) -> dict[int, dict[str, tuple[str, str | None]]]:
    found: dict[int, dict[str, tuple[str, str | None]]] = {}
    for run in service.results():
        evaluations = run["evaluations"]
        assert isinstance(evaluations, list)
        found[int(str(run["trace_id"]), 16)] = {
            str(each["name"]): (str(each["outcome"]), None if each["reason"] is None else str(each["reason"]))
            for each in evaluations
            if isinstance(each, dict)
        }
    return found


async def test_after_a_crash_no_trace_that_began_before_the_restart_is_judged_as_whole(
    tmp_path: Path,
) -> None:
    live: JsonObject = {"exporters": {"results_file": {"path": "verdicts.runs.jsonl"}}}
    began = time.time()
    async with ServiceProcess(tmp_path, live, CRITERIA) as service:
        for number in (1, 2):  # acknowledged, and lost with the process
            await _send(service, _trace(number, began, began + 60)[0])
        service.signal(signal.SIGKILL)
        await service.wait()

    async with ServiceProcess(tmp_path, live, CRITERIA) as service:
        ended = time.time()
        await _send(service, *_trace(1, began, ended)[1:])
        await _send(service, *_trace(2, began, ended, deletes=True)[1:])
        fresh = time.time()
        await _send(service, *_trace(3, fresh, fresh + 0.01))
        stored = fresh - 3600
        await _send(service, *_trace(4, stored, stored + 1))
        await service.until(lambda: len(service.results()) == 4)
        metrics = await service.metrics()

    undecided, passed = ("not_evaluated", "interrupted"), ("pass", None)
    verdicts = _verdicts(service)
    assert {"tool-call-count": undecided, "tool-permission": undecided} == verdicts[1]
    # What nothing that was lost could change is still said.
    assert ("fail", None) == verdicts[2]["tool-permission"]
    assert {"tool-call-count": passed, "tool-permission": passed} == verdicts[3]
    assert {"tool-call-count": passed, "tool-permission": passed} == verdicts[4]
    assert 2 == metrics['tracegrade_traces_interrupted_total{reason="start"}']


@pytest.mark.slow
async def test_what_was_missed_while_the_process_was_down_counts_after_another_restart(
    tmp_path: Path,
) -> None:
    settings: JsonObject = {
        "processors": {"group_by_trace": {"idle_timeout": "60s"}},
        "journal": {"directory": "journal"},
        "exporters": {"results_file": {"path": "verdicts.runs.jsonl"}},
    }
    began = time.time()
    for number, downtime in enumerate((6.0, 0.0)):  # the first is an outage, which takes more than 5 s
        async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
            if number == 0:
                await _send(service, _trace(1, began, began + 60)[0])
            await asyncio.sleep(0.3)  # twice what it takes to record that it lives
            service.signal(signal.SIGKILL)
            await service.wait()
        await asyncio.sleep(downtime)

    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await _send(service, *_trace(1, began, time.time())[1:])
        await service.until(lambda: len(service.results()) == 1)

    assert ("not_evaluated", "interrupted") == _verdicts(service)[1]["tool-call-count"]
