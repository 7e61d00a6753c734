"""`replay --jobs`: what several processes print is what one prints, and so is the exit code."""

import json
import os
import signal
from pathlib import Path

import pytest

from collector.cli import run_command
from collector.commands.processes import in_processes
from collector.errors import TracegradeError

_TRAFFIC = Path(__file__).parents[2] / "data" / "corpus"
_CRITERIA = {
    "agents": {
        "*": {
            "evaluations": [
                {"evaluator": "tool-repetition"},
                {"evaluator": "tool-call-count", "criteria": {"tool_calls_count": {"get_weather": ["=", 0]}}},
            ]
        }
    }
}


def _replayed(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run_command(["replay", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--format", "json"),
        ("--format", "table"),
        ("--format", "junit"),
        ("--format", "markdown", "--pass-k", "2"),
        ("--format", "junit", "--min-pass-rate", "50%"),
        ("--format", "table", "--min-pass-rate", "99%"),
    ],
    ids=" ".join,
)
def test_several_processes_print_what_one_prints(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "criteria.json").write_text(json.dumps(_CRITERIA))
    arguments = ("--criteria", str(tmp_path / "criteria.json"), *arguments, str(_TRAFFIC))

    alone = _replayed(capsys, *arguments)
    together = _replayed(capsys, "--jobs", "3", *arguments)

    assert alone == together
    assert len(alone[1]) > 1000


def test_criteria_over_conversations_are_graded_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation = {
        "evaluator": "tool-call-count",
        "scope": "conversation",
        "criteria": {"tool_calls_count": {"pay": ["<=", 1]}},
    }
    criteria = {"agents": {"*": {"evaluations": [evaluation]}}}
    (tmp_path / "criteria.json").write_text(json.dumps(criteria))
    run = {"agent": {"name": "a"}, "session": "one", "tool_calls": [{"name": "pay"}]}
    (tmp_path / "a.runs.jsonl").write_text(f"{json.dumps(run)}\n" * 200)
    arguments = ("--criteria", tmp_path / "criteria.json", "--format", "json", tmp_path / "a.runs.jsonl")

    alone = _replayed(capsys, *arguments)

    assert alone == _replayed(capsys, "--jobs", "2", *arguments)
    assert 1 == alone[0]


def test_unusable_input_gives_the_same_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"resourceSpans": 3}\n')

    alone = _replayed(capsys, tmp_path)

    assert alone == _replayed(capsys, "--jobs", "2", tmp_path)
    assert 2 == alone[0]


@pytest.mark.parametrize("other", [("--explain",), ("--compare", "a.yaml", "b.yaml")], ids=" ".join)
def test_what_needs_one_process_is_refused(
    other: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = _replayed(capsys, "--jobs", "2", *other, "--", _TRAFFIC)

    assert (2, f"--jobs cannot be used with {other[0]}\n") == (code, errors)


def test_a_process_that_is_killed_ends_the_work_with_an_error() -> None:
    def end_itself(item: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(TracegradeError, match="use fewer processes"):
        list(in_processes(lambda: end_itself, range(5), 2, "fork"))
