"""What a replay counts and how it prints results that decide nothing."""

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from collector.cli import run_command
from collector.commands.replay import ReplaySummary, replay
from collector.criteria import load_criteria
from collector.otlp import join_spans
from collector.recordings import RecordedStream
from tests.support.agent_spans import agent, tool

MUTED_UNTIL = 1_769_817_600_000_000_000


def graded(folder: Path, output_format: str, unix_nano: int = 0, **entry: Any) -> tuple[ReplaySummary, str]:
    """The replay of one run that fails its only evaluation."""
    evaluation = {
        "evaluator": "tool-call-count",
        "name": "never",
        "criteria": {"tool_calls_count": {"refund": ["=", 0]}},
        **entry,
    }
    (folder / "criteria.json").write_text(json.dumps({"agents": {"a": {"evaluations": [evaluation]}}}))
    (folder / "a.runs.jsonl").write_text('{"agent": {"name": "a"}, "tool_calls": [{"name": "refund"}]}\n')
    output = io.StringIO()
    stream = RecordedStream(unix_nano=unix_nano)
    assert [] == stream.read([folder / "a.runs.jsonl"])
    summary = replay(
        stream,
        load_criteria([folder / "criteria.json"], environment={}),
        output_format=output_format,
        output=output,
    )
    return summary, output.getvalue()


def mute() -> dict[str, str]:
    return {"until": "2026-01-31", "reason": "known", "by": "me"}


def test_a_failure_counts(tmp_path: Path) -> None:
    summary, text = graded(tmp_path, "json")

    assert (1, 1) == (summary.graded, summary.failed)
    (evaluation,) = json.loads(text)["evaluations"]
    assert "stage" not in evaluation
    assert "muted" not in evaluation


def test_what_is_in_shadow_neither_fails_nor_stands_for_a_verdict(tmp_path: Path) -> None:
    summary, text = graded(tmp_path, "json", stage="shadow")

    assert (0, 0) == (summary.graded, summary.failed)
    (evaluation,) = json.loads(text)["evaluations"]
    assert ("fail", "shadow") == (evaluation["outcome"], evaluation["stage"])


def test_what_is_muted_fails_again_once_the_mute_has_ended(tmp_path: Path) -> None:
    before, text = graded(tmp_path, "json", MUTED_UNTIL - 1, mute=mute())
    after, later_text = graded(tmp_path, "json", MUTED_UNTIL, mute=mute())

    assert (1, 0) == (before.graded, before.failed)
    assert (1, 1) == (after.graded, after.failed)
    assert json.loads(text)["evaluations"][0]["muted"] is True
    assert "muted" not in json.loads(later_text)["evaluations"][0]


@pytest.mark.parametrize(
    ("entry", "note"),
    [({"stage": "shadow"}, "shadow"), ({"mute": mute()}, "muted"), ({"severity": "advisory"}, "advisory")],
)
def test_in_junit_what_decides_nothing_is_a_note(tmp_path: Path, entry: dict[str, Any], note: str) -> None:
    _, text = graded(tmp_path, "junit", **entry)

    root = ElementTree.fromstring(text)
    assert ("1", "0") == (root.get("tests"), root.get("failures"))
    assert f"{note}: refund: Actual: 1, Expected: 0, Score: 0.0" == root.findtext(".//system-out")


def test_the_table_says_what_decides_nothing(tmp_path: Path) -> None:
    _, shadow = graded(tmp_path, "table", stage="shadow")
    _, muted = graded(tmp_path, "table", mute=mute())

    assert "fail never (shadow)" in shadow
    assert "evaluations: 1 shadow" in shadow
    assert "fail never (muted)" in muted
    assert "evaluations: 1 muted" in muted


@pytest.mark.parametrize(("severity", "headline", "code"), [("advisory", "PASS", 0), ("page", "FAIL", 1)])
def test_the_headline_of_a_run_and_the_exit_code_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], severity: str, headline: str, code: int
) -> None:
    graded(tmp_path, "json", severity=severity)

    assert code == run_command(
        ["replay", "--criteria", str(tmp_path / "criteria.json"), str(tmp_path / "a.runs.jsonl")]
    )
    printed = capsys.readouterr().out
    assert printed.startswith(f"{headline}  a  trace_id=")
    assert f"fail never ({severity})" in printed
    assert ("evaluations: 1 advisory" in printed) == (severity == "advisory")


@pytest.mark.parametrize(("stage", "code"), [("live", 1), ("shadow", 0)])
def test_shadow_decides_no_exit_code(
    tmp_path: Path, stage: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    graded(tmp_path, "json", stage=stage)

    assert code == run_command(
        ["replay", "--criteria", str(tmp_path / "criteria.json"), str(tmp_path / "a.runs.jsonl")]
    )


def test_a_mute_is_judged_by_the_time_of_the_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for until, code in (("2000-01-01", 1), ("2999-01-01", 0)):
        graded(tmp_path, "json", mute=mute() | {"until": until})

        assert code == run_command(
            ["replay", "--criteria", str(tmp_path / "criteria.json"), str(tmp_path / "a.runs.jsonl")]
        )


@pytest.mark.parametrize(
    ("value", "read"),
    [*((number, number) for number in (2**63 - 1, 2**64 + 1, -(10**40))), ("lone \ud800", "lone \ufffd")],
    ids=["64 bits", "65 bits", "133 bits", "surrogate"],
)
def test_what_is_printed_as_json_is_read_again_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str | int, read: str | int
) -> None:
    run = {"agent": {"name": "a"}, "tool_calls": [{"name": "refund", "arguments": {"order": value}}]}
    (tmp_path / "a.runs.jsonl").write_text(json.dumps(run) + "\n")

    code = run_command(["replay", "--format", "json", str(tmp_path / "a.runs.jsonl")])
    (tmp_path / "b.runs.jsonl").write_text(first := capsys.readouterr().out)
    again = run_command(["replay", "--format", "json", str(tmp_path / "b.runs.jsonl")])
    second = capsys.readouterr().out

    assert (0, 0) == (code, again)
    assert {"order": read} == json.loads(first)["tool_calls"][0]["arguments"]
    assert first == second


def test_an_argument_beyond_64_bits_in_telemetry_is_printed_exactly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [
        agent(1, None, "a"),
        tool(2, 1, "refund", arguments=f'{{"order": {2**70 + 1}}}'),
    ]
    (tmp_path / "a.binpb").write_bytes(join_spans(spans))

    code = run_command(["replay", "--format", "json", str(tmp_path / "a.binpb")])

    assert 0 == code
    (call,) = json.loads(capsys.readouterr().out)["tool_calls"]
    assert {"order": 2**70 + 1} == call["arguments"]


def test_explain_shows_the_settings_that_send_content_which_was_not_captured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages: dict[str, Any] = {"gen_ai.input.messages": "Hi", "gen_ai.output.messages": "80"}
    whole = [agent(1, None, "a", **messages), tool(2, 1, "look_up", arguments="{}", result="80")]
    bare = [agent(1, None, "a"), tool(2, 1, "look_up", arguments=None, result=None)]
    for spans, expected in ((whole, 0), (bare, 1)):
        (tmp_path / "a.binpb").write_bytes(join_spans(spans))
        capsys.readouterr()
        run_command(["replay", "--explain", str(tmp_path / "a.binpb")])
        shown = capsys.readouterr().out
        assert expected == shown.count("content was not captured (otel_genai); it is sent with:")
        assert expected == shown.count("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, for most")
