"""kill -9 with the journal on: what was acknowledged is graded once, and delivered."""

import signal
import time
from pathlib import Path

import pytest

from collector.otlp.codec import join_spans
from processors.model.json_values import JsonObject
from processors.spans.span import RawSpan
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
"""
JOURNAL: JsonObject = {"journal": {"directory": "journal"}}


def _trace(number: int, started: float, ended: float) -> tuple[RawSpan, ...]:
    """A run that searches first and pays last; the agent's own span comes with the payment."""
    start, end = int(started * 1000), int(ended * 1000)
    spans = [
        tool(2, 1, "search", at=(start + 1, start + 2)),
        tool(3, 1, "pay", at=(end - 2, end - 1)),
        agent(1, None, "shop", at=(start, end)),
    ]
    trace_id = number.to_bytes(16, "big")
    return tuple((span_id, payload.replace(TRACE_ID, trace_id), of) for span_id, payload, of in spans)


async def _send(service: ServiceProcess, *spans: RawSpan) -> None:
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        assert "OK" == (await sender.send(join_spans(spans))).code


def _outcomes(service: ServiceProcess) -> dict[int, str]:
    found = {}
    for run in service.results():
        evaluations = run["evaluations"]
        assert isinstance(evaluations, list)
        assert isinstance(evaluations[0], dict)
        found[int(str(run["trace_id"]), 16)] = str(evaluations[0]["outcome"])
    return found


async def test_a_crash_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, JOURNAL, CRITERIA) as service:
        now = time.time()
        await _send(service, *_trace(1, now - 0.1, now))  # whole, not graded yet
        await _send(service, _trace(2, now - 0.1, now + 1)[0])  # half of it
        service.signal(signal.SIGKILL)
        await service.wait()
        assert not service.results()

    async with ServiceProcess(tmp_path, JOURNAL, CRITERIA) as service:
        await _send(service, *_trace(2, now - 0.1, now + 1)[1:])
        await service.until(lambda: len(service.results()) == 2)
        metrics = await service.metrics()
        await _send(service, _trace(1, now - 0.1, now)[0])  # a repeat of what the process before took
        await service.until(lambda: True)
        after = await service.metrics()

    assert {1: "pass", 2: "pass"} == _outcomes(service)
    assert 4 == metrics['tracegrade_spans_recovered_total{exporter=""}']
    assert 1 == after['tracegrade_spans_dropped_total{exporter="",reason="duplicate"}']
    assert 0 == after['tracegrade_accounting_error_spans{exporter="file"}']
