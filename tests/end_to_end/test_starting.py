"""While the service starts, senders get an answer instead of a closed port."""

import asyncio
import json
from pathlib import Path

import pytest

from collector.otlp import split_request
from collector.receivers import Receiver
from collector.resumption import Resumption
from collector.task_supervisor import TaskOwner
from tests.support.otlp_senders import Answer, GrpcSender, HttpSender, export_request
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

START_UNIX_NANO = 1_790_000_000_000_000_000


async def _answers(service: ServiceInLoop) -> list[Answer]:
    receivers = service.service.parts.receivers
    assert all(isinstance(receiver, Receiver) for receiver in receivers.values())
    async with GrpcSender(receivers["grpc"].endpoint) as grpc, HttpSender(receivers["http"].endpoint) as http:
        return [await sender.send(export_request()) for sender in (grpc, http)]


def _service(folder: Path) -> ServiceInLoop:
    endpoint = {"endpoint": "127.0.0.1:0"}
    configuration = {
        "receivers": {"otlp": {"protocols": {"grpc": endpoint, "http": endpoint}}},
        "journal": {"directory": str(folder / "journal")},
        "exporters": {"file": {"path": str(folder / "spans.jsonl")}},
        "store": "off",
        "service": {"telemetry": {**endpoint, "self_check": {"enabled": False}}},
    }
    return ServiceInLoop(json.dumps(configuration), START_UNIX_NANO)


async def test_senders_are_to_come_back_while_the_journal_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()
    resume = Resumption.resume

    async def slow(self: Resumption, tasks: TaskOwner) -> int:
        began.set()
        await may_end.wait()
        return await resume(self, tasks)

    monkeypatch.setattr(Resumption, "resume", slow)
    service = _service(tmp_path)
    starting = asyncio.create_task(service.start())
    await began.wait()

    early = await _answers(service)
    is_ready = service.service.parts.readiness.is_ready
    may_end.set()
    await starting
    late = await _answers(service)
    metrics = await service.metrics()
    await service.stop()

    assert ["UNAVAILABLE"] * 2 == [answer.code for answer in early]
    assert all("starting" in answer.message and answer.delays for answer in early)
    assert not is_ready
    assert ["OK"] * 2 == [answer.code for answer in late]
    assert 2 * split_request(export_request()).accepted == metrics["tracegrade_spans_received_total"]


async def test_spans_are_taken_while_graded_traces_are_sent_and_none_is_graded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = asyncio.Event()
    send_graded = Resumption.send_graded

    async def slow(self: Resumption) -> None:
        await may_end.wait()
        await send_graded(self)

    monkeypatch.setattr(Resumption, "send_graded", slow)
    forwarded = 'tracegrade_spans_forwarded_total{exporter="file"}'
    async with _service(tmp_path) as service:
        answers = await _answers(service)
        await service.pass_time(600)
        before = await service.metrics()
        may_end.set()
        after = await service.until(lambda samples: bool(samples[forwarded]), step=1)

    assert ["OK"] * 2 == [answer.code for answer in answers]
    assert 0 == before[forwarded]
    assert before["tracegrade_spans_received_total"] == after["tracegrade_spans_received_total"] > 0
