"""Results by other criteria in the store: apart from live ones, bounded, and gone with their runs."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from collector.store import ChangedResult, RegradeRefused, Regrades, RunDatabase, RunFilter, RunQueries
from tests.support.stored_runs import MINUTE, NOW, add_runs, filled, graded_run

LATER = NOW // 1_000_000 + 60 * 60_000


def changed(run: int, explanation: str = "", **fields: str) -> ChangedResult:
    values = {
        "agent": "weather_agent",
        "evaluation": "args",
        "old": "pass",
        "new": "fail",
        "cause": "a",
        "call": "",
    }
    return ChangedResult(run, **values | fields, score=0.0, explanation=explanation)


def begun(regrades: Regrades, name: str = "draft", at: int = LATER) -> int:
    return regrades.begin(
        at, name=name, criteria="draft.yaml", digest="abc", author="anna", credential="token 1"
    ).id


def regraded(regrades: Regrades, *results: ChangedResult, runs: Sequence[int] = (1, 2, 3)) -> int:
    number = begun(regrades)
    regrades.add(number, runs, results, 5, 1)
    return regrades.write(number, "", "anna").id


def test_what_differs_is_counted_by_agent_and_cause_and_leads_to_its_runs() -> None:
    queries = filled([graded_run(number) for number in range(1, 6)])
    live = (queries.agents(), queries.evaluation_counts(), queries.causes())
    regrades = Regrades(queries)
    number = begun(regrades)
    regrades.add(number, [1, 2], [changed(1), changed(2, "too few"), changed(2, "again", call="x")], 4, 2)
    regrades.add(number, [3, 4], [changed(3), changed(4, cause="b\ud800")], 4, 2)

    assert [] == regrades.each()
    assert [] == regrades.of_run(1)
    written = regrades.write(number, "better", "bert")

    assert [written] == regrades.each()
    assert ("better", "bert", "draft.yaml", 4, 8, 4) == (
        written.name, written.author, written.criteria, written.runs, written.same, written.removed,
    )  # fmt: skip
    assert [(1, 4, "a"), (2, 1, "b?")] == [
        (one.number, one.count, one.cause) for one in regrades.changes(number)
    ]
    assert [3, 2, 1] == [run.id for run in queries.find(RunFilter(regrade=f"{number}.1"))]
    assert [4, 3, 2, 1] == [run.id for run in queries.find(RunFilter(text=f"regrade:{number}"))]
    ((_, results),) = regrades.of_run(2)
    assert [("args", "pass", "fail", "", "too few"), ("args", "pass", "fail", "x", "again")] == [
        (one.evaluation, one.old, one.new, one.call, one.explanation) for one in results
    ]
    assert [] == regrades.of_run(5)
    assert live == (queries.agents(), queries.evaluation_counts(), queries.causes())


def test_a_run_that_stays_as_it_was_is_known_to_have_been_graded_again() -> None:
    regrades = Regrades(filled([graded_run(1)]))
    number = regraded(regrades, runs=[1])

    assert [(number, [])] == [(regrade.id, results) for regrade, results in regrades.of_run(1)]


def test_results_go_with_their_runs_and_regrades_with_their_age() -> None:
    queries = filled([graded_run(number) for number in range(1, 4)])
    regrades = Regrades(queries)
    number = regraded(regrades, changed(1), changed(3))

    add_runs(queries.database, [graded_run(4)], NOW // 1_000_000 + 3 * 60_000)
    assert [] == regrades.of_run(1)
    assert 1 == len(regrades.of_run(3))
    assert [3] == [run.id for run in queries.find(RunFilter(regrade=f"{number}.1"))]
    add_runs(queries.database, [graded_run(10_000)], LATER + 1)
    assert [] == regrades.each()
    assert [] == regrades.changes(number)


def test_the_newest_are_retained_within_their_room() -> None:
    queries = filled([graded_run(1)], limit_mib=8)
    regrades = Regrades(queries)
    numbers = [regraded(regrades, runs=[1]) for _ in range(22)]
    assert numbers[:1:-1] == [one.id for one in regrades.each()]

    large = [changed(1, "x" * 1_000, cause=str(cause)) for cause in range(600)]
    newest = regraded(regrades, *large, runs=[1])
    assert numbers[:2:-1] == [one.id for one in regrades.each()][1:]
    tried = begun(regrades)
    regrades.add(tried, [1], large, 0, 0)
    assert newest == regrades.each()[0].id  # nothing written goes for what is only tried
    regrades.remove(tried)
    another = regraded(regrades, *large, runs=[1])
    assert [another] == [one.id for one in regrades.each()], newest
    with pytest.raises(RegradeRefused, match=r"more than 1 MiB.*choose a shorter time"):
        regraded(regrades, *large, *large, runs=[1])
    assert [another] == [one.id for one in regrades.each()]
    with queries.database.reading() as connection:
        assert {another} == {row[0] for row in connection.execute("SELECT regrade FROM regraded")}


def test_what_nobody_decided_on_is_removed_after_a_day() -> None:
    regrades = Regrades(filled([graded_run(1)]))
    begun(regrades)
    second = begun(regrades, at=LATER + 3_600_000)
    third = begun(regrades, at=LATER + 24 * 3_600_000 + 1)

    assert [third, second] == [one.id for one in regrades.each(written=False)]
    regrades.remove(third)
    with pytest.raises(RegradeRefused, match="removed meanwhile"):
        regrades.add(third, [1], [], 0, 0)
    with pytest.raises(RegradeRefused, match="removed meanwhile"):
        regrades.write(third, "", "")


def test_a_tenant_has_regrades_of_its_own_alone() -> None:
    queries = filled([graded_run(number, tenant=name) for number, name in ((1, "blue"), (2, "green"))])
    blue = Regrades(queries.of_tenant("blue"))
    number = regraded(blue, changed(1), runs=[1])

    green = Regrades(queries.of_tenant("green"))
    assert [] == green.each()
    assert None is green.get(number)
    green.remove(number)
    assert [number] == [one.id for one in Regrades(queries).each()]
    assert [] == queries.of_tenant("green").find(RunFilter(regrade=str(number)))


def test_the_results_of_a_regrade_go_with_their_runs(tmp_path: Path) -> None:
    database = RunDatabase(tmp_path / "runs.db", 64 << 20)
    database.open()
    add_runs(database, [graded_run(1)], 0)
    queries = RunQueries(database)
    (run,) = queries.find(RunFilter())

    regraded(Regrades(queries), changed(run.id), runs=[run.id])

    assert 1 == len(Regrades(queries).of_run(run.id))
    add_runs(database, [graded_run(2)], NOW // 1_000_000 + 100 * MINUTE)
    assert [] == Regrades(queries).of_run(run.id)
    database.close()


def test_the_number_of_distinct_changes_is_bounded() -> None:
    regrades = Regrades(filled([graded_run(1)]))
    number = begun(regrades)
    regrades.add(number, [1], [changed(1, cause=str(cause)) for cause in range(5_010)], 0, 0)

    shown = regrades.changes(number)
    assert 200 == len(shown)
    assert ("", 10) == (shown[0].cause, shown[0].count)
    with pytest.raises(RegradeRefused, match="choose fewer agents"):
        regrades.add(number, [1], [changed(1, agent=str(agent)) for agent in range(5_010)], 0, 0)
    assert {"number", "agent", "evaluation", "old", "new", "cause", "count"} == set(asdict(shown[0]))
