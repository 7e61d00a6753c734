"""Custom evaluators in the running service, in a replay and in `validate`."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
import yaml

from collector.cli import run_command
from collector.otlp import join_spans
from processors.model import JsonObject
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

CODE = """
import os
import time

def count(run, config, criteria):
    return len(run["tool_calls"]) == criteria["calls"], "counted"

def hang(run, config, criteria):
    with open(config["pid_file"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(3600)

def die(run, config, criteria):
    os._exit(1)
"""
CRITERIA = """
agents:
  clerk:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {refund: ["=", 1]}}}
      - {evaluator: my-count, criteria: {calls: 1}}
      - {evaluator: my-count, name: never, sample: 0.0000001, criteria: {}}
      - {evaluator: my-hang, config: {pid_file: /dev/null}}
      - {evaluator: my-death}
  other:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {refund: ["=", 1]}}}
"""


def settings(folder: Path, **evaluation: object) -> JsonObject:
    (folder / "checks.py").write_text(CODE)
    functions = {"my-count": "count", "my-hang": "hang", "my-death": "die"}
    text = json.dumps(
        {
            "processors": {
                "group_by_trace": {"max_lateness": "1000000h"},
                "evaluation": {
                    "custom_evaluators": {
                        name: {"file": "checks.py", "function": function}
                        for name, function in functions.items()
                    },
                    **evaluation,
                },
            }
        }
    )
    found: JsonObject = json.loads(text)
    return found


async def _send(service: ServiceProcess, name: str, trace_id: bytes = TRACE_ID) -> None:
    body = join_spans([agent(1, None, name), tool(2, 1, "refund")])
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        answer = await sender.send(body.replace(TRACE_ID, trace_id))
    assert "OK" == answer.code


@pytest.mark.parametrize("processes", [0, 1])
async def test_the_trace_leaves_in_time_with_all_other_results(tmp_path: Path, processes: int) -> None:
    changed = settings(tmp_path, timeout="500ms", processes=processes)
    async with ServiceProcess(tmp_path, changed, CRITERIA) as service:
        await _send(service, "clerk")
        await service.until(lambda: len(service.results()) == 1)
        await service.until(lambda: bool(service.exported_requests()))
        samples = await service.metrics()
        assert 0 == await service.stop()

    (run,) = service.results()
    evaluations = run["evaluations"]
    assert isinstance(evaluations, list)
    found = {
        str(evaluation["name"]): (evaluation["outcome"], evaluation.get("error_type"))
        for evaluation in evaluations
        if isinstance(evaluation, dict)
    }
    assert {
        "tool-call-count": ("pass", None),
        "my-count": ("pass", None),
        "my-hang": ("error", "WorkerTimeout"),
        "my-death": ("error", "WorkerDied"),
    } == found
    assert 2 == str(service.exported_requests()).count("'spanId'")
    assert 4 == str(service.exported_requests()).count("'gen_ai.evaluation.result'")
    assert 0 == samples['tracegrade_accounting_error_spans{exporter="file"}']
    assert 1 == samples['tracegrade_worker_failures_total{reason="timeout"}']


async def test_while_a_trace_awaits_a_worker_it_is_held_and_on_sigterm_it_is_delivered(
    tmp_path: Path,
) -> None:
    changed = settings(tmp_path, timeout="1h")
    changed["service"] = {"shutdown_timeout": "4s"}
    async with ServiceProcess(tmp_path, changed, CRITERIA) as service:
        await _send(service, "clerk")
        held: dict[str, float] = {}
        async with asyncio.timeout(30):
            while not held.get('tracegrade_traces_finished_total{reason="root"}'):
                held = await service.metrics()
                await asyncio.sleep(0.05)
        assert 0 == await service.stop()

    assert 2 == held['tracegrade_spans_held{exporter=""}']
    assert 0 == held['tracegrade_accounting_error_spans{exporter="file"}']
    assert 2 == str(service.exported_requests()).count("'spanId'")
    (run,) = service.results()
    text = json.dumps(run["evaluations"])
    assert 2 == text.count('"over_limit"')
    assert 2 == text.count('"pass"')


async def test_traces_without_custom_evaluations_do_not_wait_for_workers(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, settings(tmp_path, timeout="1h"), CRITERIA) as service:
        await _send(service, "clerk")
        await _send(service, "other", bytes(range(2, 18)))
        await service.until(lambda: len(service.results()) == 1)

    (run,) = service.results()
    assert {"name": "other", "id": None, "version": None} == run["agent"]


async def test_a_hanging_worker_does_not_outlive_a_service_that_was_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    criteria = CRITERIA.replace("/dev/null", str(pid_file))
    async with ServiceProcess(tmp_path, settings(tmp_path, timeout="1h"), criteria) as service:
        await _send(service, "clerk")
        await service.until(lambda: pid_file.exists() and bool(pid_file.read_text()))
        service.signal(signal.SIGKILL)
        await service.wait()

    async with asyncio.timeout(30):
        while _runs(int(pid_file.read_text())):
            await asyncio.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(") ")[2][0] != "Z"


def _files(folder: Path, criteria: str) -> list[str]:
    configuration = settings(folder)
    processors = configuration["processors"]
    assert isinstance(processors, dict)
    evaluation = processors["evaluation"]
    assert isinstance(evaluation, dict)
    evaluation["criteria"] = ["criteria.yaml"]
    (folder / "tracegrade.yaml").write_text(yaml.safe_dump(configuration))
    (folder / "criteria.yaml").write_text(criteria)
    (folder / "a.runs.jsonl").write_text('{"agent": {"name": "clerk"}, "tool_calls": [{"name": "refund"}]}\n')
    return ["--config", str(folder / "tracegrade.yaml")]


COUNT_ONLY = "agents: {clerk: {evaluations: [{evaluator: my-count, criteria: {calls: 1}}]}}\n"


def test_a_replay_asks_custom_evaluators_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = _files(tmp_path, COUNT_ONLY)

    code = run_command(["replay", *options, "--format", "json", str(tmp_path / "a.runs.jsonl")])

    (evaluation,) = json.loads(capsys.readouterr().out)["evaluations"]
    assert (0, "my-count", "pass", "counted") == (
        code,
        evaluation["evaluator"],
        evaluation["outcome"],
        evaluation["explanation"],
    )


def test_validate_runs_the_tests_of_criteria_with_custom_evaluators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = (
        "tests:\n"
        "  - name: one call\n"
        "    run: {agent: {name: clerk}, tool_calls: [{name: refund}]}\n"
        "    expect: {my-count: pass}\n"
        "  - name: no call\n"
        "    run: {agent: {name: clerk}}\n"
        "    expect: {my-count: fail}\n"
    )
    options = _files(tmp_path, COUNT_ONLY + tests)

    code = run_command(["validate", *options])

    assert 0 == code
    assert "2 of 2 tests pass" in capsys.readouterr().out


def test_validate_names_code_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = _files(tmp_path, COUNT_ONLY)
    (tmp_path / "checks.py").write_text("def hang(): pass\ndef die(): pass\n")

    code = run_command(["validate", *options])

    assert 2 == code
    assert (
        "processors.evaluation.custom_evaluators.my-count: cannot be loaded from "
        f'{tmp_path / "checks.py"}: it has no function or class "count"\n'
    ) == capsys.readouterr().err
