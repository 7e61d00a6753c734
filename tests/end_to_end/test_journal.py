"""kill -9 with the journal on: what was acknowledged is graded once, and delivered."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.journal.activity import Activity
from collector.otlp import join_spans, split_request
from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.telemetry import Metrics
from processors.model import JsonObject, time_text
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.backend_server import free_port
from tests.support.otlp_senders import GrpcSender, SpanSink
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

    # Where the machine was so busy that senders may have given up meanwhile, that is said instead.
    was_long = metrics['tracegrade_traces_interrupted_total{reason="outage"}']
    assert {1: "pass", 2: "not_evaluated" if was_long else "pass"} == _outcomes(service)
    assert 4 == metrics['tracegrade_spans_recovered_total{exporter=""}']
    assert 1 == after['tracegrade_spans_dropped_total{exporter="",reason="duplicate"}']
    assert 0 == after['tracegrade_accounting_error_spans{exporter="file"}']


async def test_a_trace_over_which_the_process_crashes_twice_leaves_with_errors(tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    spans = [agent(1, None, "shop", (now - 900, now)), agent(2, 1, "clerk", (now - 800, now))]
    spans += [tool(number, 2, f"tool_{number}", (now - 700, now - 600)) for number in range(3, 40_000)]
    settings: JsonObject = {
        **JOURNAL,
        "processors": {"group_by_trace": {"max_spans_per_trace": 50_000, "root_grace": "100ms"}},
    }
    for crash in (1, 2):
        async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
            if crash == 1:
                await _send(service, *spans)
            await service.until(lambda: _is_in_work(tmp_path / "journal"))
            service.signal(signal.SIGKILL)
            await service.wait()
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await service.until(lambda: len(service.results()) == 2)
        await asyncio.sleep(0.5)  # that they were delivered is written as well; else they come again
        metrics = await service.metrics()
        service.signal(signal.SIGKILL)
        await service.wait()
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        after = await service.metrics()

    runs: Any = service.results()
    told = [(run["agent"]["name"], run["evaluations"]) for run in runs]
    assert ["shop", "clerk"] == [agent for agent, _ in told]
    (verdict,) = told[0][1]
    assert ("error", "quarantined") == (verdict["outcome"], verdict["error_type"])
    assert 1 == metrics["tracegrade_traces_quarantined_total"]
    results = [
        name for name in metrics if name.startswith("gen_ai_evaluation_results_total") and metrics[name]
    ]
    assert len(results) == 1
    assert 'gen_ai_evaluation_score_label="error"' in results[0]
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="file"}']
    assert 0 == after["tracegrade_traces_quarantined_total"]


def _is_in_work(journal: Path) -> bool:
    with suppress(FileNotFoundError), closing(Activity(journal)) as activity:
        return bool(activity.open().in_work)
    return False


async def test_a_trace_that_was_graded_is_delivered_after_a_crash_as_it_was_graded(tmp_path: Path) -> None:
    backend = f"127.0.0.1:{free_port()}"
    settings: JsonObject = {
        **JOURNAL,
        "exporters": {"otlp": {"endpoint": backend, "tls": {"insecure": True}}},
    }
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        now = time.time()
        await _send(service, *_trace(1, now - 0.1, now))
        await service.until(lambda: len(service.results()) == 1)  # the files have it, the backend is down
        await asyncio.sleep(0.5)
        service.signal(signal.SIGKILL)
        await service.wait()
    sink = SpanSink()
    receiver = OtlpGrpcReceiver(GrpcServerConfig(endpoint=backend), sink, Metrics())
    await receiver.start()
    try:
        async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
            await service.until(lambda: sink.spans == 3)
            metrics = await service.metrics()
    finally:
        await receiver.shutdown(time.monotonic())

    (line,) = service.results()  # not written again: this exporter had it
    spans = [Span.FromString(span[1]) for body in sink.bodies for span in _spans(body)]
    (event,) = (event for span in spans for event in span.events)
    told = {each.key: each.value.string_value for each in event.attributes}
    assert line["instance"] == told["tracegrade.instance"]
    assert line["graded_time"] == time_text(event.time_unix_nano)
    assert 3 == metrics['tracegrade_spans_recovered_total{exporter="otlp"}']
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="file"}']


@pytest.mark.parametrize("on_shutdown", ["keep", "drain"])
async def test_sigterm_leaves_unfinished_traces_to_the_next_process_or_finishes_them(
    tmp_path: Path, on_shutdown: str
) -> None:
    settings: JsonObject = {"journal": {"directory": "journal", "on_shutdown": on_shutdown}}
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        now = time.time()
        await _send(service, _trace(1, now, now + 1)[0])
        assert 0 == await service.stop()
    if on_shutdown == "drain":
        assert ["shutdown"] == [run["finish_reason"] for run in service.results()]
        assert (
            "0 undelivered spans of 0 traces"
            in _tracegrade("journal", "--inspect", str(tmp_path / "journal")).stdout
        )
        return
    assert not service.results()
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await _send(service, *_trace(1, now, now + 1)[1:])
        await service.until(lambda: bool(service.results()))
        metrics = await service.metrics()
    # Where the machine was so busy that senders may have given up meanwhile, that is said instead.
    was_long = metrics['tracegrade_traces_interrupted_total{reason="outage"}']
    assert {1: "not_evaluated" if was_long else "pass"} == _outcomes(service)


async def test_a_damaged_journal_is_told_and_its_spans_can_be_saved_and_graded(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, JOURNAL, CRITERIA) as service:
        now = time.time()
        for number in range(1, 4):
            await _send(service, *_trace(number, now, now + 1))
        service.signal(signal.SIGKILL)
        await service.wait()
    data = tmp_path / "journal" / "data.mdb"
    content = bytearray(data.read_bytes())
    second, place = b"\n\x10" + (2).to_bytes(16, "big"), -1
    while (place := content.find(second, place + 1)) >= 0:
        content[place + 20] ^= 1  # in the request that brought it, and in pages that hold older ones
    data.write_bytes(content)

    refused = _tracegrade("run", "--config", str(service.config_path))
    assert 2 == refused.returncode
    assert "is damaged" in refused.stderr
    assert "Traceback" not in refused.stderr
    saved = tmp_path / "saved.jsonl"
    salvaged = _tracegrade("journal", "--salvage", str(tmp_path / "journal"), str(saved))
    assert 1 == salvaged.returncode
    assert "damaged: 1 records" in salvaged.stderr
    replayed = _tracegrade(
        *("replay", "--criteria", str(service.criteria_path), "--format", "json", str(saved))
    )
    runs = [json.loads(line) for line in replayed.stdout.splitlines()]
    assert [1, 3] == [int(run["trace_id"], 16) for run in runs]
    assert ["pass", "pass"] == [run["evaluations"][0]["outcome"] for run in runs]


def _tracegrade(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "collector.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def _spans(body: bytes) -> list[RawSpan]:
    return [span for spans in split_request(body).traces.values() for span in spans]


async def test_a_restart_with_a_broken_criteria_file_grades_by_its_last_good_version(tmp_path: Path) -> None:
    good = "tracegrade_criteria_last_reload_successful"
    async with ServiceProcess(tmp_path, JOURNAL, CRITERIA) as service:
        stale = f'tracegrade_criteria_file_stale{{file="{service.criteria_path}"}}'
        assert 0 == (await service.metrics())[stale]
        await asyncio.sleep(2)  # no sender waits for it, so that it is written with what comes next, or soon
        service.signal(signal.SIGKILL)
        await service.wait()

    for number, broken in enumerate((CRITERIA.replace("tool-call-count", "tool-call-cuont"), "agents: ["), 1):
        async with ServiceProcess(tmp_path, JOURNAL, broken) as service:
            metrics = await service.metrics()
            now = time.time()
            await _send(service, *_trace(number, now, now + 0.1))
            await service.until(lambda: number in _outcomes(service))  # noqa: B023

            assert (1, 0) == (metrics[stale], metrics[good])
            assert any("last good version" in line for line in service.log)
            assert 0 == await service.stop()

    async with ServiceProcess(tmp_path, JOURNAL, CRITERIA) as service:
        metrics = await service.metrics()

    assert {1: "pass", 2: "pass"} == _outcomes(service)
    assert (0, 1) == (metrics[stale], metrics[good])


async def test_a_broken_criteria_file_that_was_never_good_keeps_the_service_from_starting(
    tmp_path: Path,
) -> None:
    async with ServiceProcess(tmp_path, JOURNAL, CRITERIA) as service:
        assert 0 == await service.stop()

    broken = ServiceProcess(tmp_path, JOURNAL, CRITERIA)
    other = tmp_path / "other.yaml"
    other.write_text("agents: [")
    broken.config_path.write_text(
        broken.config_path.read_text().replace("- criteria.yaml", "- criteria.yaml\n    - other.yaml")
    )
    ended = subprocess.run(
        [sys.executable, "-m", "collector.cli", "run", "--config", str(broken.config_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert 2 == ended.returncode
    assert f"{other}:" in ended.stderr
