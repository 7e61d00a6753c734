"""Runs on the command line: out of the file of a store, and from the page of a running service."""

import asyncio
import csv
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from collector.cli import run_command
from collector.clock import SystemClock
from collector.page import PageConfig, PageServer, Views
from collector.store import RunDatabase, RunQueries
from processors.annotation import run_to_json
from processors.criteria import CriteriaSet
from processors.model import NotEvaluatedReason, Outcome, Severity
from tests.support.graded_runs import result
from tests.support.stored_runs import filled, graded_run

TRACE = f"{20:032x}"


@pytest.fixture
async def sources(tmp_path: Path) -> AsyncIterator[list[list[str]]]:
    """The arguments that name the same runs: their file, a service file, and a page that asks for a token."""
    path = tmp_path / "runs.db"
    filled([graded_run(number) for number in range(1, 31)], path)
    (tmp_path / "tracegrade.yaml").write_text("store: {path: runs.db}")
    (tmp_path / "tokens.txt").write_text("sesame\n")
    config = PageConfig.model_validate(
        {"endpoint": "127.0.0.1:0", "auth": {"bearer_token_file": tmp_path / "tokens.txt"}}
    )
    clock = SystemClock()
    database = RunDatabase(path, 64 * 1024 * 1024)
    database.open()
    server = PageServer(config, Views(RunQueries(database), lambda: CriteriaSet(), clock))
    await server.start()
    yield [
        ["--store", str(path)],
        ["--config", str(tmp_path / "tracegrade.yaml")],
        ["--endpoint", server.endpoint, "--token-file", str(tmp_path / "tokens.txt")],
    ]
    await server.shutdown(clock.monotonic() + 5)
    database.close()


@pytest.mark.parametrize("source", range(3), ids=["file", "configuration", "service"])
async def test_runs_are_found_and_shown(
    sources: list[list[str]], source: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def printed(*arguments: str, code: int = 0) -> str:
        assert code == await asyncio.to_thread(run_command, [*arguments, *sources[source]])
        return capsys.readouterr().out

    agents = await printed("agents")
    assert "weather_agent" in agents
    assert "30" in agents
    found = await printed("runs", "--evaluation", "args", "--outcome", "fail")
    assert [f"{number:032x}" for number in (30, 20, 10)] == [
        line.split()[-1] for line in found.splitlines()[1:]
    ]
    fielded = "input:number20 outcome:fail"
    assert "number20" in await printed("runs", "--text", fielded, "--json")
    assert "" == await printed("runs", "--text", "anser:number20", code=2)
    assert "" == await printed("runs", "--text", "agent:weather_agnt", code=2)
    as_json = await printed("runs", "--text", "number20", "--json")
    assert [run_to_json(graded_run(20))] == [json.loads(line) for line in as_json.splitlines()]
    assert "" == await printed("runs", "--since", "1h")
    assert "" == await printed("runs", "--until", "2026-01-31")
    assert 9 == len((await printed("runs", "--since", "2026-01-31T08:22+00:00")).splitlines()[1:])
    assert 30 == len((await printed("runs", "--since", "2026-01-31", "--version", "1.0")).splitlines()[1:])
    shown = await printed("show", TRACE.upper())
    assert "FAIL" in shown
    assert "get_temperature" in shown
    assert as_json == await printed("show", TRACE, "--json")
    assert "" == await printed("show", "ff", code=1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["runs"], "expected --store, --endpoint, or --config with store.path"),
        (["agents", "--store", "nowhere.db"], "nowhere.db: no such file"),
        (["agents", "--endpoint", "127.0.0.1:1"], "no answer from http://127.0.0.1:1"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == run_command(arguments)

    assert expected in capsys.readouterr().err


async def test_a_token_is_needed_where_the_page_asks_for_one(
    sources: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == await asyncio.to_thread(run_command, ["agents", *sources[2][:2]])

    assert "401" in capsys.readouterr().err


def _listed(
    capsys: pytest.CaptureFixture[str], path: Path, *arguments: str, code: int = 0
) -> tuple[str, str]:
    assert code == run_command(["runs", "--store", str(path), *arguments])
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_all_runs_are_listed_however_many_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    filled([graded_run(number) for number in range(1, 2502)], path)

    listed, noted = _listed(capsys, path, "--all", "--csv")
    rows = list(csv.DictReader(listed.splitlines()))

    assert [f"{number:032x}" for number in range(2501, 0, -1)] == [row["trace_id"] for row in rows]
    assert "" == noted
    failed = next(row for row in rows if row["outcome"] == "fail")
    assert ("args", "1.50") == (failed["failed"], failed["version"])
    assert failed["reason"].startswith("args: ")
    assert 2501 == len(_listed(capsys, path, "--all", "--json")[0].splitlines())
    listed, noted = _listed(capsys, path, "--limit", "1700")
    assert 1700 == len(listed.splitlines()) - 1
    assert "more runs match" in noted
    assert "" == _listed(capsys, path, "--evaluation", "order", "--limit", "2501")[1]


def test_the_reason_stands_in_the_list_and_chooses_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    unknown = result(
        "cost", Outcome.NOT_EVALUATED, explanation="no usage", reason=NotEvaluatedReason.CONTENT_NOT_CAPTURED
    )
    inapplicable = result("schema", Outcome.NOT_EVALUATED, reason=NotEvaluatedReason.NOT_APPLICABLE)
    advisory = result("style", Outcome.FAIL, explanation="too long", severity=Severity.ADVISORY)
    graded = [
        replace(graded_run(1), results=[unknown]),
        replace(graded_run(2), results=[inapplicable, advisory]),
        replace(
            graded_run(3), results=[result("order", Outcome.FAIL, explanation="=1+1"), advisory, unknown]
        ),
        replace(graded_run(4), results=[inapplicable]),
    ]
    filled(graded, path)

    _, of_4, of_3, of_2, of_1 = _listed(capsys, path)[0].splitlines()

    assert "order: =1+1" in of_3
    assert "style (advisory): too long" in of_2
    assert "order, style (advisory)" in of_3
    assert "not_applicable" not in of_4
    assert "schema" in _listed(capsys, path, "--reason", "not_applicable")[0]
    assert "cost: content_not_captured: no usage" in of_1
    chosen = _listed(capsys, path, "--reason", "content_not_captured")[0].splitlines()[1:]
    assert [f"{3:032x}", f"{1:032x}"] == [line.split()[-1] for line in chosen]
    assert "too long" not in "".join(chosen)
    only = _listed(capsys, path, "--reason", "content_not_captured", "--evaluation", "order")
    assert ("", "no stored run matches\n") == only
    as_csv = _listed(capsys, path, "--evaluation", "order", "--outcome", "fail", "--csv")[0]
    assert "'=1+1" == next(csv.DictReader(as_csv.splitlines()))["reason"]


def test_long_names_are_cut_in_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "runs.db"
    filled([graded_run(1, agent="a" * 300), graded_run(2)], path)

    assert all(len(line) < 250 for line in _listed(capsys, path)[0].splitlines())
    assert 0 == run_command(["agents", "--store", str(path)])
    assert all(len(line) < 250 for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["--agent", "wether_agent"],
            '--agent: no agent "wether_agent" in the store; did you mean "weather_agent"?',
        ),
        (["--evaluation", "ordr"], '--evaluation: no evaluation "ordr" in the store; did you mean "order"?'),
        (["--tool", "rm"], '--tool: no tool "rm" in the store'),
    ],
)
async def test_a_name_that_the_store_does_not_know_is_no_empty_answer(
    sources: list[list[str]], capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    for source in sources:
        assert 2 == await asyncio.to_thread(run_command, ["runs", *arguments, *source])
        assert f"{expected}\n" == capsys.readouterr().err


async def test_a_trace_is_shown_by_the_beginning_of_its_id(
    sources: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "more.db"
    with_id = {
        trace: replace(graded_run(1), run=replace(graded_run(1).run, trace_id=bytes.fromhex(trace)))
        for trace in (f"a434b667{0:024}", f"a4{0:030}")
    }
    filled(list(with_id.values()), path)

    assert 0 == run_command(["show", "A434b667", "--store", str(path), "--json"])
    assert "a434b667000000000000000000000000" == json.loads(capsys.readouterr().out)["trace_id"]
    assert 2 == run_command(["show", "a4", "--store", str(path)])
    assert "several trace ids begin with it: a4000000" in capsys.readouterr().err
    assert 1 == run_command(["show", "b", "--store", str(path)])
    capsys.readouterr()
    assert 2 == await asyncio.to_thread(run_command, ["show", TRACE[:31], *sources[2]])
    assert f"several trace ids begin with it: {30:032x}, " in capsys.readouterr().err


@pytest.mark.parametrize("source", range(3), ids=["file", "configuration", "service"])
async def test_verdicts_are_answered_and_answers_exported(
    sources: list[list[str]], source: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def printed(*arguments: str, code: int = 0) -> str:
        assert code == await asyncio.to_thread(run_command, ["reviews", *arguments, *sources[source]])
        return capsys.readouterr().out

    await printed("add", TRACE, "args", "wrong", "--reviewer", "anna", "--comment", "it was right")
    await printed("add", f"{10:032x}", "args", "right")
    await printed("add", TRACE, "no such check", "right", code=2)
    await printed("add", TRACE, code=2)
    await printed("list", TRACE, code=2)

    assert ["right", "wrong"] == [line.split()[2] for line in (await printed()).splitlines()[1:]]
    (wrong,) = map(json.loads, (await printed("--export", "--answer", "wrong")).splitlines())
    assert (TRACE, "args", "fail", "anna", "it was right") == tuple(
        wrong[name] for name in ("trace_id", "evaluation", "outcome", "reviewer", "comment")
    )
    assert "1 of 2 failures right (9% to 91%)" in await printed("precision")
    tests = await printed("tests")
    assert 1 == tests.count("\n- name:")
    assert "args: pass" in tests
    await printed("add", TRACE, "args", "right")
    assert "" == await printed("tests")


def test_two_runs_are_shown_side_by_side_with_what_differs_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    first, second = graded_run(9), graded_run(10, text="Question\x1b[2J 10")
    (call, *others) = second.run.tool_calls
    calls = [structs.replace(call, arguments={"city": "Rome"}, arguments_text='{"city": "Rome"}'), *others]
    filled([first, replace(second, run=replace(second.run, tool_calls=calls))], path)
    show = ["show", f"{9:032x}", f"{10:032x}", "--store", str(path)]

    assert 0 == run_command(show)
    printed = capsys.readouterr().out
    rows = {tuple(line.split()) for line in printed.splitlines()}
    assert 0 == run_command([*show, "--json"])
    compared = json.loads(capsys.readouterr().out)

    assert {("≠", "verdict", "args", "pass", "fail"), ("verdict", "order", "pass", "pass")} <= rows
    assert ("≠", "arguments:", "city", "Oslo", "Rome") in rows
    assert ("agent", "weather_agent", "weather_agent") in rows
    assert "\x1b" not in printed
    assert [f"{9:032x}", f"{10:032x}"] == [run["trace_id"] for run in compared["runs"]]
    assert ["args"] == [one["name"] for one in compared["verdicts"] if one["differs"]]
    assert 2 == run_command([show[0], "99", *show[1:]])
    assert 1 == run_command(["show", f"{9:032x}", "ee", "--store", str(path)])
    assert "no stored run belongs to trace ee" in capsys.readouterr().err
