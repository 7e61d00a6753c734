"""Stored runs graded by other criteria: which verdicts change, whatever the number of runs and processes."""

import asyncio
import json
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collector.cli import run_command
from collector.criteria import load_criteria
from collector.recordings import RecordedStream, changes
from collector.store import Regrades, RunFilter
from processors.model import AgentIdentity, GradedRun, Outcome
from tests.support.graded_runs import result, weather_run
from tests.support.score_backend import ScoreBackend, takes_all
from tests.support.stored_runs import MINUTE, NOW, filled

CORPUS = Path(__file__).parents[2] / "data" / "corpus" / "uipath_style"


def count(tool: str, number: int, name: str = "", **entry: Any) -> dict[str, Any]:
    criteria = {"tool_calls_count": {tool: ["=", number]}}
    return {"evaluator": "tool-call-count", "name": name or tool, "criteria": criteria, **entry}


def criteria_file(path: Path, *evaluations: dict[str, Any], agent: str = "weather_agent") -> str:
    path.write_text(json.dumps({"agents": {agent: {"evaluations": evaluations}}}))
    return str(path)


def recorded(criteria: str, *paths: Path) -> list[GradedRun]:
    """Recorded runs as a service graded them, a minute apart."""
    stream = RecordedStream()
    assert [] == stream.read(paths)
    graded = stream.grade(load_criteria([criteria], environment={}))
    return [replace(run, graded_unix_nano=NOW + number * MINUTE) for number, run in enumerate(graded)]


def regraded(
    capsys: pytest.CaptureFixture[str], store: Path, criteria: str, *arguments: str, code: int
) -> str:
    options = ["--store", str(store), "--criteria", criteria, *arguments]
    assert code == run_command(["regrade", *options])
    return capsys.readouterr().out


def many(runs: Sequence[GradedRun], copies: int) -> list[GradedRun]:
    """Copies of runs with trace ids of their own."""
    return [
        replace(run, run=replace(run.run, trace_id=bytes([copy // 256, copy % 256, *run.run.trace_id[2:]])))
        for copy in range(copies)
        for run in runs
    ]


def test_the_same_criteria_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    criteria = criteria_file(tmp_path / "old.json", count("get_humidity", 1), count("get_forecast", 0))
    runs = recorded(criteria, CORPUS)
    filled(runs, tmp_path / "runs.db")

    printed = regraded(capsys, tmp_path / "runs.db", criteria, code=0)

    assert f"{len(runs)} agent runs: 0 flips, 0 with a different score, 0 added, 0 removed" in printed


def test_the_changes_are_those_of_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = criteria_file(tmp_path / "old.json", count("get_humidity", 1), count("get_forecast", 0))
    new = criteria_file(tmp_path / "new.json", count("get_humidity", 2), count("get_temperature", 1))
    filled(recorded(old, CORPUS), tmp_path / "runs.db")
    assert 1 == run_command(["replay", "--compare", old, new, str(CORPUS), "--format", "json"])
    expected = capsys.readouterr().out

    assert "flip" in expected
    assert expected == regraded(capsys, tmp_path / "runs.db", new, "--format", "json", code=1)


def test_traces_are_graded_among_all_that_is_stored_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def criteria(name: str, first: str, second: str) -> str:
        rule = {"precedence": [{"tool": first, "agent": "reviewer"}, second]}
        evaluation = {
            "evaluator": "tool-constraints", "name": "in-order", "scope": "trace",
            "criteria": {"constraints": [rule]},
        }  # fmt: skip
        return criteria_file(tmp_path / name, evaluation, agent="desk")

    old, new = criteria("old.json", "review", "publish"), criteria("new.json", "publish", "review")
    runs = [
        {
            "trace_id": "01" * 16, "span_id": f"{number:016x}", "agent": {"name": agent},
            "resource_attributes": {"service.name": "desk"}, "tool_calls": [{"name": tool}],
            "start_time": f"2026-01-31T08:00:0{number}Z",
        }
        for number, (agent, tool) in enumerate([("reviewer", "review"), ("publisher", "publish")], 1)
    ]  # fmt: skip
    lines = tmp_path / "day.runs.jsonl"
    lines.write_text("".join(json.dumps(run) + "\n" for run in runs))
    stored = recorded(old, lines)
    filled(stored, tmp_path / "runs.db")

    changed = [json.loads(line) for line in regraded(
        capsys, tmp_path / "runs.db", new, "--format", "json", code=1
    ).splitlines()]  # fmt: skip
    assert 1 == run_command(["replay", "--compare", old, new, str(lines), "--format", "json"])

    assert [False, False, True] == [graded.run.stands_for_trace for graded in stored]
    assert [("desk", "pass", "fail")] == [
        (each["agent"], each["old"]["outcome"], each["new"]["outcome"]) for each in changed
    ]
    assert changed == [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_many_runs_are_graded_in_processes_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = criteria_file(tmp_path / "old.json", count("get_humidity", 1))
    new = criteria_file(tmp_path / "new.json", count("get_humidity", 2), count("get_forecast", 0))
    runs = many(recorded(old, CORPUS), 300)
    filled(runs, tmp_path / "runs.db")

    one, two = (
        regraded(capsys, tmp_path / "runs.db", new, "--format", "json", "--jobs", jobs, code=1)
        for jobs in ("1", "2")
    )

    assert one == two
    traces = [json.loads(line)["trace_id"] for line in one.splitlines()]
    assert [run.run.trace_id.hex() for run in runs] == list(dict.fromkeys(traces))


def test_changes_are_grouped_by_agent_and_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = criteria_file(tmp_path / "old.json", count("get_humidity", 1))
    new = criteria_file(tmp_path / "new.json", count("get_humidity", 2), count("refund", 0, "new"))
    runs = recorded(old, CORPUS)
    filled(many(runs, 10), tmp_path / "runs.db")

    heading, *rows, totals = regraded(capsys, tmp_path / "runs.db", new, code=1).splitlines()

    assert ["runs", "agent", "evaluation", "change", "cause"] == heading.split()[:5]
    assert [str(10 * len(runs)), "weather_agent", "new", "no", "result", "→", "pass"] == rows[0].split()[:7]
    changed = {tuple(row.split()[:6]) for row in rows[1:]}
    assert ("30", "weather_agent", "get_humidity", "pass", "→", "fail") in changed
    assert f"{10 * len(runs)} agent runs: " in totals
    assert "0 agent runs" in regraded(capsys, tmp_path / "runs.db", new, "--since", "1h", code=2)


def test_failures_have_the_cause_that_the_store_groups_them_by() -> None:
    explanation = 'RH1.2: 21.5 is not in the results of call_9f; nearest: "sunny and warm" of get-weather'
    failure = result("args", Outcome.FAIL, explanation=explanation)
    run = GradedRun(run=weather_run().run, results=[failure], graded_unix_nano=NOW)

    (change,) = changes(run.run, [], [failure])
    (stored,) = filled([run]).causes("weather_agent")

    assert 'RH1.2: … is not in the results of …; nearest: "…" of get-weather' == change.cause
    assert change.cause == stored.cause


VERIFIED_FIRST = {
    "evaluator": "tool-precedence",
    "name": "verified",
    "scope": "conversation",
    "criteria": {"before": [["verify", "refund"]]},
}


def test_conversations_are_seen_as_the_service_saw_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    criteria = criteria_file(tmp_path / "criteria.json", VERIFIED_FIRST, agent="*")
    lines = [
        {"agent": {"name": "desk"}, "session": "c", "tool_calls": [{"name": "verify"}]},
        {"agent": {"name": "billing"}, "session": "c", "tool_calls": [{"name": "refund"}]},
        {"agent": {"name": "billing"}, "session": "d", "tool_calls": [{"name": "refund"}]},
    ]
    path = tmp_path / "a.runs.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    runs = [
        replace(run, results=[], graded_unix_nano=NOW + 120 * number * MINUTE)
        for number, run in enumerate(recorded(criteria, path))
    ]
    begin = replace(runs[0], run=replace(runs[0].run, session=None, agent=AgentIdentity(name="other")))
    begin = replace(
        begin, run=replace(begin.run, trace_id=bytes(15) + b"\1"), graded_unix_nano=NOW - 120 * MINUTE
    )
    filled([begin, *runs], tmp_path / "runs.db")

    printed = regraded(capsys, tmp_path / "runs.db", criteria, "--format", "json", code=0)
    outcomes = {
        (change["agent"], change["trace_id"]): change["new"]["outcome"]
        for change in map(json.loads, printed.splitlines())
    }
    assert ["pass", "fail"] == [outcomes["billing", run.run.trace_id.hex()] for run in runs[1:]]
    some = regraded(capsys, tmp_path / "runs.db", criteria, "--agent", "billing", "--format", "json", code=0)
    assert {"not_evaluated"} == {json.loads(line)["new"]["outcome"] for line in some.splitlines()}


def test_what_cannot_be_graded_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run_command(["regrade", "--store", str(tmp_path / "runs.db")])
    assert "expected --criteria, or --config with criteria" in capsys.readouterr().err
    criteria = criteria_file(tmp_path / "criteria.json", count("a", 1))
    assert 2 == run_command(["regrade", "--store", str(tmp_path / "runs.db"), "--criteria", criteria])
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
async def test_new_verdicts_are_written_as_scores_that_replace_the_old_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    old = criteria_file(tmp_path / "old.json", count("get_humidity", 1))
    new = criteria_file(tmp_path / "new.json", count("get_humidity", 2))
    runs = recorded(old, CORPUS)
    filled(runs, tmp_path / "runs.db")
    async with ScoreBackend(takes_all) as backend:
        config = tmp_path / "tracegrade.yaml"
        exporters = {"phoenix_annotations": {"endpoint": backend.endpoint}, "debug": {}}
        config.write_text(json.dumps({"exporters": exporters, "store": {"path": "runs.db"}}))
        arguments = ["--config", str(config), "--criteria", new, "--jobs", jobs, "--write"]

        assert 1 == await asyncio.to_thread(run_command, ["regrade", *arguments, "phoenix_annotations"])
        assert 2 == await asyncio.to_thread(run_command, ["regrade", *arguments, "debug"])
        backend.answer = lambda call: (401, {})
        assert 2 == await asyncio.to_thread(run_command, ["regrade", *arguments, "phoenix_annotations"])

    written = [entry for call in backend.calls[:-1] for entry in _objects(call.body["data"])]
    assert {run.run.span_id.hex() for run in runs if run.run.span_id} == {
        entry["span_id"] for entry in written
    }
    assert {"get_humidity"} == {entry["name"] for entry in written}
    errors = capsys.readouterr().err
    assert f"{len(runs)} verdicts written to phoenix_annotations" in errors
    assert (
        '--write: "debug" is no exporter of scores of the service file; those are: phoenix_annotations'
        in errors
    )
    assert "--write: not accepted: " in errors


def _objects(value: object) -> list[dict[str, Any]]:
    assert isinstance(value, list)
    return value


def test_results_are_written_to_the_store_apart_from_live_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = criteria_file(tmp_path / "old.json", count("get_humidity", 1))
    new = criteria_file(tmp_path / "new.json", count("get_humidity", 2))
    path = tmp_path / "runs.db"
    runs = recorded(old, CORPUS)
    queries = filled(runs, path)
    before = queries.evaluation_counts()
    arguments = ["regrade", "--store", str(path), "--criteria", new, "--jobs", "1", "--write", "store"]

    assert 1 == run_command([*arguments, "--name", "stricter", "--by", "anna"])
    assert "regrade 1 written to the store: " in capsys.readouterr().err
    assert 2 == run_command([*arguments, "--until", "2001-01-01"])

    (regrade,) = Regrades(queries).each()
    assert ("stricter", "anna", new, len(runs)) == (
        regrade.name, regrade.author, regrade.criteria, regrade.runs,
    )  # fmt: skip
    assert [] == Regrades(queries).each(written=False)
    changed = Regrades(queries).changes(regrade.id)
    assert {("get_humidity", "pass", "fail")} <= {(one.evaluation, one.old, one.new) for one in changed}
    (failed,) = [one for one in changed if one.new == "fail" and one.old == "pass"][:1]
    found = queries.find(RunFilter(regrade=f"{regrade.id}.{failed.number}"))
    assert failed.count == len(found)
    assert {"pass"} == {run.outcome for run in found}
    assert before == queries.evaluation_counts()

    manage = ["regrade", "--store", str(path)]
    assert 0 == run_command([*manage, "--list"])
    listed = capsys.readouterr().out.splitlines()[-1].split()
    assert ["1", str(len(runs)), "anna", "stricter"] == [listed[0], *listed[3:]]
    assert 2 == run_command([*manage, "--remove", "2"])
    assert "--remove: no regrade 2 in the store" in capsys.readouterr().err
    assert 0 == run_command([*manage, "--remove", "1"])
    assert [] == Regrades(queries).each()


def test_runs_that_this_version_cannot_read_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    criteria = criteria_file(tmp_path / "criteria.json", count("get_humidity", 1))
    runs = recorded(criteria, CORPUS)
    filled(runs, tmp_path / "runs.db")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as store, store:
        store.execute("UPDATE lines SET line = ? WHERE id = 1", (zlib.compress(b'{"schema": 99}'),))

    options = ["--store", str(tmp_path / "runs.db"), "--criteria", criteria, "--jobs", "1"]
    assert 0 == run_command(["regrade", *options])

    printed = capsys.readouterr()
    assert "1 runs left out: this version cannot read them" in printed.err
    assert f"{len(runs) - 1} agent runs" in printed.out


def test_verdicts_over_conversations_are_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    criteria = criteria_file(tmp_path / "criteria.json", VERIFIED_FIRST, agent="*")
    filled(recorded(criteria, CORPUS), tmp_path / "runs.db")
    arguments = [
        "--store",
        str(tmp_path / "runs.db"),
        "--criteria",
        criteria,
        "--write",
        "phoenix_annotations",
    ]

    assert 2 == run_command(["regrade", *arguments])
    assert "--write: verdicts over conversations are only printed" in capsys.readouterr().err
