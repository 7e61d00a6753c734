"""The SQLite database behind the store: its tables, writing and removal. Blocking.

Lines are in a table of their own, so that a search reads no content. Counts by hour are stored in addition to
the runs, so that a page over many runs reads few rows. The text index consists of generations, each for the
runs from one id on: old words are removed by dropping a whole generation.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType

from collector.errors import TracegradeError
from collector.store.run_rows import HOUR_MILLISECONDS, TEXT_COLUMNS, HourKey, RunRows

_VERSION = 5
"""Of the tables. A file of any other is left as it is."""
_APPLICATION = 0x74677264
"""Marks a file as a run store: no other database is ever written to."""
_PRUNED_AT_A_TIME = 200
_FULL, _ROOMY = 0.8, 0.75
"""Runs are removed once this share of the limit is used, down to the second."""
_GENERATIONS = 24
"""Approximate number of generations of the text index at the limit."""
_ROWS_PER_STATEMENT = 500
"""Of at most 15 columns: SQLite accepts 32,766 values per statement."""
_BUSY_SECONDS = 2.0

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
  evaluation TEXT NOT NULL, outcome TEXT NOT NULL, run INTEGER NOT NULL, exemption TEXT NOT NULL DEFAULT '',
  cause TEXT NOT NULL DEFAULT '', PRIMARY KEY (evaluation, outcome, run)
) WITHOUT ROWID;
CREATE INDEX results_by_run ON results (run);
CREATE TABLE tools (tool TEXT NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (tool, run)) WITHOUT ROWID;
CREATE INDEX tools_by_run ON tools (run);
CREATE TABLE generations (first_run INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
CREATE TABLE hours (
  tenant TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, label TEXT NOT NULL,
  version TEXT NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL, total REAL NOT NULL,
  PRIMARY KEY (kind, agent, name, label, version, hour, tenant)
) WITHOUT ROWID;
CREATE INDEX hours_by_hour ON hours (hour);
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE reviews (
  id INTEGER PRIMARY KEY, milliseconds INTEGER NOT NULL, tenant TEXT NOT NULL, agent TEXT NOT NULL,
  version TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, evaluation TEXT NOT NULL,
  tool_call_id TEXT NOT NULL, outcome TEXT NOT NULL, rules TEXT NOT NULL, answer TEXT NOT NULL,
  comment TEXT NOT NULL, reviewer TEXT NOT NULL, credential TEXT NOT NULL
);
CREATE INDEX reviews_by_trace ON reviews (trace_id);
CREATE INDEX reviews_by_time ON reviews (milliseconds);
CREATE TABLE regrades (
  id INTEGER PRIMARY KEY AUTOINCREMENT, milliseconds INTEGER NOT NULL, tenant TEXT NOT NULL,
  name TEXT NOT NULL, criteria TEXT NOT NULL, digest TEXT NOT NULL, author TEXT NOT NULL,
  credential TEXT NOT NULL, is_written INTEGER NOT NULL, runs INTEGER NOT NULL, same INTEGER NOT NULL,
  removed INTEGER NOT NULL, size INTEGER NOT NULL
);
CREATE TABLE regrade_changes (
  regrade INTEGER NOT NULL, number INTEGER NOT NULL, agent TEXT NOT NULL, evaluation TEXT NOT NULL,
  old TEXT NOT NULL, new TEXT NOT NULL, cause TEXT NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY (regrade, number)
) WITHOUT ROWID;
CREATE TABLE regraded (
  regrade INTEGER NOT NULL, number INTEGER NOT NULL, run INTEGER NOT NULL, call TEXT NOT NULL, score REAL,
  explanation TEXT NOT NULL
);
CREATE INDEX regraded_by_change ON regraded (regrade, number, run);
CREATE INDEX regraded_by_run ON regraded (run);
"""
"""In `regraded` each run of a regrade has a row with the number 0, and one for each result that a change
contains."""
_TEXT_COLUMNS = ", ".join(TEXT_COLUMNS)
_BYTES_FOR_A_REVIEW = 32_768
"""Of the limit, so that even the longest reviews take no more than about a third of it."""


class StoreUnusable(TracegradeError):
    """The file is not a run store, or cannot be opened; the message is one line."""


@dataclass(eq=False)
class RunDatabase:
    """One database, in a file or in memory: one thread writes, any thread reads.

    A file is read over separate connections, which cannot write; a database in memory has one connection,
    which readers and the writer use in turn.
    """

    path: Path | None
    limit_bytes: int
    is_open: bool = False
    problem: str = "it is not open"
    """Why it is not, for readers."""
    on_review: Callable[[], None] = lambda: None
    """Called after each review, in the thread that added it."""

    def __post_init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def open(self) -> None:
        """Open or create it.

        Raises:
            StoreUnusable: the file contains something else, or is of another version.
            sqlite3.Error, OSError: the disk failed.
        """
        self.close()
        if self.path is None:
            connection = _connected(":memory:")
        else:
            # Created here, so that others cannot read it at any time.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = _connected(str(self.path))
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self.is_open = True

    def _prepare(self, connection: sqlite3.Connection) -> None:
        is_empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if self.path is not None:
            if not is_empty:
                _check_version(connection, self.path)
            os.chmod(self.path, 0o600)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        if is_empty:
            connection.executescript(
                f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA application_id = {_APPLICATION};"
                f"PRAGMA user_version = {_VERSION};COMMIT"
            )

    def take_marks(self) -> dict[str, int]:
        """Return and delete what `leave_marks` stored; raises `sqlite3.Error`."""
        with self.writing() as connection:
            marks: dict[str, int] = dict(connection.execute("SELECT name, value FROM marks"))
            connection.execute("DELETE FROM marks")
        return marks

    def leave_marks(self, marks: Mapping[str, int]) -> None:
        """Store some numbers for the next process; raises `sqlite3.Error`."""
        with self.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", marks.items())

    def close(self) -> None:
        """Close it; safe before `open` and twice."""
        with self._lock:
            connection, self._connection, self.is_open = self._connection, None, False
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()

    def used_bytes(self) -> int:
        """Bytes in use."""
        with self._lock:
            return _used_bytes(self._opened())

    def write(
        self,
        runs: Sequence[RunRows],
        keep_from_milliseconds: int,
        not_stored: Mapping[HourKey, int] = MappingProxyType({}),
    ) -> int:
        """Add runs, and remove those older than `keep_from_milliseconds` and what no longer fits.

        `not_stored` counts runs that are not added.
        Returns the number of removed runs. All of `runs` are added or none. Together they must be small
        compared to the limit: room is made after they are written. Raises `sqlite3.Error`.
        """
        with self._lock:
            connection = self._opened()
            with _transaction(connection):
                _add(connection, runs, self.limit_bytes // _GENERATIONS)
                _add_to_hours(connection, {key: (count, 0.0) for key, count in not_stored.items()})
                removed = _remove_oldest(connection, keep_from_milliseconds)
                self.remove_reviews(connection, keep_from_milliseconds)
                self._remove_regrades(connection, keep_from_milliseconds)
            is_full = _used_bytes(connection) > _FULL * self.limit_bytes
            while is_full and _used_bytes(connection) > _ROOMY * self.limit_bytes:
                with _transaction(connection):
                    pruned = _remove_oldest(connection)
                if not pruned:
                    break
                removed += pruned
            return removed

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read from; raises `StoreUnusable` if the database is not open."""
        if self.path is not None and self.is_open:
            with closing(_connected_read_only(self.path)) as connection:
                yield connection
        else:
            with self._lock:
                yield self._opened()

    def remove_reviews(self, connection: sqlite3.Connection, before_milliseconds: int = 0) -> None:
        """Remove the reviews before a time, and the oldest of more than there is room for."""
        connection.execute("DELETE FROM reviews WHERE milliseconds < ?", (before_milliseconds,))
        if most := self.limit_bytes // _BYTES_FOR_A_REVIEW:
            connection.execute("DELETE FROM reviews WHERE id <= (SELECT max(id) FROM reviews) - ?", (most,))

    @staticmethod
    def _remove_regrades(connection: sqlite3.Connection, before_milliseconds: int) -> None:
        """Remove the regrades made before a time; all runs of theirs are removed by then."""
        if connection.execute("DELETE FROM regrades WHERE milliseconds < ?", (before_milliseconds,)).rowcount:
            connection.execute("DELETE FROM regrade_changes WHERE regrade NOT IN (SELECT id FROM regrades)")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection within a transaction, which no one else writes to meanwhile."""
        with self._lock:
            connection = self._opened()
            with _transaction(connection):
                yield connection

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnusable(self.problem)
        return self._connection


def open_store_file(path: Path) -> RunDatabase:
    """The store in a file that a service has written or is writing, to read only; raises `StoreUnusable`."""
    if not path.is_file():
        raise StoreUnusable(f"{path}: no such file")
    try:
        with closing(_connected_read_only(path)) as connection:
            _check_version(connection, path)
    except sqlite3.Error as error:
        raise StoreUnusable(f"{path}: cannot be read as a run store: {error}") from error
    return RunDatabase(path, 0, is_open=True)


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


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreUnusable if the file is not a run store of this version, sqlite3.Error if no database."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise StoreUnusable(f"{path}: not a run store")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != _VERSION:
        age = "a newer" if version > _VERSION else "an older"
        raise StoreUnusable(
            f"{path}: a run store of {age} version of tracegrade; remove it to create a new one"
        )


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
        [(name, outcome, at, *rest) for at, run in numbered for name, outcome, *rest in run.results],
    )
    _insert(connection, "tools", [(tool, at) for at, run in numbered for tool in run.tools])
    size = sum(run.size for run in runs)
    words = _index_for(connection, first, size, generation_bytes)
    _insert(connection, words, [(at, *run.texts) for at, run in numbered])
    sums: dict[HourKey, tuple[int, float]] = {}
    for run in runs:
        for key, amount in run.hours:
            count, total = sums.get(key, (0, 0.0))
            sums[key] = count + 1, total + amount
    _add_to_hours(connection, sums)


def _add_to_hours(connection: sqlite3.Connection, sums: Mapping[HourKey, tuple[int, float]]) -> None:
    _insert(
        connection,
        "hours (tenant, agent, kind, name, label, version, hour, count, total)",
        [(*key, *sum_) for key, sum_ in sums.items()],
        "ON CONFLICT DO UPDATE SET count = count + excluded.count, total = total + excluded.total",
    )


def _insert(
    connection: sqlite3.Connection, into: str, rows: Sequence[tuple[object, ...]], conflict: str = ""
) -> None:
    """Insert `rows`, many per statement.

    Each statement releases the interpreter's lock and has to acquire it again, which under load takes many
    times as long as an insert.
    """
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        some = rows[start : start + _ROWS_PER_STATEMENT]
        values = ",".join([f"({','.join('?' * len(some[0]))})"] * len(some))
        connection.execute(f"INSERT INTO {into} VALUES {values} {conflict}", list(chain.from_iterable(some)))


def word_indices(connection: sqlite3.Connection) -> list[str]:
    """The tables of the text index, oldest first; they may contain words of removed runs."""
    return [f"words_{first}" for first in _generations(connection)]


def _generations(connection: sqlite3.Connection) -> list[int]:
    """The first run of each generation of the text index, oldest first."""
    return [first for (first,) in connection.execute("SELECT first_run FROM generations ORDER BY first_run")]


def _index_for(connection: sqlite3.Connection, run: int, size: int, generation_bytes: int) -> str:
    """Where the words of the runs from `run` on go, of `size` bytes; the table is created if needed."""
    newest = connection.execute(
        "SELECT first_run, bytes FROM generations ORDER BY first_run DESC LIMIT 1"
    ).fetchone()
    if newest is not None and newest[1] < generation_bytes:
        connection.execute("UPDATE generations SET bytes = bytes + ? WHERE first_run = ?", (size, newest[0]))
        return f"words_{newest[0]} (rowid, {_TEXT_COLUMNS})"
    connection.execute("INSERT INTO generations VALUES (?, ?)", (run, size))
    connection.execute(
        f"CREATE VIRTUAL TABLE words_{run} USING fts5 ({_TEXT_COLUMNS}, content='', columnsize=0)"
    )
    return f"words_{run} (rowid, {_TEXT_COLUMNS})"


def _remove_oldest(connection: sqlite3.Connection, before_milliseconds: int | None = None) -> int:
    """Remove some of the oldest runs, if given only those before a time; returns their number."""
    before = 2**62 if before_milliseconds is None else before_milliseconds
    oldest = connection.execute("SELECT min(time) FROM runs").fetchone()[0]
    if oldest is None or oldest >= before:
        return 0
    # Ids are in the order of time, except after a clock was set back.
    last = connection.execute(
        f"SELECT max(id) FROM (SELECT id FROM runs WHERE time < ? ORDER BY id LIMIT {_PRUNED_AT_A_TIME})",
        (before,),
    ).fetchone()[0]
    removed = connection.execute("DELETE FROM runs WHERE id <= ?", (last,)).rowcount
    for table, column in (("lines", "id"), ("results", "run"), ("tools", "run"), ("regraded", "run")):
        connection.execute(f"DELETE FROM {table} WHERE {column} <= ?", (last,))
    for first, following in pairwise(_generations(connection)):
        if following <= last + 1:
            connection.execute(f"DROP TABLE words_{first}")
            connection.execute("DELETE FROM generations WHERE first_run = ?", (first,))
    oldest = connection.execute("SELECT min(time) FROM runs").fetchone()[0]
    first_hour = 2**62 if oldest is None else oldest // HOUR_MILLISECONDS
    connection.execute("DELETE FROM hours WHERE hour < ?", (first_hour,))
    return removed
