"""What `replay --compare` finds to differ between two sets of criteria."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.cli import run_command

CORPUS = Path(__file__).parents[2] / "data" / "corpus" / "uipath_style"
TOKYO, LONDON = "e3f91a8a1d3d6e39e143fd4812508643", "29b6b1ce7631d19a17538b15b61d17f5"


def count(name: str, tool: str, number: int, **further: Any) -> dict[str, Any]:
    criteria = {"tool_calls_count": {tool: ["=", number], "get_temperature": ["=", 1]}}
    return {"evaluator": "tool-call-count", "name": name, "criteria": criteria, **further}


def criteria_file(path: Path, *evaluations: dict[str, Any]) -> str:
    path.write_text(json.dumps({"agents": {"weather_agent": {"evaluations": evaluations}}}))
    return str(path)


def compared(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    old: list[dict[str, Any]],
    new: list[dict[str, Any]],
    *arguments: str,
) -> tuple[int, str]:
    code = run_command(
        [
            "replay",
            "--compare",
            criteria_file(folder / "old.json", *old),
            criteria_file(folder / "new.json", *new),
            str(CORPUS),
            *arguments,
        ]
    )
    return code, capsys.readouterr().out


def test_flips_are_told_with_trace_agent_evaluation_and_both_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = [count("humidity", "get_humidity", 1)], [count("humidity", "get_humidity", 2)]

    code, printed = compared(tmp_path, capsys, old, new)

    assert [
        f"trace {TOKYO}  weather_agent  humidity  pass 1.00 → fail 0.50",
        f"trace {LONDON}  weather_agent  humidity  fail 0.50 → pass 1.00",
    ] == printed.splitlines()[:2]
    assert 1 == code


def test_the_last_line_counts_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = [count("humidity", "get_humidity", 1), count("gone", "get_humidity", 1)]
    new = [count("humidity", "get_humidity", 2), count("come", "get_forecast", 0)]

    _, printed = compared(tmp_path, capsys, old, new)

    assert printed.splitlines()[-1].startswith("4 agent runs: ")
    assert ", 4 added, 4 removed, " in printed.splitlines()[-1]
    assert {"removed: gone  2 pass", "removed: gone  2 fail"} <= set(printed.splitlines())


def test_json_has_one_line_for_each_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = [count("humidity", "get_humidity", 1)], [count("humidity", "get_humidity", 2)]

    _, printed = compared(tmp_path, capsys, old, new, "--format", "json")

    first = json.loads(printed.splitlines()[0])
    assert ("flip", TOKYO, "d632ef21332d9664", "weather_agent", "humidity") == tuple(
        first[key] for key in ("change", "trace_id", "span_id", "agent", "evaluation")
    )
    assert (("pass", 1.0), ("fail", 0.5)) == tuple(
        (first[side]["outcome"], first[side]["score"]) for side in ("old", "new")
    )


def test_equal_criteria_change_nothing_and_exit_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = [count("humidity", "get_humidity", 1)]

    code, printed = compared(tmp_path, capsys, same, same)

    assert (
        0,
        "4 agent runs: 0 flips, 0 with a different score, 0 added, 0 removed, 4 the same\n",
    ) == (code, printed)


def test_another_score_with_the_same_outcome_is_shown_and_is_no_flip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = [count("humidity", "get_humidity", 1, pass_threshold=0)]
    new = [count("humidity", "get_humidity", 2, pass_threshold=0)]

    code, printed = compared(tmp_path, capsys, old, new)

    assert f"trace {TOKYO}  weather_agent  humidity  pass 1.00 → pass 0.50" == printed.splitlines()[0]
    assert 0 == code


def test_an_evaluation_that_only_one_set_has_is_no_flip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fails = count("fails", "get_humidity", 100)

    code, printed = compared(tmp_path, capsys, [], [fails], "--format", "json")

    lines = [json.loads(line) for line in printed.splitlines()]
    assert [("added", None, "fail")] * 4 == [
        (line["change"], line["old"], line["new"]["outcome"]) for line in lines
    ]
    assert 0 == code


def test_hand_written_runs_are_compared_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "a.runs.jsonl"
    runs.write_text('{"agent": {"name": "weather_agent"}, "tool_calls": [{"name": "get_temperature"}]}\n')
    old = criteria_file(tmp_path / "old.json", count("n", "get_humidity", 0))
    new = criteria_file(tmp_path / "new.json", count("n", "get_humidity", 1))

    code = run_command(["replay", "--compare", old, new, str(runs)])

    assert "n  pass 1.00 → fail 0.50" in capsys.readouterr().out
    assert 1 == code


@pytest.mark.parametrize(
    "arguments", [["--criteria", "c.yaml"], ["--explain"], ["--require-evaluated"], ["--format", "junit"]]
)
def test_options_without_meaning_for_a_comparison_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    code, printed = compared(tmp_path, capsys, [], [], *arguments)

    assert (2, "") == (code, printed)


def test_criteria_that_cannot_be_read_exit_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = compared(tmp_path, capsys, [{"evaluator": "no-such"}], [])

    assert 2 == code


def test_traffic_without_a_run_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.runs.jsonl"
    empty.write_text("")
    criteria = criteria_file(tmp_path / "c.json")

    code = run_command(["replay", "--compare", criteria, criteria, str(empty)])

    assert 2 == code
    assert "no spans and no agent runs in" in capsys.readouterr().err


def test_custom_evaluators_of_the_service_file_grade_by_both_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checks.py").write_text(
        "def grade(run, config, criteria):\n    return len(run['tool_calls']) == criteria['calls']\n"
    )
    service = {
        "processors": {
            "evaluation": {"custom_evaluators": {"my-count": {"file": str(tmp_path / "checks.py")}}}
        }
    }
    (tmp_path / "service.json").write_text(json.dumps(service))
    old, new = ({"evaluator": "my-count", "criteria": {"calls": number}} for number in (3, 4))

    code, printed = compared(tmp_path, capsys, [old], [new], "--config", str(tmp_path / "service.json"))

    assert "4 agent runs: 4 flips (2 fail → pass, 2 pass → fail)" in printed
    assert 1 == code


def test_flips_of_what_decides_nothing_set_no_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = [count("humidity", "get_humidity", 1, severity="advisory")]
    new = [count("humidity", "get_humidity", 2, severity="advisory")]

    code, printed = compared(tmp_path, capsys, old, new)

    assert 0 == code
    assert "pass 1.00 (advisory) → fail 0.50 (advisory)" in printed
    assert (
        "4 agent runs: 3 flips (2 pass → fail, 1 fail → pass), 3 of them advisory, muted or in shadow, "
        in printed
    )
    promoted = [count("humidity", "get_humidity", 2)]
    assert 1 == compared(tmp_path, capsys, old, promoted)[0]
