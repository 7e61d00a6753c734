"""What `replay` judges of pass rates: by a minimum, by a baseline, and over cases with several runs."""

import json
from itertools import product
from math import comb
from pathlib import Path
from xml.etree import ElementTree

import pytest

from collector.cli import run_command
from collector.commands.pass_rates import Tally, drop_probability

CRITERIA = {
    "agents": {
        "a": {
            "evaluations": [
                {"evaluator": "tool-permission", "name": "no-refund", "criteria": {"deny": ["refund"]}},
                {
                    "evaluator": "tool-permission",
                    "name": "no-mail",
                    "severity": "advisory",
                    "criteria": {"deny": ["refund", "mail"]},
                },
            ]
        }
    }
}


def runs(path: Path, *cases: tuple[int, int], agent: str = "a") -> str:
    """A file with runs of one case for each pair: how many pass, and how many fail."""
    lines = []
    for number, (passed, failed) in enumerate(cases):
        for tool in ["search"] * passed + ["refund"] * failed:
            run = {"agent": {"name": agent}, "input": f"case {number}", "tool_calls": [{"name": tool}]}
            lines.append(json.dumps(run))
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def criteria(tmp_path: Path) -> str:
    (tmp_path / "criteria.json").write_text(json.dumps(CRITERIA))
    return str(tmp_path / "criteria.json")


def replayed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> str:
    assert code == run_command(["replay", *arguments])
    return capsys.readouterr().out


def test_the_tea_tasting_lady_has_the_published_probability() -> None:
    assert 0.242857 == pytest.approx(drop_probability(Tally(3, 1), Tally(1, 3)), abs=1e-6)


def test_the_probability_is_that_of_counting_every_table() -> None:
    for passed, failed, now_passed, now_failed in product(range(5), repeat=4):
        before, now = Tally(passed, failed), Tally(now_passed, now_failed)
        passes, fails = passed + now_passed, failed + now_failed
        tables = sum(
            comb(passes, few) * comb(fails, now.decided - few)
            for few in range(now_passed + 1)
            if few <= now.decided
        )

        assert tables / comb(passes + fails, now.decided) == pytest.approx(drop_probability(before, now))


def test_a_drop_in_many_runs_is_computed_as_well() -> None:
    assert drop_probability(Tally(98_000, 2_000), Tally(9_500, 500)) < 1e-60
    assert 0.3 < drop_probability(Tally(98_000, 2_000), Tally(9_800, 200)) < 0.7


def test_a_minimum_accepts_single_failures(
    tmp_path: Path, criteria: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = runs(tmp_path / "new.runs.jsonl", (19, 1))

    replayed(capsys, "--criteria", criteria, new, code=1)
    printed = replayed(capsys, "--criteria", criteria, new, "--min-pass-rate", "95%", code=0)
    assert "20 agent runs, 2 pass rates, none with a problem" == printed.splitlines()[-1]
    printed = replayed(capsys, "--criteria", criteria, new, "--min-pass-rate", "0.96", code=1)
    (row,) = [line for line in printed.splitlines() if line.rstrip().endswith("below 96 %")]
    assert ["a", "no-refund", "95", "%", "of", "20"] == row.split()[:6]
    assert "no-mail" in printed.splitlines()[-2]
    assert printed.splitlines()[-2].endswith("advisory")


@pytest.mark.parametrize(
    ("passed", "failed", "code"),
    [(50, 0, 0), (48, 2, 0), (45, 5, 0), (40, 10, 1), (0, 3, 1), (1, 1, 0)],
)
def test_only_a_drop_by_more_than_chance_is_a_failure(
    tmp_path: Path,
    criteria: str,
    capsys: pytest.CaptureFixture[str],
    passed: int,
    failed: int,
    code: int,
) -> None:
    old = runs(tmp_path / "old.runs.jsonl", (96, 4))
    new = runs(tmp_path / "new.runs.jsonl", (passed, failed))

    printed = replayed(capsys, "--criteria", criteria, new, "--baseline", old, code=code)

    assert bool(code) is ("dropped by more than chance" in printed)
    assert "96 % of 100" in printed


def test_several_evaluations_do_not_make_chance_likelier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluations = [
        {
            "evaluator": "tool-permission",
            "name": f"rule-{number}",
            "criteria": {"deny": [f"tool{number}"]},
        }
        for number in range(20)
    ]
    (tmp_path / "many.json").write_text(json.dumps({"agents": {"a": {"evaluations": evaluations}}}))
    old = runs(tmp_path / "old.runs.jsonl", (50, 0))
    calls = [{"name": "tool0"}]
    new = [json.dumps({"agent": {"name": "a"}, "tool_calls": calls if n < 4 else []}) for n in range(40)]
    (tmp_path / "new.runs.jsonl").write_text("\n".join(new))
    arguments = [str(tmp_path / "new.runs.jsonl"), "--baseline", old, "--criteria"]

    # 36 of 40 after 50 of 50: p = 0.036 by itself.
    replayed(capsys, *arguments, str(tmp_path / "many.json"), code=0)
    (tmp_path / "one.json").write_text(json.dumps({"agents": {"a": {"evaluations": evaluations[:1]}}}))
    replayed(capsys, *arguments, str(tmp_path / "one.json"), code=1)


def test_cases_with_several_runs_have_to_pass_all_of_them(
    tmp_path: Path, criteria: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = runs(tmp_path / "new.runs.jsonl", (4, 0), (2, 2), (1, 0))
    arguments = ["--criteria", criteria, new, "--min-pass-rate", "70%", "--pass-k"]

    # Of the choices of 2 of 4 runs of which 2 pass, one in six passes.
    printed = replayed(capsys, *arguments, "2", code=1)
    assert "pass^2" in printed
    assert "58.3 % over 2 cases" in printed
    assert "1 cases with fewer than 2 verdicts" in printed
    assert "75 % over 2 cases" not in printed
    printed = replayed(capsys, *arguments, "1", code=0)
    assert "83.3 % over 3 cases" in printed
    assert "no case" in replayed(capsys, *arguments, "5", code=0)


def test_a_summary_for_a_pull_request_shows_rates_and_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps(CRITERIA).replace('"a"', '"a | `b` @team <i>"')
    (tmp_path / "criteria.json").write_text(text)
    old = runs(tmp_path / "old.runs.jsonl", (50, 0), agent="a | `b` @team <i>")
    new = runs(tmp_path / "new.runs.jsonl", (10, 30), agent="a | `b` @team <i>")
    arguments = [
        "--criteria",
        str(tmp_path / "criteria.json"),
        new,
        "--baseline",
        old,
        "--format",
        "markdown",
    ]

    lines = replayed(capsys, *arguments, code=1).splitlines()

    assert "### tracegrade: 40 agent runs, 2 pass rates, 1 with a problem" == lines[0]
    assert "| agent | evaluation | before | passed | problem |  |" == lines[2]
    assert lines[4].startswith(
        "| `a \\| 'b' @team <i>` | `no-refund` | 100 % of 50 | 25 % of 40 | dropped by more than chance | p "
    )
    assert "<details><summary>30 results failed</summary>" in lines
    assert 20 == sum(line.startswith("- `a") for line in lines)
    assert "- and 10 more" in lines


def test_junit_has_a_case_for_each_rate_where_rates_decide(
    tmp_path: Path, criteria: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = runs(tmp_path / "new.runs.jsonl", (9, 1))
    arguments = ["--criteria", criteria, new, "--format", "junit", "--min-pass-rate"]

    root = ElementTree.fromstring(replayed(capsys, *arguments, "95%", code=1))
    assert ("2", "1") == (root.get("tests"), root.get("failures"))
    (failure,) = root.iter("failure")
    assert "below 95 %: 90 % of 10 passed" == failure.get("message")
    assert "0" == ElementTree.fromstring(replayed(capsys, *arguments, "90%", code=0)).get("failures")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--min-pass-rate", "101%"], "expected a share such as 2% or 0.02, got '101%'"),
        (["--pass-k", "0"], "expected a whole number from 1 to 1000, got '0'"),
        (["--compare", "x", "y", "--baseline", "z"], "--compare cannot be used with --baseline"),
        (["--compare", "x", "y", "--format", "markdown"], "--compare prints json or table, not markdown"),
        (["--baseline", "empty.runs.jsonl"], "no agent runs in "),
    ],
)
def test_what_cannot_be_judged_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.runs.jsonl").write_text("")
    try:
        code = run_command(["replay", runs(tmp_path / "new.runs.jsonl", (1, 0)), *arguments])
    except SystemExit as exit_:
        code = exit_.code  # type: ignore[assignment]  # a number, from argparse

    assert 2 == code
    assert expected in capsys.readouterr().err
