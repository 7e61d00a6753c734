"""The service with processes that grade: one set of books, whatever happens to them."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from collector.otlp import join_spans
from processors.model import JsonObject, JsonValue
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

CRITERIA = """
agents:
  clerk:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {refund: ["=", 1]}}}
"""
TRACES = 240
SPANS = 2
_WORKER = b"collector.grading.grading_worker"


def settings(folder: Path) -> JsonObject:
    return {
        "processors": {
            "evaluation": {"processes": 2},
            "group_by_trace": {"root_grace": "200ms", "max_lateness": "1000000h"},
        },
        "journal": {"directory": str(folder / "journal"), "on_shutdown": "drain"},
        "service": {"shutdown_timeout": "90s"},  # a process that was replaced may not have started yet
    }


def grading_processes(service: ServiceProcess) -> list[int]:
    """The ids of the processes that the service grades in."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if _WORKER in (folder / "cmdline").read_bytes():
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == service.process.pid:
                    found.append(int(folder.name))
        except OSError:
            continue  # it is gone
    return found


async def _send(service: ServiceProcess, numbers: range) -> None:
    body = join_spans([agent(1, None, "clerk"), tool(2, 1, "refund")])
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        for number in numbers:
            answer = await sender.send(body.replace(TRACE_ID, number.to_bytes(16)))
            assert "OK" == answer.code


def _evaluations(run: JsonObject) -> list[JsonValue]:
    evaluations = run["evaluations"]
    assert isinstance(evaluations, list)
    return evaluations


@pytest.mark.slow
async def test_killed_processes_and_a_reload_lose_nothing_and_turn_no_verdict_around(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, settings(tmp_path), CRITERIA) as service:
        await service.until(lambda: len(grading_processes(service)) == 2)
        sending = asyncio.create_task(_send(service, range(1, TRACES // 2)))
        await service.until(lambda: len(service.results()) > 10)
        (killed, _) = grading_processes(service)
        os.kill(killed, signal.SIGKILL)
        await sending
        await service.until(lambda: len(service.results()) == TRACES // 2 - 1)
        service.criteria_path.write_text(CRITERIA.replace('"=", 1', '">", 1'))
        service.signal(signal.SIGHUP)
        await service.until(lambda: "Criteria are reloaded." in "".join(service.log))
        await service.until(lambda: len(grading_processes(service)) == 2)
        await _send(service, range(TRACES // 2, TRACES))
        await service.until(lambda: len(service.results()) >= TRACES // 2)
        os.kill(grading_processes(service)[0], signal.SIGKILL)
        assert 0 == await service.stop()
        assert [] == grading_processes(service)

    runs = {str(run["trace_id"]): run for run in service.results()}
    assert TRACES - 1 == len(runs) == len(service.results())
    verdicts: dict[bool, set[tuple[JsonValue, JsonValue]]] = {False: set(), True: set()}
    for trace_id, run in runs.items():
        (found,) = _evaluations(run)
        assert isinstance(found, dict)
        verdicts[int(trace_id, 16) >= TRACES // 2].add((found["outcome"], found["criteria_hash"]))
    assert ["pass"] == [outcome for outcome, _ in verdicts[False]]
    # What had not waited its grace out when the service was stopped is not evaluated.
    assert {"fail"} <= {outcome for outcome, _ in verdicts[True]} <= {"fail", "not_evaluated"}
    assert 2 == len({criteria_hash for found in verdicts.values() for _, criteria_hash in found})
    assert SPANS * (TRACES - 1) == str(service.exported_requests()).count("'spanId'")
    assert TRACES - 1 == str(service.exported_requests()).count("'gen_ai.evaluation.result'")


async def test_a_trace_over_which_process_after_process_ends_leaves_with_errors(tmp_path: Path) -> None:
    changed = settings(tmp_path)
    changed["processors"] = {
        "evaluation": {"processes": 2},
        "group_by_trace": {"max_spans_per_trace": 100_000, "root_grace": "100ms", "max_lateness": "1000000h"},
    }
    spans = [agent(1, None, "clerk"), *(tool(number, 1, "refund") for number in range(2, 100_000))]
    async with ServiceProcess(tmp_path, changed, CRITERIA) as service:
        await service.until(lambda: len(grading_processes(service)) == 2)
        # Who has used more than it takes to start is grading the one large trace there is.
        limit = 1.2 * max([await _cpu_seconds_to_start(pid) for pid in grading_processes(service)]) + 0.4
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            assert "OK" == (await sender.send(join_spans(spans))).code
        async with asyncio.timeout(120):
            while not (samples := await service.metrics())["tracegrade_traces_quarantined_total"]:
                for pid in grading_processes(service):
                    if _cpu_seconds(pid) > limit:
                        os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0.05)
        await service.until(lambda: len(service.results()) == 1)
        await service.until(lambda: len(spans) == service.spans_path.read_text().count('"spanId"'))

    assert 3 == samples['tracegrade_worker_failures_total{reason="grading_died"}']
    (run,) = service.results()
    (verdict,) = _evaluations(run)
    assert isinstance(verdict, dict)
    assert ("error", "quarantined") == (verdict["outcome"], verdict["error_type"])
    assert 1 == service.spans_path.read_text().count('"gen_ai.evaluation.result"')


async def _cpu_seconds_to_start(pid: int) -> float:
    """What a process has used when it waits for its first trace."""
    used = -1.0
    while (now := _cpu_seconds(pid)) > used or not now:
        used = now
        await asyncio.sleep(1.0)
    return used


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it is gone
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_on_sigterm_what_processes_are_at_leaves_in_time(tmp_path: Path) -> None:
    """A trace that takes them longer than the service may wait leaves unchanged, and is counted."""
    changed = settings(tmp_path)
    changed["service"] = {"shutdown_timeout": "3s"}
    changed["journal"] = None
    spans = [agent(1, None, "clerk"), *(tool(number, 1, "refund") for number in range(2, 3000))]
    async with ServiceProcess(tmp_path, changed, CRITERIA) as service:
        await service.until(lambda: len(grading_processes(service)) == 2)
        for pid in grading_processes(service):
            os.kill(pid, signal.SIGSTOP)
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            assert "OK" == (await sender.send(join_spans(spans))).code
        samples: dict[str, float] = {}
        async with asyncio.timeout(60):
            while not samples.get('tracegrade_traces_finished_total{reason="root"}'):
                samples = await service.metrics()
                await asyncio.sleep(0.05)
        assert len(spans) == samples['tracegrade_spans_held{exporter=""}']
        assert 0 == samples['tracegrade_accounting_error_spans{exporter="file"}']
        began = asyncio.get_running_loop().time()
        assert 0 == await service.stop()
        assert asyncio.get_running_loop().time() - began < 30

    assert len(spans) == str(service.exported_requests()).count("'spanId'")
    assert [] == service.results()
    assert [] == grading_processes(service)
