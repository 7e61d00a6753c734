"""`tracegrade learn` as people call it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from collector.cli import run_command
from collector.store import NewReview, Reviews
from processors.annotation import run_from_json
from processors.criteria import read_criteria
from processors.model import GradedRun, Outcome, Severity
from tests.support.agent_population import Line, deploy_agent, population, refund_agent
from tests.support.graded_runs import result
from tests.support.stored_runs import NOW, filled


def written(folder: Path, lines: Sequence[Line], name: str = "good.runs.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> str:
    lines = [*population(refund_agent, 200), *population(deploy_agent, 200)]
    return written(tmp_path_factory.mktemp("runs"), lines)


def test_what_it_writes_is_valid_and_is_reported(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "learned.yaml"

    assert 0 == run_command(["learn", good, "--output", str(output)])

    report = capsys.readouterr()
    assert "" == report.out
    assert "deploy_agent: " in report.err
    assert "150 runs" in report.err
    assert "of 50 runs held out" in report.err
    assert "broken runs caught: " in report.err
    assert "a call left out: " in report.err
    assert 0 == run_command(["validate", str(output)])
    assert "criteria for 2 agents" in capsys.readouterr().out
    document = read_criteria(output.read_text(), "learned.yaml", {})
    assert ["deploy_agent", "refund_agent"] == [agent.pattern for agent in document.agents]
    assert 2 == run_command(["learn", good, "--agent", "refund_agent", "--output", str(output)])
    assert "File exists" in capsys.readouterr().err
    assert 12 == len(document.cases)  # three good and three broken runs of each
    assert all(e.name.startswith("learned-") for agent in document.agents for e in agent.evaluations)


def test_learned_criteria_tell_good_runs_from_broken_ones(good: str, tmp_path: Path) -> None:
    criteria = str(tmp_path / "learned.yaml")
    assert 0 == run_command(["learn", good, "--agent", "refund_agent", "--output", criteria])
    passing = population(refund_agent, 10, seed=2)
    broken = [{**line, "tool_calls": line["tool_calls"][1:]} for line in passing]

    replay = ["replay", "--require-evaluated", "--criteria", criteria]
    assert 0 == run_command([*replay, written(tmp_path, passing, "passing.runs.jsonl")])
    assert 1 == run_command([*replay, written(tmp_path, broken, "broken.runs.jsonl")])


def test_only_runs_that_are_wanted_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = population(refund_agent, 60)
    for line in lines[:30]:
        line["start_time"] = "2020-01-01T00:00:00Z"
    for line in lines[30:]:
        line["start_time"] = "2999-01-01T00:00:00Z"
    path = written(tmp_path, lines)

    assert 0 == run_command(["learn", path, "--since", "7d", "--tests", "0"])
    report = capsys.readouterr()
    assert "from 22 runs" in report.err
    assert "too few runs to show at most 2.0%: about 199 complete runs" in report.err
    assert "tests:" not in report.out

    assert 2 == run_command(["learn", path, "--agent", "nobody"])
    assert "no matching agent runs" in capsys.readouterr().err


def test_agents_with_too_few_runs_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [*population(refund_agent, 40), *population(deploy_agent, 5)])

    assert 0 == run_command(["learn", path, "--shadow"])
    report = capsys.readouterr()
    assert "left out: 5 complete runs of deploy_agent: at least 20 are needed" in report.err
    assert "deploy_agent" not in report.out
    (agent,) = read_criteria(report.out, "learned.yaml", {}).agents
    assert {"shadow"} == {evaluation.stage for evaluation in agent.evaluations}

    assert 2 == run_command(["learn", path, "--agent", "deploy_agent"])
    assert "at least 20 are needed" in capsys.readouterr().err


def test_a_file_is_for_one_tenant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = population(refund_agent, 60)
    for line in lines[:30]:
        line["tenant"] = "acme"
    path = written(tmp_path, lines)

    assert 2 == run_command(["learn", path])
    assert "(none), acme: choose one with --tenant" in capsys.readouterr().err
    assert 0 == run_command(["learn", path, "--tenant", "acme"])
    assert "\ntenant: acme\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["--since", "soon"], ["--max-false-alarms", "0"], ["--max-false-alarms", "150%"], ["--tests", "x"]],
)
def test_arguments_that_make_no_sense_are_refused(
    good: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run_command(["learn", good, *arguments])
    assert "expected" in capsys.readouterr().err


def test_texts_that_no_criteria_file_can_hold_are_left_out_of_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = population(refund_agent, 40)
    for line in lines:
        line["input"] += " for $${price}"
    assert 0 == run_command(["learn", written(tmp_path, lines)])
    assert "tests:" not in capsys.readouterr().out


def test_an_update_shows_what_would_change_and_keeps_what_was_written_by_hand(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = "      - evaluator: tool-permission\n        criteria: {deny: [delete_all]}\n"
    by_hand = f"      # Nobody deletes.\n{entry}"
    in_force, updated = tmp_path / "criteria.yaml", tmp_path / "updated.yaml"
    assert 0 == run_command(
        ["learn", good, "--agent", "refund_agent", "--tests", "1", "--output", str(in_force)]
    )
    in_force.write_text(in_force.read_text().replace("    evaluations:\n", "    evaluations:\n" + by_hand))
    before = in_force.read_text()
    fewer = written(tmp_path, population(refund_agent, 100, seed=4))
    capsys.readouterr()

    assert 0 == run_command(["learn", fewer, "--tests", "1", "--update", str(in_force)])
    difference = capsys.readouterr().out
    assert difference.startswith(f"--- {in_force}\n+++ {in_force}\n")
    assert "of 150 runs" in difference
    assert not any(line[:1] in "+-" and "deny" in line for line in difference.splitlines())
    assert before == in_force.read_text()

    assert 0 == run_command(["learn", fewer, "--update", str(in_force), "--output", str(updated)])
    assert by_hand in updated.read_text()
    assert 0 == run_command(["validate", str(updated)])

    assert 2 == run_command(["learn", fewer, "--update", str(tmp_path / "absent.yaml")])
    assert "cannot be read" in capsys.readouterr().err


def test_the_runs_of_a_store_are_learned_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "runs.db"
    lines = population(refund_agent, 60)
    graded = [
        GradedRun(
            run=run_from_json(line, "good"),
            results=[result("check", Outcome.FAIL if number < 10 else Outcome.PASS)],
            graded_unix_nano=NOW + number,
        )
        for number, line in enumerate(lines)
    ]
    filled(graded, path)
    service_file = tmp_path / "tracegrade.yaml"
    service_file.write_text("store: {path: runs.db}\n")

    assert 0 == run_command(["learn", "--store", str(path)])
    assert "from 45 runs" in capsys.readouterr().err
    assert 0 == run_command(["learn", "--outcome", "pass", "--store", "--config", str(service_file)])
    assert "of 13 runs held out" in capsys.readouterr().err

    assert 2 == run_command(["learn", "--store", str(tmp_path / "absent.db")])
    assert "no such file" in capsys.readouterr().err
    assert 2 == run_command(["learn", "--store"])
    assert "sets no store.path" in capsys.readouterr().err
    for arguments in ([], [str(path), "--store", str(path)]):
        assert 2 == run_command(["learn", *arguments])
        assert "expected either PATH or --store" in capsys.readouterr().err
    assert 2 == run_command(["learn", "x.runs.jsonl", "--outcome", "pass"])
    assert "--outcome requires --store" in capsys.readouterr().err


def test_runs_that_passed_without_a_check_that_alerts_are_not_taken_as_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    undecided = result("refunds", Outcome.NOT_EVALUATED)
    advisory = replace(undecided, name="tone", severity=Severity.ADVISORY)
    graded = [
        GradedRun(
            run=run_from_json(line, "good"),
            results=[result("check", Outcome.PASS), undecided if number < 20 else advisory],
            graded_unix_nano=NOW + number,
        )
        for number, line in enumerate(population(refund_agent, 60))
    ]
    filled(graded, path)

    def reported(*arguments: str) -> str:
        assert 0 == run_command(["learn", "--store", str(path), *arguments])
        return capsys.readouterr().err

    report = reported("--outcome", "pass")
    assert (
        "left out (--include-not-evaluated includes them): 20 runs that passed without a verdict of refunds "
        "in 20" in report
    )
    assert "from 30 runs" in report
    report = reported("--outcome", "pass", "--include-not-evaluated")
    assert "included: 20 runs that passed without a verdict of refunds in 20" in report
    assert "from 45 runs" in report
    assert "without a verdict" not in reported()


def test_runs_whose_pass_was_answered_as_wrong_are_not_taken_as_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    verdicts = [result("check"), result("learned-order", Outcome.FAIL, severity=Severity.ADVISORY)]
    graded = [
        GradedRun(run=run_from_json(line, "good"), results=verdicts, graded_unix_nano=NOW)
        for line in population(refund_agent, 60)
    ]
    reviews = Reviews(filled(graded, path))
    for number, (evaluation, answer) in enumerate((("check", "wrong"), ("learned-order", "right"))):
        trace = graded[number].run.trace_id.hex()
        reviews.add(NewReview(trace, evaluation, answer), "", NOW // 1_000_000)

    assert 0 == run_command(["learn", "--store", str(path), "--tests", "0"])
    report = capsys.readouterr().err
    assert "left out: 1 runs with a pass that was answered as wrong" in report
    assert "refund_agent: answers to learned-order: 1 of 1 failures right (21% to 100%)" in report
