"""What the commands do where their input or output is not what a terminal and a file are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from collector.cli import run_command

RUN = json.dumps({"agent": {"name": "a"}, "tool_calls": [{"name": "x", "arguments": {}}]})


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "collector.cli", *arguments]


@pytest.mark.parametrize("output_format", ["json", "table"])
def test_a_reader_that_goes_away_is_no_failed_evaluation(tmp_path: Path, output_format: str) -> None:
    runs = tmp_path / "many.runs.jsonl"
    runs.write_text(f"{RUN}\n" * 2000)

    with subprocess.Popen(
        command("replay", str(runs), "--format", output_format),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()

    assert (0, b"") == (process.returncode, errors)


FAILING = """
agents: {a: {evaluations: [{evaluator: tool-call-count, criteria: {tool_calls_count: {x: ["=", 0]}}}]}}
"""
TRACE = (
    '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "%032x", "spanId": "%016x", "name": "x"}]}]}]}'
)


@pytest.mark.parametrize(
    "options",
    [
        ["--format", "json"],
        ["--format", "table"],
        ["--format", "table", "--explain"],
        ["--compare", "passing.yaml", "failing.yaml"],
        ["--compare", "passing.yaml", "failing.yaml", "--format", "json"],
    ],
)
def test_an_evaluation_that_failed_counts_also_when_the_reader_went_away_before(
    tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "many.jsonl").write_text("".join(TRACE % (n, n) + "\n" for n in range(1, 2000)))
    (tmp_path / "z.runs.jsonl").write_text(f"{RUN}\n" * 2000)
    (tmp_path / "failing.yaml").write_text(FAILING)
    (tmp_path / "passing.yaml").write_text(FAILING.replace('"="', '">="'))
    if "--compare" not in options:
        options = [*options, "--criteria", "failing.yaml"]

    with subprocess.Popen(
        command("replay", "many.jsonl", "z.runs.jsonl", *options),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()

    assert (1, b"") == (process.returncode, errors)


def test_nothing_is_broken_at_eighty_columns_where_no_terminal_is(tmp_path: Path) -> None:
    (tmp_path / "a.runs.jsonl").write_text(RUN.replace('"x"', json.dumps("x" * 200)))

    for more in ({}, {"FORCE_COLOR": "1", "COLUMNS": "40"}):
        finished = subprocess.run(
            command("replay", str(tmp_path)), env={**os.environ, **more}, capture_output=True, check=True
        )
        lines = finished.stdout.decode().splitlines()

        assert any("x" * 200 in line and "<absent>" in line for line in lines)
        assert any("1 agent runs, evaluations: " in line and "not_evaluated" in line for line in lines)


@pytest.mark.parametrize(("name", "place"), [("a.jsonl", ":1"), ("a.otlp.json", "")])
def test_a_runs_file_of_another_ending_is_told_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, place: str
) -> None:
    file = tmp_path / name
    file.write_text(RUN)

    assert 2 == run_command(["replay", str(file)])

    assert capsys.readouterr().err == (
        f"{file}{place}: not an OTLP request, this looks like an agent run: name such a file *.runs.jsonl\n"
    )


def test_a_request_in_a_runs_file_is_told_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.runs.jsonl"
    file.write_text(TRACE % (1, 1))

    assert 2 == run_command(["replay", str(file)])

    assert capsys.readouterr().err == (
        f"{file}:1: not an agent run but an OTLP request: name such a file *.jsonl or *.otlp.json\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_told_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        finished = subprocess.run(command("schema"), stdout=full, stderr=subprocess.PIPE, check=False)

    assert (2, b"cannot read or write the output: No space left on device\n") == (
        finished.returncode,
        finished.stderr,
    )


def test_traffic_is_read_from_standard_input() -> None:
    finished = subprocess.run(
        command("replay", "-", "--format", "json"), input=RUN.encode(), capture_output=True, check=False
    )

    assert 0 == finished.returncode
    assert "a" == json.loads(finished.stdout)["agent"]["name"]


@pytest.mark.parametrize("name", ["windows.runs.jsonl", "windows.txt"])
def test_traffic_may_begin_with_a_byte_order_mark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + RUN.encode() + b"\r\n")

    code = run_command(["replay", str(tmp_path / name), "--format", "json"])

    assert 0 == code
    assert "a" == json.loads(capsys.readouterr().out)["agent"]["name"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", ""],
        ["replay", "a.jsonl", "--criteria", ""],
        ["replay", "a.jsonl", "--compare", "", "b.yaml"],
        ["validate", ""],
        ["validate", "--config", ""],
        ["rules", "--output", ""],
        ["baseline", "--release", "1", ""],
    ],
)
def test_an_empty_path_is_not_taken_for_the_default(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run_command(arguments)

    assert 2 == left.value.code
    assert "expected a path, got an empty text" in capsys.readouterr().err
