"""The store takes runs off the loop, stays within its bounds, and never costs more than its own runs."""

import asyncio
import json
import os
import re
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

from collector.clock import ManualClock, SystemClock
from collector.store import RunDatabase, RunFilter, RunQueries, StoreUnusable, open_store_file
from collector.store.run_rows import rows_of
from collector.store.run_store import STORE
from collector.telemetry import Metrics
from processors.model import GradedRun
from tests.support.backends import eventually
from tests.support.graded_runs import trace_of
from tests.support.stored_runs import MINUTE, NOW, filled, graded_run, run_store


def _deadline() -> float:
    return SystemClock().monotonic() + 10


@pytest.mark.parametrize("in_file", [True, False], ids=["file", "memory"])
async def test_what_is_exported_is_found(tmp_path: Path, in_file: bool) -> None:
    metrics = Metrics()
    path = tmp_path / "runs.db" if in_file else None
    store = run_store(metrics, retention="9999999h", path=path)
    done: list[int] = []
    await store.start()

    for number in range(1, 151):
        store.export_results(trace_of(graded_run(number)), lambda: done.append(1))
    await eventually(lambda: 150 == len(done), "everything is written")

    assert 150 == len(store.queries.find(RunFilter(), 1000))
    assert (150,) == (metrics.store_runs.values[("written",)],)
    assert 0 < metrics.store_bytes.values[()] < metrics.store_limit_bytes.values[()]
    await store.shutdown(_deadline())


async def test_what_waits_is_rows_and_not_the_runs_with_all_that_they_were_read_from() -> None:
    store, run = run_store(), graded_run(1)
    before = sys.getrefcount(run)

    store.export_results(trace_of(run))

    assert before == sys.getrefcount(run)
    assert 1 == store._others.runs


async def test_a_restart_finds_what_was_there_in_a_file_that_nobody_else_reads(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.touch(0o644)
    for number in (1, 2):
        store = run_store(path=path, retention="9999999h")
        await store.start()
        store.export_results(trace_of(graded_run(number)))
        await store.shutdown(_deadline())
        await eventually(lambda: not path.with_name("runs.db-wal").exists(), "it is closed")

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [2, 1] == [int(run.trace_id, 16) for run in RunQueries(open_store_file(path)).find(RunFilter())]


@pytest.mark.parametrize(("version", "age"), [(4, "an older"), (99, "a newer")])
async def test_a_store_of_another_version_is_left_as_it_is(
    tmp_path: Path, version: int, age: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "runs.db"
    filled([graded_run(1)], path).database.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    message = f"{path}: a run store of {age} version of tracegrade; remove it to create a new one"

    with pytest.raises(StoreUnusable, match=re.escape(message)):
        RunDatabase(path, 1024**3).open()
    with pytest.raises(StoreUnusable, match=re.escape(message)):
        open_store_file(path)
    store = run_store(path=path)
    await store.start()
    await eventually(lambda: bool(caplog.records), "it has failed")
    with pytest.raises(StoreUnusable, match=re.escape(message)):
        store.queries.newest()
    await store.shutdown(_deadline())

    assert [message] == [getattr(record, "error", "") for record in caplog.records]
    assert before == path.read_bytes()


def test_the_oldest_go_first_by_age(tmp_path: Path) -> None:
    database = RunDatabase(tmp_path / "runs.db", 64 * 1024**2)
    database.open()
    database.write([rows_of(graded_run(number), NOW).packed() for number in range(1, 101)], 0)
    queries = RunQueries(database)

    removed = database.write([], (NOW + 61 * MINUTE) // 1_000_000)

    assert 60 == removed
    assert [*range(100, 60, -1)] == [int(run.trace_id, 16) for run in queries.find(RunFilter(), 1000)]
    assert [] == queries.find(RunFilter(text="number60"))
    assert 1 == len(queries.find(RunFilter(text="number61")))
    assert 40 <= sum(agent.runs.count for agent in queries.agents()) < 100


def test_the_oldest_go_first_by_size_and_the_file_keeps_within_its_limit(tmp_path: Path) -> None:
    limit = 8 * 1024**2
    path = tmp_path / "runs.db"
    database = RunDatabase(path, limit)
    database.open()
    removed = 0
    for start in range(0, 6000, 100):
        texts = [os.urandom(1024).hex() for _ in range(100)]
        rows = [rows_of(graded_run(start + at, text=text), NOW).packed() for at, text in enumerate(texts, 1)]
        removed += database.write(rows, 0)
        assert database.used_bytes() <= limit
    found = RunQueries(database).find(RunFilter(), 1000)

    assert path.stat().st_size <= limit
    assert 1000 < removed < 5900
    assert 6000 == int(found[0].trace_id, 16)
    with database.reading() as connection:
        connection.row_factory = None
        counts = {
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("runs", "lines")
        }
        assert {6000 - removed} == counts
    checked = sqlite3.connect(path)
    assert [("ok",)] == checked.execute("PRAGMA integrity_check").fetchall()
    checked.close()


@pytest.mark.parametrize("what", ["a text", "another database", "a folder", "no folder"])
async def test_what_is_no_store_costs_the_store_and_is_left_as_it_is(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "runs.db"
    if what == "a text":
        path.write_text("a diary, of more than a few words " * 100)
    elif what == "another database":
        sqlite3.connect(path).execute("CREATE TABLE mine (a)").connection.close()
    elif what == "a folder":
        path.mkdir()
    else:
        path = tmp_path / "nowhere" / "runs.db"
    before = path.read_bytes() if path.is_file() else b""
    metrics = Metrics()
    store = run_store(metrics, path=path)
    done: list[int] = []

    await store.start()
    for number in range(5):
        store.export_results(trace_of(graded_run(number)), lambda: done.append(1))
    await store.shutdown(_deadline())

    assert 5 == len(done)
    assert 5 == metrics.results_dropped.values[("disk", STORE)]
    assert 1 == metrics.store_failures.values[()]
    assert 1 == len(caplog.records)
    assert before == (path.read_bytes() if path.is_file() else b"")


async def test_a_disk_that_is_well_again_is_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    clock = ManualClock()
    store = run_store(clock=clock, path=folder / "runs.db", retention="9999999h")
    await store.start()
    store.export_results(trace_of(graded_run(1)))
    await eventually(lambda: bool(clock._sleepers), "it waits")

    folder.mkdir()
    clock.advance(60)
    await eventually(lambda: not store._is_broken, "it is open")
    store.export_results(trace_of(graded_run(2)))
    await eventually(lambda: bool(store.queries.newest()), "the run is written")

    await store.shutdown(clock.monotonic() + 10)


async def test_more_runs_than_there_is_time_for_are_dropped_and_counted_failed_ones_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    clock = ManualClock()  # its rests never end
    path = tmp_path / "runs.db"
    store = run_store(metrics, clock, path=path, retention="9999999h")
    done: list[int] = []
    await store.start()

    for number in range(5_000):
        store.export_results(trace_of(graded_run(number)), lambda: done.append(1))
        if number % 500 == 0:
            await asyncio.sleep(0.01)

    await store.shutdown(SystemClock().monotonic() + 10)
    await eventually(lambda: not path.with_name("runs.db-wal").exists(), "it is closed")

    queries = RunQueries(open_store_file(path))
    dropped = metrics.results_dropped.values[("queue_full", STORE)]
    assert 3_900 < dropped <= 4_000
    assert {"weather_agent": dropped} == queries.not_stored()
    assert 500 == len(queries.find(RunFilter(outcome="fail"), 1000))
    assert 5_000 == len(done)
    assert 5_000 - dropped == metrics.store_runs.values[("written",)]
    assert "Runs are not stored: more arrive than the store may take (store.max_cpu)." in caplog.messages


async def test_a_run_that_would_push_out_the_others_is_not_kept() -> None:
    metrics = Metrics()
    store = run_store(metrics, max_mib=8, retention="9999999h")
    await store.start()

    store.export_results(trace_of(graded_run(1, text=os.urandom(400_000).hex()), graded_run(2)))
    await eventually(lambda: bool(store.queries.newest()), "the other is written")

    assert [2] == [int(run.trace_id, 16) for run in store.queries.find(RunFilter())]
    await eventually(lambda: bool(metrics.results_dropped.values[("too_large", STORE)]), "it is counted")
    await store.shutdown(_deadline())


def test_a_file_that_is_read_is_never_written(tmp_path: Path) -> None:
    database = RunDatabase(tmp_path / "runs.db", 64 * 1024**2)
    database.open()
    database.write([rows_of(graded_run(1), NOW).packed()], 0)

    with database.reading() as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM runs")
    with pytest.raises(StoreUnusable, match="no such file"):
        open_store_file(tmp_path / "other.db")


def test_the_line_is_the_only_content() -> None:
    """What content rules hide is in no column: the rows are made of the shown run alone."""
    run: GradedRun = graded_run(3)

    rows = rows_of(run, NOW).packed()

    assert "Oslo" in " ".join(rows.texts)
    assert "Oslo" not in json.dumps([rows.run, rows.results, rows.tools, list(rows.hours)])
