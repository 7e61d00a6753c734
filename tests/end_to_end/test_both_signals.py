"""Agents whose content is in log records are graded with it, in whatever order the two signals come.

The service is the real one; what is sent are requests recorded from real packages.
"""

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.buffer.finish_clock import OUTAGE_SECONDS
from collector.criteria import default_file, load_criteria
from collector.otlp import logs_json_to_request, split_records, split_request
from collector.recordings import RecordedStream
from processors.annotation import format_run
from processors.spans import LogRecord, read_span_head
from tests.support import both_signals
from tests.support.backends import ACCEPT, Answer, GrpcBackend
from tests.support.both_signals import BOTH_SIGNALS, expected_runs, requests
from tests.support.otlp_senders import GrpcSender, HttpSender
from tests.support.service_in_loop import ServiceInLoop
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

NAMES = ("adot_strands", "claude_code", "codex", "genai_langchain", "genai_openai", "semantic_kernel")

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: "127.0.0.1:0"}}}}}}}}
processors:
  group_by_trace: {{root_grace: 2s, multi_service_grace: 2s, incomplete_grace: 2s, idle_timeout: 9s}}
exporters: {{results_file: {{path: "{results}"}}, file: {{path: "{spans}", logs_path: "{logs}"}}}}
results: {{mode: {mode}, emit: [{emit}]}}
service: {{telemetry: {{endpoint: "127.0.0.1:0", self_check: {{enabled: false}}}}, shutdown_timeout: 20s}}
"""

Step = tuple[str, bytes]
"""Signal and request."""


def _first_record(bodies: Sequence[bytes]) -> int:
    """When the first of the log records was written."""
    records = [record for body in bodies for record in split_records(body).records]
    return min(LogRecord(payload, envelope).unix_nano for _, payload, envelope in records)


def _begin(bodies: Sequence[bytes]) -> int:
    """When the first of the spans began."""
    return min(
        read_span_head(payload)[2]
        for body in bodies
        for spans in split_request(body).traces.values()
        for _, payload, _ in spans
    )


@asynccontextmanager
async def _service(
    folder: Path, unix_nano: int, mode: str = "hold", emit: str = "log"
) -> AsyncIterator[ServiceInLoop]:
    folder.mkdir()
    configuration = _CONFIGURATION.format(
        results=folder / "runs.jsonl",
        spans=folder / "spans.jsonl",
        logs=folder / "logs.jsonl",
        mode=mode,
        emit=emit,
    )
    async with ServiceInLoop(configuration, unix_nano) as service:
        yield service


async def _graded(
    folder: Path, steps: Sequence[Step], unix_nano: int, mode: str = "hold", emit: str = "log"
) -> tuple[list[Any], dict[str, float]]:
    """What is graded of the requests: calls and verdicts of each run; and the metrics at the end."""
    async with _service(folder, unix_nano, mode, emit) as service:
        async with (
            GrpcSender(service.endpoints["grpc"]) as over_grpc,
            HttpSender(service.endpoints["http"]) as over_http,
        ):
            for number, (signal_name, body) in enumerate(steps):
                sender = over_http if number % 2 else over_grpc
                assert "OK" == (await sender.send(body, signal=signal_name)).code
        # What is graded is held until it is written.
        metrics = await service.until(
            lambda samples: samples["tracegrade_traces_held"] == samples["tracegrade_held_bytes"] == 0,
            step=0.5,
        )
    runs = [json.loads(line) for line in (folder / "runs.jsonl").read_bytes().splitlines()]
    return _shown(runs), metrics


def _shown(runs: Sequence[Any]) -> list[Any]:
    shown = [
        (
            run["span_id"] or "",
            run["agent"]["name"],
            [
                (call["name"], call["arguments_text"], call["result_text"], bool(call["error"]))
                for call in run["tool_calls"]
            ],
            run["output"],
            sorted((each["name"], each["outcome"], each["reason"] or "") for each in run["evaluations"]),
        )
        for run in runs
    ]
    return sorted(shown, key=str)


def _interleavings(name: str) -> dict[str, list[Step]]:
    spans: list[Step] = [("traces", body) for body in requests(name, "traces")]
    logs: list[Step] = [("logs", body) for body in requests(name, "logs")]
    mixed: list[Step] = []
    for place in range(max(len(spans), len(logs))):
        mixed += logs[place : place + 1] + spans[place : place + 1]
    return {
        "logs first": logs + spans,
        "logs last": spans + logs,
        "mixed": mixed,
        "doubled": [step for step in mixed for _ in range(2)],
        "in pieces": spans[:1] + [piece for step in logs for piece in _pieces(step)] + spans[1:],
    }


def _pieces(step: Step) -> list[Step]:
    """A request with log records as one request for each of them."""
    pieces: list[Step] = []
    for of_resource in ExportLogsServiceRequest.FromString(step[1]).resource_logs:
        for of_scope in of_resource.scope_logs:
            for record in of_scope.log_records:
                request = ExportLogsServiceRequest(resource_logs=[of_resource])
                del request.resource_logs[0].scope_logs[:]
                request.resource_logs[0].scope_logs.add().CopyFrom(of_scope)
                del request.resource_logs[0].scope_logs[0].log_records[:]
                request.resource_logs[0].scope_logs[0].log_records.append(record)
                pieces.append(("logs", request.SerializeToString()))
    return pieces


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in NAMES else pytest.mark.slow)
        for name in both_signals.NAMES
        if requests(name, "traces")
    ],
)
async def test_verdicts_do_not_depend_on_the_order_of_the_signals(name: str, tmp_path: Path) -> None:
    begin = _begin(requests(name, "traces")) - 1_000_000_000
    alone, _ = await _graded(
        tmp_path / "alone", [("traces", body) for body in requests(name, "traces")], begin
    )
    graded = {}
    for order, steps in _interleavings(name).items():
        graded[order], metrics = await _graded(tmp_path / order.replace(" ", "_"), steps, begin)
        assert 0 == metrics['tracegrade_accounting_error_log_records{exporter="file"}']
        assert 0 == metrics['tracegrade_accounting_error_spans{exporter="file"}']
        sent = sum(len(split_records(body).records) for signal_name, body in steps if signal_name == "logs")
        assert sent == metrics["tracegrade_log_records_received_total"]

    first = graded["logs first"]
    assert first
    assert all(first == each for each in graded.values())
    assert alone != first or name not in NAMES  # of some, records repeat what spans have


@pytest.mark.parametrize("mode", ["stream", "verdicts_only"])
async def test_the_other_modes_give_the_same_verdicts(mode: str, tmp_path: Path) -> None:
    steps = _interleavings("genai_openai")["mixed"]
    begin = _begin(requests("genai_openai", "traces")) - 1_000_000_000

    held, _ = await _graded(tmp_path / "hold", steps, begin)
    other, _ = await _graded(tmp_path / mode, steps, begin, mode)

    assert held == other


@pytest.mark.parametrize("name", ["claude_code_logs_alone", "qwen_code_logs_alone"])
@pytest.mark.parametrize("emit", ["log", "span_event"])
async def test_log_records_without_a_trace_make_a_run(name: str, emit: str, tmp_path: Path) -> None:
    bodies = requests(name, "logs")
    steps: list[Step] = [("logs", body) for body in bodies]
    folder = tmp_path / "once"

    graded, metrics = await _graded(folder, steps, _first_record(bodies) - 1_000_000_000, emit=emit)
    doubled, _ = await _graded(
        tmp_path / "doubled",
        [piece for step in reversed(steps) for piece in reversed(_pieces(step)) for _ in range(2)],
        _first_record(bodies) - 1_000_000_000,
    )

    (run,) = graded
    assert [(call["name"], call["arguments"]) for call in expected_runs(name)[0]["calls"]] == [
        (call, json.loads(arguments)) for call, arguments, *_ in run[2]
    ]
    assert graded == doubled
    stream = RecordedStream()
    assert [] == stream.read([BOTH_SIGNALS / name / "logs"])
    criteria = load_criteria([default_file("criteria/default.yaml")], environment={})
    assert graded == _shown([json.loads(format_run(item)) for item in stream.grade(criteria)])
    # It is a run as any, and its verdicts leave as log records: there is no span that they could be on.
    exported = [
        record
        for line in (folder / "logs.jsonl").read_bytes().splitlines()
        for _, record, _ in split_records(logs_json_to_request(line)).records
    ]
    verdicts = [record for record in exported if LogRecord(record).name == "gen_ai.evaluation.result"]
    assert len(verdicts) == len([each for each in run[4] if each[2] != "no_criteria"]) > 0
    assert len(exported) - len(verdicts) == sum(len(split_records(body).records) for body in bodies)
    assert not (folder / "spans.jsonl").exists() or not (folder / "spans.jsonl").read_bytes()
    assert 1 == metrics['tracegrade_traces_finished_total{reason="idle"}']
    assert 0 == metrics["tracegrade_log_records_awaiting_verdict"] == metrics["tracegrade_held_bytes"]
    assert 0 == metrics['tracegrade_accounting_error_log_records{exporter="file"}']


def _recent_spans(name: str) -> list[Step]:
    """The spans of a recording as if they began now."""
    spans = [ExportTraceServiceRequest.FromString(body) for body in requests(name, "traces")]
    shift = time.time_ns() - _begin(requests(name, "traces"))
    for request in spans:
        for of_resource in request.resource_spans:
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    span.start_time_unix_nano += shift
                    span.end_time_unix_nano += shift
    return [("traces", request.SerializeToString()) for request in spans]


async def _send(service: ServiceProcess, steps: Sequence[Step]) -> None:
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        for signal_name, body in steps:
            assert "OK" == (await sender.send(body, signal=signal_name)).code


async def test_records_of_a_trace_outlive_the_process_until_it_is_graded(tmp_path: Path) -> None:
    settings: Any = {
        "journal": {"directory": "journal"},
        "exporters": {"file": {"path": "spans.jsonl", "logs_path": "logs.jsonl"}},
    }
    async with ServiceProcess(tmp_path, settings) as service:
        logs: list[Step] = [("logs", body) for body in requests("genai_openai", "logs")]
        await _send(service, logs)
        await service.until(lambda: _written(tmp_path) >= 1)
        await asyncio.sleep(0.3)
        service.signal(signal.SIGKILL)
        await service.wait()
    async with ServiceProcess(tmp_path, settings) as service:
        await _send(service, _recent_spans("genai_openai"))
        await service.until(lambda: len(service.results()) == 1)
        await asyncio.sleep(0.5)
        assert 0 == await service.stop()
    async with ServiceProcess(tmp_path, settings) as service:
        after = await service.metrics()
        assert 0 == await service.stop()

    (run,) = service.results()
    evaluations: Any = run["evaluations"]
    outcomes = {each["name"]: each["outcome"] for each in evaluations}
    assert "fail" == outcomes["honest-response"]
    calls: Any = run["tool_calls"]
    assert 4 == len(calls)
    assert 0 == after["tracegrade_log_records_awaiting_verdict"]
    assert 0 == after['tracegrade_log_records_recovered_total{exporter=""}']
    sent = sum(len(split_records(body).records) for _, body in logs)
    written = Counter(
        json.dumps(record)
        for line in (tmp_path / "logs.jsonl").read_bytes().splitlines()
        for of_resource in json.loads(line)["resourceLogs"]
        for of_scope in of_resource["scopeLogs"]
        for record in of_scope["logRecords"]
    )
    assert sent == len(written)


async def test_a_run_of_log_records_outlives_the_process(tmp_path: Path) -> None:
    name = "claude_code_logs_alone"
    settings: Any = {
        "processors": {"group_by_trace": {"idle_timeout": "3s"}},
        "journal": {"directory": "journal"},
        "exporters": {"file": {"path": "spans.jsonl", "logs_path": "logs.jsonl"}},
    }
    steps = [piece for body in requests(name, "logs") for piece in _pieces(("logs", body))]
    async with ServiceProcess(tmp_path, settings) as service:
        await _send(service, steps[: len(steps) // 2])
        await service.until(lambda: _written(tmp_path) >= 1)
        service.signal(signal.SIGKILL)
        await service.wait()
    async with ServiceProcess(tmp_path, settings) as service:
        await _send(service, steps[len(steps) // 2 :])
        held = await service.metrics()
        assert 0 == await service.stop()  # what is held stays in the journal
    assert [] == service.results()
    async with ServiceProcess(tmp_path, settings) as service:
        await service.until(lambda: len(service.results()) == 1)
        was_long = (await service.metrics())['tracegrade_traces_interrupted_total{reason="outage"}']
        await asyncio.sleep(0.5)
        assert 0 == await service.stop()
    async with ServiceProcess(tmp_path, settings) as service:
        after = await service.metrics()
        assert 0 == await service.stop()

    (run,) = service.results()
    evaluations: Any = run["evaluations"]
    # Where a start took so long that senders may have given up meanwhile, that is the verdict instead.
    outcome = {each["name"]: each["outcome"] for each in evaluations}["honest-response"]
    assert outcome == ("not_evaluated" if was_long else "fail")
    calls: Any = run["tool_calls"]
    assert 4 == len(calls)
    assert 0 < held["tracegrade_log_records_awaiting_verdict"] <= len(steps)
    assert 0 == after["tracegrade_log_records_awaiting_verdict"] == after["tracegrade_traces_held"]


@pytest.mark.slow
async def test_a_run_of_log_records_that_was_over_is_graded_after_a_long_restart(tmp_path: Path) -> None:
    settings: Any = {
        "processors": {"group_by_trace": {"idle_timeout": "3s"}},
        "journal": {"directory": "journal"},
    }
    sent = [("logs", body) for body in requests("claude_code_logs_alone", "logs")]
    async with ServiceProcess(tmp_path, settings) as service:
        await _send(service, sent)
        service.signal(signal.SIGKILL)
        await service.wait()
    await asyncio.sleep(OUTAGE_SECONDS + 1)
    async with ServiceProcess(tmp_path, settings) as service:
        await service.until(lambda: len(service.results()) == 1)
        samples = await service.metrics()
        assert 0 == await service.stop()

    (run,) = service.results()
    evaluations: Any = run["evaluations"]
    assert "fail" == {each["name"]: each["outcome"] for each in evaluations}["honest-response"]
    assert 0 == samples['tracegrade_traces_interrupted_total{reason="outage"}']


@pytest.mark.slow
async def test_a_run_is_interrupted_by_a_shutdown_that_takes_long(tmp_path: Path) -> None:
    backend = GrpcBackend(lambda _: Answer("unavailable"))
    await backend.start()
    settings: Any = {
        "processors": {"group_by_trace": {"idle_timeout": "3s"}},
        "journal": {"directory": "journal"},
        "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
        "service": {"shutdown_timeout": f"{OUTAGE_SECONDS + 2:g}s"},
    }
    bodies = requests("claude_code_logs_alone", "logs")
    steps = [piece for body in bodies for piece in _pieces(("logs", body))]
    async with ServiceProcess(tmp_path, settings) as service:
        await _send(service, steps[: len(steps) // 2])
        began = time.monotonic()
        assert 0 == await service.stop()  # its log records wait for the backend
        assert time.monotonic() - began > OUTAGE_SECONDS
    async with ServiceProcess(tmp_path, settings) as service:
        await _send(service, steps[len(steps) // 2 :])
        await service.until(lambda: len(service.results()) == 1)
        assert 1 == (await service.metrics())['tracegrade_traces_interrupted_total{reason="outage"}']
        assert 0 == await service.stop()
    await backend.stop()


async def test_verdicts_on_a_run_of_log_records_are_delivered_after_a_crash(tmp_path: Path) -> None:
    backend = GrpcBackend()
    await backend.start()
    backend.answer = lambda _: Answer("unavailable")
    settings: Any = {
        "processors": {"group_by_trace": {"idle_timeout": "1s"}},
        "journal": {"directory": "journal"},
        "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
    }
    bodies = requests("claude_code_logs_alone", "logs")
    async with ServiceProcess(tmp_path, settings) as service:
        await _send(service, [("logs", body) for body in bodies])
        await service.until(lambda: len(service.results()) == 1)
        await asyncio.sleep(0.5)
        service.signal(signal.SIGKILL)
        await service.wait()
    backend.answer = lambda _: ACCEPT

    def received() -> Counter[str]:
        return Counter(
            LogRecord(record).name
            for body in backend.log_requests
            for _, record, _ in split_records(body).records
        )

    async with ServiceProcess(tmp_path, settings) as service:
        await service.until(lambda: received()["gen_ai.evaluation.result"] > 0)
        assert 0 == await service.stop()
    await backend.stop()

    (run,) = service.results()
    evaluations: Any = run["evaluations"]
    assert len(evaluations) == received()["gen_ai.evaluation.result"]
    sent = sum(len(split_records(body).records) for body in bodies)
    assert sent == received().total() - len(evaluations)


def _written(folder: Path) -> int:
    path = folder / "logs.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0
