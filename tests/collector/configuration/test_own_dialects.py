"""Telemetry conventions of the user's own: in the service file, in replay, in explanations."""

from pathlib import Path

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.cli import run_command
from collector.configuration import parse_configuration
from collector.otlp import join_spans
from processors.documents import InvalidInput
from tests.support.agent_spans import span

CONFIG = """
processors:
  evaluation:
    dialects:
      - name: acme
        kind: {attribute: acme.kind, tool: tool, agent: agent, model: llm}
        tool: {name: acme.tool, arguments: acme.arguments}
        agent: {name: acme.agent}
        model: {name: acme.model, input_tokens: [acme.in, acme.prompt], output_tokens: acme.out}
    model_prices:
      small*: {input: 1, output: 2}
      small-1: {input: 2, output: 3.5}
"""

USED = {"input_tokens": 1, "output_tokens": 1}


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    spans = [
        span(1, None, "run", {"acme.kind": "agent", "acme.agent": "planner"}),
        span(2, 1, "call", {"acme.kind": "tool", "acme.tool": "get", "acme.arguments": '{"city": "Oslo"}'}),
        span(3, 1, "GET /", {"http.request.method": "GET"}),
        span(
            4, 1, "llm", {"acme.kind": "llm", "acme.model": "small-1", "acme.prompt": 1000, "acme.out": 200}
        ),
    ]
    path = tmp_path / "0001.binpb"
    path.write_bytes(join_spans(spans))
    assert 1 == len(ExportTraceServiceRequest.FromString(path.read_bytes()).resource_spans)
    (tmp_path / "tracegrade.yaml").write_text(CONFIG)
    return path


def test_replay_reads_spans_with_the_dialects_of_a_service_file(
    traffic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(traffic.parent / "tracegrade.yaml")

    code = run_command(["replay", "--config", config, "--format", "json", str(traffic)])

    run = orjson.loads(capsys.readouterr().out)
    assert (0, "planner") == (code, run["agent"]["name"])
    assert [("get", {"city": "Oslo"})] == [(call["name"], call["arguments"]) for call in run["tool_calls"]]


def test_models_tokens_and_what_they_cost_are_read_with_them(
    traffic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(
        ["replay", "--config", str(traffic.parent / "tracegrade.yaml"), "--format", "json", str(traffic)]
    )

    run = orjson.loads(capsys.readouterr().out)
    assert ["small-1"] == run["models"]
    assert {"input_tokens": 1000, "output_tokens": 200} == run["usage"]
    assert pytest.approx((1000 * 2 + 200 * 3.5) / 1e6) == run["cost"]


def test_prices_of_now_go_before_a_cost_that_a_line_tells(
    traffic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = traffic.parent / "old.runs.jsonl"
    told = {"agent": {"name": "a"}, "cost": 9, "model_calls": [{"model": "small-2", "usage": USED}]}
    untold = {"agent": {"name": "b"}, "cost": 9, "model_calls": [{"model": "large", "usage": USED}]}
    lines.write_bytes(orjson.dumps(told) + b"\n" + orjson.dumps(untold) + b"\n")

    run_command(
        ["replay", "--config", str(traffic.parent / "tracegrade.yaml"), "--format", "json", str(lines)]
    )

    runs = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"a": pytest.approx(3e-6), "b": 9} == {run["agent"]["name"]: run["cost"] for run in runs}


def test_without_it_nothing_of_them_is_known(traffic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["replay", "--format", "json", str(traffic)])

    assert "" == capsys.readouterr().out


@pytest.mark.parametrize(("output_format", "stream"), [("table", "out"), ("json", "err"), ("junit", "err")])
def test_an_explanation_stays_out_of_what_programs_read(
    traffic: Path, capsys: pytest.CaptureFixture[str], output_format: str, stream: str
) -> None:
    config = str(traffic.parent / "tracegrade.yaml")

    run_command(["replay", "--config", config, "--explain", "--format", output_format, str(traffic)])

    printed = capsys.readouterr()
    lines = getattr(printed, stream).splitlines()
    assert any("acme: agent" in line and "run of planner" in line for line in lines)
    assert any("acme: tool" in line and "call of get by planner" in line for line in lines)
    assert any("GET /" in line and "left out: no dialect recognises it" in line for line in lines)
    if stream == "err":
        assert "left out" not in printed.out


@pytest.mark.parametrize(
    ("dialects", "message"),
    [
        ("[{name: acme}]", "expected kind, tool.name or agent.name"),
        ("[{name: langfuse, tool: {name: t}}]", 'two dialects are called "langfuse"'),
        ("[{name: a, tool: {name: t}}, {name: a, tool: {name: t}}]", 'two dialects are called "a"'),
        ("[{name: a, tool: {names: t}}]", "dialects[0].tool.names"),
    ],
)
def test_mistakes_are_told_with_their_place(dialects: str, message: str) -> None:
    text = f"processors:\n  evaluation:\n    dialects: {dialects}\n"

    with pytest.raises(InvalidInput) as found:
        parse_configuration(text, "tracegrade.yaml", {})

    assert message in str(found.value)
    assert "tracegrade.yaml:3" in str(found.value)
