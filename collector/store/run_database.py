"""The SQLite database behind the store: its tables, what is written and what has to go. Blocking.

A line stands apart from what is searched by, so that a search reads no content. The counts of an hour are
kept beside the runs, so that a page over many runs reads few rows. The text index is made of generations,
each for the runs from one on: to forget old words, a whole one is dropped.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path

from collector.errors import TracegradeError
from collector.store.run_rows import HourKey, RunRows

_VERSION = 2
_APPLICATION = 0x74677264
"""Marks a file as ours: no other database is ever written to."""
_PRUNED_AT_A_TIME = 200
_FULL, _ROOMY = 0.8, 0.75
"""From which share of the limit on runs are removed, and down to which."""
_GENERATIONS = 24
"""Into how many parts of the limit the text index is split, about."""
_ROWS_PER_STATEMENT = 500
"""Of at most 15 columns: SQLite takes 32,766 values a statement."""
_BUSY_SECONDS = 2.0
_HOUR_MILLISECONDS = 3_600_000

_SCHEMA = """
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, time INTEGER NOT NULL, agent TEXT NOT NULL, version TEXT NOT NULL,
  service TEXT NOT NULL, tenant TEXT NOT NULL, trace TEXT NOT NULL, span TEXT NOT NULL,
  conversation TEXT NOT NULL, finish_reason TEXT NOT NULL, outcome TEXT NOT NULL,
  calls INTEGER NOT NULL, failed_calls INTEGER NOT NULL, seconds REAL, dialect TEXT NOT NULL
);
CREATE INDEX runs_by_time ON runs (time);
CREATE INDEX runs_by_agent ON runs (agent);
CREATE INDEX runs_by_tenant ON runs (tenant);
CREATE INDEX runs_by_outcome ON runs (outcome);
CREATE INDEX runs_by_trace ON runs (trace);
CREATE TABLE lines (id INTEGER PRIMARY KEY, line BLOB NOT NULL);
CREATE TABLE results (
  evaluation TEXT NOT NULL, outcome TEXT NOT NULL, run INTEGER NOT NULL,
  PRIMARY KEY (evaluation, outcome, run)
) WITHOUT ROWID;
CREATE INDEX results_by_run ON results (run);
CREATE TABLE tools (tool TEXT NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (tool, run)) WITHOUT ROWID;
CREATE INDEX tools_by_run ON tools (run);
CREATE TABLE generations (first_run INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
"""
_HOURS_SCHEMA = """
CREATE TABLE hours (
  tenant TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, label TEXT NOT NULL,
  version TEXT NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL, total REAL NOT NULL,
  PRIMARY KEY (kind, agent, name, label, version, hour, tenant)
) WITHOUT ROWID;
CREATE INDEX hours_by_hour ON hours (hour);
"""
_UPGRADES = {
    1: f"""
ALTER TABLE runs ADD COLUMN dialect TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_by_tenant ON runs (tenant);
ALTER TABLE hours RENAME TO old_hours;
DROP INDEX hours_by_hour;
{_HOURS_SCHEMA}
INSERT INTO hours SELECT '', agent, kind, name, label, version, hour, count, total FROM old_hours;
DROP TABLE old_hours;
"""
}
"""What makes of each older version the next one. Runs of version 1 had no tenant."""

_MARKS = "CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID"
"""Came later, and is of no matter to releases that do not know it."""


class StoreUnusable(TracegradeError):
    """The file is no store of ours, or cannot be opened; the message says so in one line."""


class RunDatabase:
    """One database, in a file or in memory: one thread writes, any thread reads.

    A file is read over connections of its own, which cannot write; what is in memory has one, which
    readers and the writer take in turns.
    """

    def __init__(self, path: Path | None, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether there is something to read and to write."""
        return self._connection is not None

    def open(self) -> int:
        """Open or make it; answers which older version it was of, 0 if it was of none.

        Raises:
            StoreUnusable: the file holds something else.
            sqlite3.Error: the disk.
            OSError: the disk.
        """
        self.close()
        if self._path is None:
            connection = _connected(":memory:")
        else:
            # Made here, so that at no time others can read it.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = _connected(str(self._path))
        try:
            before = self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return before

    def _prepare(self, connection: sqlite3.Connection) -> int:
        before = 0
        if self._path is not None:
            before = _checked_version(connection, self._path, may_be_empty=True)
            os.chmod(self._path, 0o600)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_MARKS)
        if before == _VERSION:
            return 0
        changes = (
            [_UPGRADES[version] for version in range(before, _VERSION)]
            if before
            else [_SCHEMA, _HOURS_SCHEMA]
        )
        connection.executescript(
            f"BEGIN IMMEDIATE;{''.join(changes)}PRAGMA application_id = {_APPLICATION};"
            f"PRAGMA user_version = {_VERSION};COMMIT;"
        )
        return before

    def take_marks(self) -> dict[str, int]:
        """What `leave_marks` left, which is gone then.

        Raises:
            sqlite3.Error: the disk.
        """
        with self._lock:
            connection = self._opened()
            with _transaction(connection):
                marks: dict[str, int] = dict(connection.execute("SELECT name, value FROM marks"))
                connection.execute("DELETE FROM marks")
            return marks

    def leave_marks(self, marks: Mapping[str, int]) -> None:
        """Keep some numbers for the next process.

        Raises:
            sqlite3.Error: the disk.
        """
        with self._lock:
            connection = self._opened()
            with _transaction(connection):
                connection.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", marks.items())

    def close(self) -> None:
        """Close it; safe before `open` and twice."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()

    def used_bytes(self) -> int:
        """What is in use of the limit."""
        with self._lock:
            return _used_bytes(self._opened())

    def write(self, runs: Sequence[RunRows], keep_from_milliseconds: int) -> int:
        """Add runs, and remove those older than `keep_from_milliseconds` and what no longer fits.

        Returns how many were removed. All of `runs` are added or none. Together they must be small beside the
        limit: room is made after they are written.

        Raises:
            sqlite3.Error: the disk.
        """
        with self._lock:
            connection = self._opened()
            with _transaction(connection):
                _add(connection, runs, self._limit_bytes // _GENERATIONS)
                removed = _remove_oldest(connection, keep_from_milliseconds)
            if _used_bytes(connection) > _FULL * self._limit_bytes:
                removed += self._make_room(connection)
            return removed

    def _make_room(self, connection: sqlite3.Connection) -> int:
        removed = 0
        while _used_bytes(connection) > _ROOMY * self._limit_bytes:
            with _transaction(connection):
                found = _remove_oldest(connection)
            if not found:
                break
            removed += found
        return removed

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read by.

        Raises:
            StoreUnusable: it is not open.
        """
        if self._path is not None and self.is_open:
            connection = _connected_read_only(self._path)
            try:
                yield connection
            finally:
                connection.close()
        else:
            with self._lock:
                yield self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnusable("the store of runs is not open")
        return self._connection


def open_store_file(path: Path) -> RunDatabase:
    """The store in a file that a service wrote, or writes still; it can only be read.

    Raises:
        StoreUnusable: there is none.
    """
    if not path.is_file():
        raise StoreUnusable(f"{path}: there is no such file")
    try:
        connection = _connected_read_only(path)
        try:
            if _checked_version(connection, path, may_be_empty=False) != _VERSION:
                raise StoreUnusable(
                    f"{path}: is the store of an older version of tracegrade; a service that keeps its runs "
                    "in it upgrades it"
                )
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreUnusable(f"{path}: cannot be read as a store of runs: {error}") from error
    return _ReadOnlyDatabase(path)


class _ReadOnlyDatabase(RunDatabase):
    def __init__(self, path: Path) -> None:
        super().__init__(path, 0)

    @property
    def is_open(self) -> bool:
        return True


def _connected(database: str, *, is_uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        database,
        uri=is_uri,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )


def _connected_read_only(path: Path) -> sqlite3.Connection:
    return _connected(f"{path.absolute().as_uri()}?mode=ro", is_uri=True)


def _checked_version(connection: sqlite3.Connection, path: Path, *, may_be_empty: bool) -> int:
    """The version of the file, 0 where it is empty.

    Raises StoreUnusable unless the file is ours; sqlite3.Error where it is no database.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if is_empty and may_be_empty:
        return 0
    if application != _APPLICATION:
        raise StoreUnusable(f"{path}: is no store of runs")
    if not 1 <= version <= _VERSION:
        raise StoreUnusable(f"{path}: is the store of a newer version of tracegrade; remove it for a new one")
    return version


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
            connection.execute("ROLLBACK")
        raise


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return int(pages - free) * size


def _add(connection: sqlite3.Connection, runs: Sequence[RunRows], generation_bytes: int) -> None:
    if not runs:
        return
    first: int = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()[0]
    numbered = list(enumerate(runs, first))
    _insert(connection, "runs", [(at, *run.run) for at, run in numbered])
    _insert(connection, "lines", [(at, run.line) for at, run in numbered])
    _insert(
        connection,
        "results",
        [(name, outcome, at) for at, run in numbered for name, outcome in run.results],
    )
    _insert(connection, "tools", [(tool, at) for at, run in numbered for tool in run.tools])
    size = sum(run.size for run in runs)
    words = _index_for(connection, first, size, generation_bytes)
    _insert(connection, f"{words} (rowid, text)", [(at, run.words) for at, run in numbered])
    sums: dict[HourKey, tuple[int, float]] = {}
    for run in runs:
        for key, amount in run.hours:
            count, total = sums.get(key, (0, 0.0))
            sums[key] = count + 1, total + amount
    _insert(
        connection,
        "hours (tenant, agent, kind, name, label, version, hour, count, total)",
        [(*key, *sum_) for key, sum_ in sums.items()],
        "ON CONFLICT DO UPDATE SET count = count + excluded.count, total = total + excluded.total",
    )


def _insert(
    connection: sqlite3.Connection, into: str, rows: Sequence[tuple[object, ...]], conflict: str = ""
) -> None:
    """Insert `rows`, many by one statement.

    Each statement gives the interpreter's lock away and has to get it back, which under load takes many
    times as long as an insert.
    """
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        some = rows[start : start + _ROWS_PER_STATEMENT]
        values = ",".join([f"({','.join('?' * len(some[0]))})"] * len(some))
        connection.execute(f"INSERT INTO {into} VALUES {values} {conflict}", list(chain.from_iterable(some)))


def word_indices(connection: sqlite3.Connection) -> list[str]:
    """The tables of the text index, oldest first; they may hold words of runs that are gone."""
    return [f"words_{first}" for first in _generations(connection)]


def _generations(connection: sqlite3.Connection) -> list[int]:
    """The first runs of the tables of the text index, oldest first."""
    return [first for (first,) in connection.execute("SELECT first_run FROM generations ORDER BY first_run")]


def _index_for(connection: sqlite3.Connection, run: int, size: int, generation_bytes: int) -> str:
    """The table for the words of the runs from `run` on, which bring `size` bytes; made if need be."""
    newest = connection.execute(
        "SELECT first_run, bytes FROM generations ORDER BY first_run DESC LIMIT 1"
    ).fetchone()
    if newest is not None and newest[1] < generation_bytes:
        connection.execute("UPDATE generations SET bytes = bytes + ? WHERE first_run = ?", (size, newest[0]))
        return f"words_{newest[0]}"
    connection.execute("INSERT INTO generations VALUES (?, ?)", (run, size))
    connection.execute(
        f"CREATE VIRTUAL TABLE words_{run} USING fts5 (text, content='', columnsize=0, detail=none)"
    )
    return f"words_{run}"


def _remove_oldest(connection: sqlite3.Connection, before_milliseconds: int | None = None) -> int:
    """Remove some of the oldest runs, of those before a time if one is given; how many."""
    condition, parameters = "", tuple[int, ...]()
    if before_milliseconds is not None:
        oldest = connection.execute("SELECT min(time) FROM runs").fetchone()[0]
        if oldest is None or oldest >= before_milliseconds:
            return 0
        condition, parameters = "WHERE time < ?", (before_milliseconds,)
    # Ids are in the order of time, but for a clock that was set back.
    last = connection.execute(
        f"SELECT max(id) FROM (SELECT id FROM runs {condition} ORDER BY id LIMIT {_PRUNED_AT_A_TIME})",
        parameters,
    ).fetchone()[0]
    if last is None:
        return 0
    removed = connection.execute("DELETE FROM runs WHERE id <= ?", (last,)).rowcount
    for table, column in (("lines", "id"), ("results", "run"), ("tools", "run")):
        connection.execute(f"DELETE FROM {table} WHERE {column} <= ?", (last,))
    for first, following in pairwise(_generations(connection)):
        if following <= last + 1:
            connection.execute(f"DROP TABLE words_{first}")
            connection.execute("DELETE FROM generations WHERE first_run = ?", (first,))
    oldest = connection.execute("SELECT min(time) FROM runs").fetchone()[0]
    if oldest is not None:
        connection.execute("DELETE FROM hours WHERE hour < ?", (oldest // _HOUR_MILLISECONDS,))
    else:
        connection.execute("DELETE FROM hours")
    return removed
