"""Recorded log records are read with recorded spans, in whatever files they are."""

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.cli import run_command
from collector.otlp import logs_request_to_json, request_to_json
from collector.recordings import RecordedStream
from processors.criteria import CriteriaSet, read_criteria
from processors.model import FinishReason, ModelPrice, PriceTable, TokenUsage
from processors.reconstruction import reconstruct
from processors.records import run_of_records
from tests.processors.frameworks.test_recordings import in_any_order, told
from tests.support.both_signals import BOTH_SIGNALS, expected_runs, requests, traces_in

NAME = "genai_anthropic"
(TRACES,), (LOGS,) = requests(NAME, "traces"), requests(NAME, "logs")
TRACES_JSON, LOGS_JSON = json.loads(request_to_json(TRACES)), json.loads(logs_request_to_json(LOGS))
PROTO3_JSON = MessageToDict(ExportLogsServiceRequest.FromString(LOGS))


def dumped(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def messages(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


CRITERIA = """
agents:
  weather_agent:
    evaluations:
      - evaluator: tool-call-count
        name: one-forecast
        criteria: {tool_calls_count: {get_forecast: ["=", 1], get_temperature: ["=", 2]}}
tests:
  - name: as recorded
    trace: run.jsonl
    expect: {one-forecast: pass}
"""

FORMS: Mapping[str, Callable[[], Mapping[str, bytes]]] = {
    "a request a file": lambda: {"a.binpb": TRACES, "b.binpb": LOGS},
    "logs first": lambda: {"a.binpb": LOGS, "b.binpb": TRACES},
    "doubled": lambda: {"a.binpb": LOGS, "b.binpb": TRACES, "c.binpb": LOGS},
    "lines of one file": lambda: {"a.jsonl": dumped(LOGS_JSON, TRACES_JSON)},
    "one object": lambda: {"a.otlp.json": dumped({**TRACES_JSON, **LOGS_JSON})},
    "a file for each signal": lambda: {"logs.jsonl": dumped(LOGS_JSON), "traces.jsonl": dumped(TRACES_JSON)},
    "a resource a line": lambda: {
        "a.jsonl": dumped(*TRACES_JSON["resourceSpans"], *LOGS_JSON["resourceLogs"])
    },
    "the Collector's proto": lambda: {"logs.binpb": messages(LOGS, LOGS), "traces.binpb": messages(TRACES)},
    "protobuf's own JSON": lambda: {"a.jsonl": dumped(PROTO3_JSON, TRACES_JSON)},
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_runs_of_both_signals(tmp_path: Path, form: str) -> None:
    for name, content in FORMS[form]().items():
        (tmp_path / name).write_bytes(content)
    stream = RecordedStream()

    assert [] == [*stream.read([tmp_path]), *stream.warnings]

    graded = stream.grade(CriteriaSet([]))
    assert in_any_order(expected_runs(NAME)) == in_any_order([told(run.run) for run in graded])
    assert stream.spans > 0


def test_requests_of_each_signal_are_distinguished_by_their_members(tmp_path: Path) -> None:
    for folder in sorted(BOTH_SIGNALS.glob("*/*/")):
        stream = RecordedStream()
        assert [] == [*stream.read([folder]), *stream.warnings]
        assert (folder.name == "traces") is (stream.spans > 0)
        assert folder.name == "traces" or stream.records > 0


def test_a_span_without_a_valid_id_is_no_log_record(tmp_path: Path) -> None:
    request = ExportTraceServiceRequest.FromString(TRACES)
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.trace_id = b"short"
    (tmp_path / "a.binpb").write_bytes(request.SerializeToString())
    stream = RecordedStream()

    assert [] == stream.read([tmp_path])
    assert "spans rejected: a trace id must be 16 bytes" in str(stream.warnings[0])


def test_logs_alone_are_nothing_to_grade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.binpb").write_bytes(LOGS)

    assert 2 == run_command(["replay", str(tmp_path)])
    assert "no spans and no agent runs" in (error := capsys.readouterr().err)
    assert "only log records" in error


def test_a_criteria_test_reads_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.jsonl").write_bytes(dumped(TRACES_JSON, LOGS_JSON))
    (tmp_path / "criteria.yaml").write_text(CRITERIA)

    assert 0 == run_command(["validate", str(tmp_path / "criteria.yaml")]), capsys.readouterr()
    (tmp_path / "run.jsonl").write_bytes(dumped(TRACES_JSON))
    assert 2 == run_command(["validate", str(tmp_path / "criteria.yaml")])


BUDGETS = """
agents:
  claude-code:
    evaluations:
      - {evaluator: token-budget, name: tokens, scope: conversation, criteria: {max_total_tokens: 1000}}
      - {evaluator: cost-budget, name: money, scope: conversation, criteria: {max_cost: 1500}}
      - {evaluator: model-allowed, scope: conversation, criteria: {allow: [claude-*]}}
"""


def test_a_session_of_log_records_has_a_budget_of_tokens_and_money(tmp_path: Path) -> None:
    for number, body in enumerate(requests("claude_code_logs_alone", "logs")):
        (tmp_path / f"{number}.binpb").write_bytes(body)
        (tmp_path / f"{number}-again.binpb").write_bytes(with_prompt(body, "another", 60.0))
    stream = RecordedStream(prices=PriceTable({"claude-*": ModelPrice(input=1e6, output=1e6)}))

    assert [] == [*stream.read([tmp_path]), *stream.warnings]

    first, second = stream.grade(CriteriaSet(read_criteria(BUDGETS, "budgets", {}).agents))
    assert first.run.session == second.run.session
    usage = TokenUsage(4 * 120, 4 * 24, 0, 0)
    assert [(usage, 576.0)] * 2 == [(each.run.usage, each.run.cost) for each in (first, second)]
    assert ["pass", "pass", "pass"] == [result.outcome for result in first.results]
    assert ["fail", "pass", "pass"] == [result.outcome for result in second.results]
    assert "1152 tokens, at most 1000" in second.results[0].explanation


def with_prompt(body: bytes, prompt: str, seconds_later: float) -> bytes:
    """The log records of a request as those of another prompt of the session."""
    request = ExportLogsServiceRequest.FromString(body)
    for of_resource in request.resource_logs:
        for of_scope in of_resource.scope_logs:
            for record in of_scope.log_records:
                record.time_unix_nano += int(seconds_later * 1e9)
                for attribute in record.attributes:
                    if attribute.key == "prompt.id":
                        attribute.value.string_value = prompt
    return request.SerializeToString()


def test_tokens_in_log_records_include_what_was_read_from_caches() -> None:
    ((run_id, trace),) = traces_in("claude_code_logs_alone").items()
    records = [(b"", with_cached_tokens(raw, 512), envelope) for _, raw, envelope in trace.records]

    spans = run_of_records(records, run_id)
    (run,) = reconstruct(spans, trace_id=run_id, reason=FinishReason.IDLE)

    assert TokenUsage(4 * (120 + 512), 4 * 24, 4 * 512, 0) == run.usage


def with_cached_tokens(payload: bytes, count: int) -> bytes:
    record = LogRecord.FromString(payload)
    for attribute in record.attributes:
        if attribute.key == "cache_read_tokens":
            attribute.value.int_value = count
    return record.SerializeToString()


def test_a_run_that_log_records_report_without_spans_is_graded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, body in enumerate(requests("claude_code_logs_alone", "logs")):
        (tmp_path / f"{number}.binpb").write_bytes(body)

    assert 1 == run_command(["replay", "--format", "json", str(tmp_path)])
    (line,) = capsys.readouterr().out.splitlines()
    run = json.loads(line)
    assert ("claude-code", 4, "idle") == (run["agent"]["name"], len(run["tool_calls"]), run["finish_reason"])
    outcomes = {result["name"]: result["outcome"] for result in run["evaluations"]}
    assert "fail" == outcomes["honest-response"]
