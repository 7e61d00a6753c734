"""The process as operators meet it: starting, reloading, being stopped, paused and asked how it is."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from collector.otlp import join_spans, split_request
from processors.model import JsonObject, JsonValue
from tests.support.backends import ACCEPT, Answer, GrpcBackend, HttpBackend, span_ids
from tests.support.corpus import recorded_requests
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

LONG_AGO: JsonObject = {"processors": {"group_by_trace": {"max_lateness": "1000000h"}}}

CRITERIA = """
agents:
  weather_agent:
    evaluations:
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {get_temperature: ["=", 1]}}
"""

BODIES = recorded_requests("pydantic_ai", "s1")


def _span_count(bodies: list[bytes]) -> int:
    return sum(split_request(body).accepted for body in bodies)


def _evaluations(runs: list[JsonObject]) -> list[JsonObject]:
    found: list[JsonObject] = []
    for run in runs:
        evaluations = run["evaluations"]
        assert isinstance(evaluations, list)
        found.extend(evaluation for evaluation in evaluations if isinstance(evaluation, dict))
    return found


async def _send(service: ServiceProcess, bodies: list[bytes]) -> None:
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        for body in bodies:
            assert "OK" == (await sender.send(body)).code


async def _tracegrade(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "collector.cli", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


@pytest.mark.parametrize("server", ["grpcio", "uvicorn"])
async def test_on_sigterm_what_is_held_is_delivered_and_the_exit_code_is_0(
    tmp_path: Path, server: str
) -> None:
    settings: JsonObject = {
        "receivers": {"otlp": {"protocols": {"grpc": {"server": server}}}},
        "processors": {"group_by_trace": {"root_grace": "1h", "max_lateness": "1000000h"}},
    }
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        await _send(service, BODIES)

        assert 0 == await service.stop()

    assert {"shutdown"} == {run["finish_reason"] for run in service.results()}
    assert {"not_evaluated"} == {evaluation["outcome"] for evaluation in _evaluations(service.results())}
    assert _span_count(BODIES) == str(service.exported_requests()).count("'spanId'")


async def test_criteria_follow_their_file_and_a_bad_file_takes_nothing_away(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, LONG_AGO, CRITERIA) as service:
        good = "tracegrade_criteria_last_reload_successful"
        assert 1 == (await service.metrics())[good]

        service.criteria_path.write_text(CRITERIA.replace("tool-call-count", "tool-call-cuont"))
        service.signal(signal.SIGHUP)
        await service.until(lambda: any("tool-call-cuont" in line for line in service.log))
        assert 0 == (await service.metrics())[good]
        await _send(service, recorded_requests("pydantic_ai", "s1"))
        await service.until(lambda: len(service.results()) == 1)
        assert ["tool-call-count"] == [e["name"] for e in _evaluations(service.results())]

        service.criteria_path.write_text(
            CRITERIA.replace("- evaluator", "- name: renamed\n        evaluator")
        )
        await service.until(lambda: any("Criteria are reloaded" in line for line in service.log))
        await _send(service, recorded_requests("pydantic_ai", "s2"))
        await service.until(lambda: len(service.results()) == 2)
        assert "renamed" == _evaluations(service.results())[-1]["name"]
        assert 1 == (await service.metrics())[good]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2, 6])
async def test_a_pause_in_the_middle_of_a_trace_never_turns_a_verdict_around(
    tmp_path: Path, seconds: int
) -> None:
    singles = [
        join_spans([span])
        for body in BODIES
        for spans in split_request(body).traces.values()
        for span in spans
    ]
    root_first = singles[::-1]  # the trace looks whole at every point of it
    async with (
        ServiceProcess(tmp_path, LONG_AGO, CRITERIA) as service,
        GrpcSender(service.endpoints["grpc"]) as sender,
    ):
        assert "OK" == (await sender.send(root_first[0])).code
        service.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        service.signal(signal.SIGCONT)
        for body in root_first[1:]:
            assert "OK" == (await sender.send(body)).code
        await service.until(lambda: len(service.results()) == 1)
        metrics = await service.metrics()
        assert 0 == await service.stop()

    assert {"pass"} >= {e["outcome"] for e in _evaluations(service.results())} - {"not_evaluated"}
    assert 0 == metrics["tracegrade_late_spans_total"]
    assert seconds - 1 < metrics["tracegrade_finish_clock_standstill_seconds_total"]


@pytest.mark.parametrize("kind", ["otlp", "otlp_http"])
async def test_a_backend_that_comes_late_gets_every_span_once(tmp_path: Path, kind: str) -> None:
    is_down = True

    def answer(_: bytes) -> Answer:
        return Answer("unavailable") if is_down else ACCEPT

    backend = GrpcBackend(answer) if kind == "otlp" else HttpBackend(answer)
    await backend.start()
    endpoint = backend.endpoint if kind == "otlp" else f"http://{backend.endpoint.removeprefix('http://')}"
    exporter: JsonValue = {"endpoint": endpoint, "retry_on_failure": {"initial_interval": "100ms"}}
    if kind == "otlp":
        exporter = {**exporter, "tls": {"insecure": True}} if isinstance(exporter, dict) else exporter
    try:
        async with ServiceProcess(tmp_path, {"exporters": {kind: exporter}}, CRITERIA) as service:
            await _send(service, BODIES)
            await service.until(lambda: any("Spans cannot be delivered now" in line for line in service.log))
            is_down = False
            await service.until(lambda: len(span_ids(backend.requests)) == _span_count(BODIES))
            metrics = await service.metrics()
            assert 0 == await service.stop()
    finally:
        await backend.stop()

    sent = [span[0] for body in BODIES for spans in split_request(body).traces.values() for span in spans]
    assert sorted(sent) == sorted(span_ids(backend.requests))
    assert 0 == metrics[f'tracegrade_accounting_error_spans{{exporter="{kind}"}}']
    assert b"gen_ai.evaluation.result" in b"".join(backend.requests)


async def test_health_tells_whether_the_service_takes_requests(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, criteria=CRITERIA) as service:
        endpoint = service.endpoints["telemetry"]

        assert 0 == (await _tracegrade("health", "--endpoint", endpoint))[0]

    code, _, errors = await _tracegrade("health", "--endpoint", endpoint)
    assert 1 == code
    assert f"no answer from http://{endpoint}/readyz" in errors


async def test_a_port_in_use_is_one_readable_line(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, criteria=CRITERIA) as service:
        (tmp_path / "second").mkdir()
        grpc = service.endpoints["grpc"]
        config = tmp_path / "second" / "tracegrade.yaml"
        config.write_text(
            "receivers: {otlp: {protocols: {grpc: {endpoint: '" + grpc + "'}}}}\n"
            "service: {telemetry: {endpoint: '127.0.0.1:0'}}\n"
        )

        code, _, errors = await _tracegrade("run", "--config", str(config))

    assert 2 == code
    assert 1 == len(errors.strip().splitlines()), errors
    assert errors.startswith("tracegrade cannot start: ")
    assert grpc.rpartition(":")[2] in errors


async def test_all_mistakes_of_a_configuration_are_told_at_once(tmp_path: Path) -> None:
    config = tmp_path / "tracegrade.yaml"
    config.write_text(
        "receivers: {otlp: {protocols: {grpc: {endpont: '127.0.0.1:0'}}}}\n"
        "processors:\n"
        "  group_by_trace: {root_grace: 2}\n"
        "exporters:\n"
        "  oltp: {endpoint: 'x:1'}\n"
        "journal: {directory: here, fsnyc: always}\n"
    )

    code, _, errors = await _tracegrade("run", "--config", str(config))

    assert 2 == code
    lines = errors.strip().splitlines()
    assert 4 == len(lines), errors
    for line, number, words in zip(
        lines, (1, 3, 5, 6), ("endpoint", "duration", "otlp", "journal"), strict=True
    ):
        assert line.startswith(f"{config}:{number}: ")
        assert words in line
