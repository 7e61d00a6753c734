"""Sizing measures a scratch service, and reaches and writes nothing of the user's."""

import time
from pathlib import Path

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.__main__ import main
from benchmarks.child_process import MeasurementRefused
from benchmarks.scratch_service import scratch_configuration
from benchmarks.sizing import size
from benchmarks.sizing_traffic import recorded_traffic, scripted_traffic
from collector.configuration.service_file import load_configuration
from collector.otlp.codec import join_spans, split_request
from processors.documents import InvalidInput
from processors.model.json_values import JsonObject
from tests.support.agent_spans import TRACE_ID, agent
from tests.support.backends import GrpcBackend


def write_config(folder: Path, endpoint: str) -> Path:
    config: JsonObject = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:4317", "server": "uvicorn"}}}},
        "processors": {
            "group_by_trace": {"root_grace": "5s", "idle_timeout": "1s"},
            "evaluation": {"criteria": ["criteria.yaml"]},
        },
        "exporters": {
            "otlp": {"endpoint": endpoint, "tls": {"insecure": True}},
            "results_file": {"path": "verdicts.runs.jsonl"},
        },
        "journal": {"directory": "journal"},
        "store": {"path": "runs.db"},
        "service": {"dead_letters": {"path": "dead.jsonl"}},
    }
    check: JsonObject = {
        "evaluator": "tool-call-count",
        "criteria": {"tool_calls_count": {"find_order": ["==", 1]}},
    }
    agents: JsonObject = {name: {"evaluations": [check]} for name in ("first", "second")}
    (folder / "criteria.yaml").write_text(yaml.safe_dump({"agents": agents}))
    (folder / "tracegrade.yaml").write_text(yaml.safe_dump(config))
    return folder / "tracegrade.yaml"


async def test_sizing_gives_figures_and_touches_nothing(tmp_path: Path) -> None:
    backend = GrpcBackend()
    await backend.start()
    path = write_config(tmp_path, backend.endpoint)
    before = {file.name for file in tmp_path.iterdir()}
    steps: list[str] = []

    figures = size(path, lambda: scripted_traffic(["first", "second"]), 3.0, steps.append)
    await backend.stop()

    assert 0 == backend.attempts
    assert before == {file.name for file in tmp_path.iterdir()}
    assert 10 < figures.cpu_micros_per_span < 100_000
    assert 13 == figures.spans_per_trace
    assert 1000 < figures.bytes_per_span < 3000
    assert 20 < figures.start_mib <= figures.peak_mib
    assert any("spans/s for" in line for line in steps)
    assert ["CPU", "Rate", "Memory"] == [line.split()[0] for line in figures.lines()]


def test_a_scratch_service_keeps_what_costs_and_loses_what_is_the_users(tmp_path: Path) -> None:
    config = load_configuration(write_config(tmp_path, "backend.example:4317"), {})

    scratch = scratch_configuration(config, "127.0.0.1:1", tmp_path / "scratch")

    assert config.criteria_patterns() == scratch.criteria_patterns()
    assert config.results == scratch.results
    assert ("127.0.0.1:0", "uvicorn") == (
        scratch.receivers.otlp.protocols.grpc.endpoint,
        scratch.receivers.otlp.protocols.grpc.server,
    )
    assert ["otlp"] == list(scratch.exporters)
    assert "127.0.0.1:1" == scratch.exporters["otlp"].endpoint  # type: ignore[attr-defined]
    assert scratch.journal is not None
    assert tmp_path / "scratch" / "journal" == scratch.journal.directory
    assert tmp_path / "scratch" / "runs.db" == scratch.store.path
    assert scratch.service.dead_letters is None
    assert (0.5, 1.0) == (
        scratch.processors.group_by_trace.root_grace,
        scratch.processors.group_by_trace.idle_timeout,
    )


def test_recorded_traffic_is_sent_as_new_traces_that_begin_now(tmp_path: Path) -> None:
    spans = [agent(number, None, "first") for number in range(1, 8)]
    (tmp_path / "recorded.binpb").write_bytes(join_spans(spans))

    traffic = recorded_traffic([tmp_path], spans_a_request=3)

    assert ([3, 3, 1], 7, 1) == (
        [request.spans for request in traffic.requests],
        traffic.spans,
        traffic.traces,
    )
    seen = set()
    for number in range(3):
        passes = [split_request(request.for_pass(number)) for request in traffic.requests]
        seen |= {trace_id for request in passes for trace_id in request.traces}
        assert {span[0] for span in spans} == {
            span[0] for request in passes for found in request.traces.values() for span in found
        }
    assert 3 == len(seen)
    assert {TRACE_ID[4:]} == {trace_id[4:] for trace_id in seen}
    assert abs(time.time_ns() - _start(traffic.requests[0].body)) < 60e9
    with pytest.raises(InvalidInput, match="no such file"):
        recorded_traffic([tmp_path / "missing"])


def test_a_service_that_does_not_start_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MeasurementRefused, match=r"missing\.yaml"):
        size(tmp_path / "missing.yaml", lambda: scripted_traffic(["first"]), 3.0, lambda _: None)
    monkeypatch.setattr("sys.argv", ["benchmarks", "sizing", "--seconds", "5"])
    with pytest.raises(SystemExit):
        main()
    assert "5 is not between 10 and 600" in capsys.readouterr().err


def _start(body: bytes) -> int:
    request = ExportTraceServiceRequest.FromString(body)
    return request.resource_spans[0].scope_spans[0].spans[0].start_time_unix_nano
