"""Regrades: results of stored runs by other criteria, retained apart from those of the service. Blocking.

A regrade holds which runs were graded again and each result that came out otherwise. It enters no count of
live results, and its results go with their runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from collector.errors import TracegradeError
from collector.store.run_filter import Condition
from collector.store.run_queries import RunQueries
from collector.store.run_rows import as_held

MAX_REGRADES = 20
"""Regrades that are retained; the oldest are removed."""
_LARGEST_SHARE = 8
"""All of them take at most this part of the limit of the store."""
_MAX_CHANGES, _SHOWN_CHANGES = 5_000, 200
"""Changes that are told apart by their cause, and how many of those a view has."""
_MAX_NAME, _MAX_CAUSE, _MAX_EXPLANATION = 200, 300, 1_024
_ROW_BYTES = 64
"""A row without its text, indices included."""
_ABANDONED_MILLISECONDS = 24 * 3_600_000
"""After this time results that nobody decided to retain are removed."""
_REMOVED_AT_A_TIME = 10_000
_ROWS_PER_STATEMENT = 1_000


class RegradeRefused(TracegradeError):
    """The results cannot be retained; the message says why."""


class ChangedResult(NamedTuple):
    """A result of a stored run that other criteria change; without an `old` outcome they add it.

    `call` is the tool call or span that it is about, if it is about one.
    """

    run: int
    agent: str
    evaluation: str
    old: str
    new: str
    cause: str
    call: str
    score: float | None
    explanation: str


@dataclass(frozen=True, slots=True)
class Regrade:
    """What was graded again; `criteria` says by what, `digest` is of those criteria.

    `runs` is how many were graded, `same` how many results stayed as they were, `removed` how many of the old
    ones the criteria do not give. Unless `is_written`, its results wait for somebody's decision.
    """

    id: int
    milliseconds: int
    tenant: str
    name: str
    criteria: str
    digest: str
    author: str
    credential: str
    is_written: int = 0
    runs: int = 0
    same: int = 0
    removed: int = 0
    size: int = 0


_COLUMNS = ", ".join(field.name for field in fields(Regrade))


@dataclass(frozen=True, slots=True)
class RegradeChange:
    """Results of one evaluation of one agent that change alike, for one cause; `number` is its own."""

    number: int
    agent: str
    evaluation: str
    old: str
    new: str
    cause: str
    count: int


class RegradedResult(NamedTuple):
    """A result of a run by other criteria, beside what the service gave."""

    evaluation: str
    old: str
    new: str
    call: str
    score: float | None
    explanation: str


class Regrades:
    """Reads and adds regrades of the runs that `queries` may see.

    Every method may raise `sqlite3.Error`, and `StoreUnusable` if the store is not open.
    """

    def __init__(self, queries: RunQueries) -> None:
        self._queries = queries
        self._database = queries.database
        self._numbers: dict[tuple[str, ...], int] = {}

    def begin(
        self, milliseconds: int, *, name: str, criteria: str, digest: str, author: str, credential: str
    ) -> Regrade:
        """A new regrade at this Unix time, without results; it waits for a decision until `write`."""
        for one in self.each(written=False):
            if one.milliseconds < milliseconds - _ABANDONED_MILLISECONDS:
                self.remove(one.id)
        texts = [_clean(text) for text in (name, criteria, digest, author, credential)]
        with self._database.writing() as connection:
            cursor = connection.execute(
                "INSERT INTO regrades VALUES (NULL,?,?,?,?,?,?,?,0,0,0,0,0)",
                (milliseconds, self._queries.tenant or "", *texts),
            )
        begun = self.get(cursor.lastrowid or 0)
        assert begun is not None  # no one removes it so soon
        return begun

    def add(
        self, regrade: int, runs: Sequence[int], changed: Iterable[ChangedResult], same: int, removed: int
    ) -> None:
        """Add the results of some runs; raises `RegradeRefused` if there are more than there is room for."""
        rows: list[tuple[object, ...]] = [(regrade, 0, run, "", None, "") for run in runs]
        new: list[tuple[object, ...]] = []
        counts: dict[int, int] = {}
        for one in changed:
            number = self._number(one, regrade, new)
            counts[number] = counts.get(number, 0) + 1
            explanation = as_held(one.explanation[:_MAX_EXPLANATION])
            rows.append((regrade, number, one.run, as_held(one.call[:_MAX_NAME]), one.score, explanation))
        size = sum(_ROW_BYTES + len(str(row[-1])) for row in rows)
        with self._database.writing() as connection:
            for start in range(0, len(rows), _ROWS_PER_STATEMENT):
                some = rows[start : start + _ROWS_PER_STATEMENT]
                marks = ",".join(["(?,?,?,?,?,?)"] * len(some))
                values = [value for row in some for value in row]
                connection.execute(f"INSERT INTO regraded VALUES {marks}", values)
            connection.executemany("INSERT INTO regrade_changes VALUES (?,?,?,?,?,?,?,0)", new)
            connection.executemany(
                "UPDATE regrade_changes SET count = count + ? WHERE regrade = ? AND number = ?",
                [(count, regrade, number) for number, count in counts.items()],
            )
            updated = connection.execute(
                "UPDATE regrades SET runs = runs + ?, same = same + ?, removed = removed + ?, "
                "size = size + ? WHERE id = ?",
                (len(runs), same, removed, size, regrade),
            ).rowcount
        if not updated:
            raise RegradeRefused("these results were removed meanwhile: grade again")
        begun = self.get(regrade)
        if begun is not None and begun.size > self._room:
            self.remove(regrade)
            raise RegradeRefused(
                f"the results take more than {self._room >> 20} MiB, the part of store.max_mib that regrades "
                "may take: choose a shorter time or one agent"
            )

    def write(self, regrade: int, name: str, author: str) -> Regrade:
        """Retain the results of a regrade, which shows them with its runs; raises `RegradeRefused`."""
        if self.get(regrade) is None:
            raise RegradeRefused("these results were removed meanwhile: grade again")
        given = [_clean(text) for text in (name, author)]
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE regrades SET is_written = 1, name = iif(? = '', name, ?), author = ? WHERE id = ?",
                (given[0], *given, regrade),
            )
        for one in self.each()[MAX_REGRADES:]:
            self.remove(one.id)
        self._make_room()
        written = self.get(regrade)
        assert written is not None  # it is the newest
        return written

    def remove(self, regrade: int) -> None:
        """Remove a regrade with its results; nothing if there is none."""
        if self.get(regrade) is None:
            return
        with self._database.writing() as connection:
            connection.execute("DELETE FROM regrades WHERE id = ?", (regrade,))
            connection.execute("DELETE FROM regrade_changes WHERE regrade = ?", (regrade,))
        removed = 1
        while removed:  # in steps, between which runs are written
            with self._database.writing() as connection:
                some = "SELECT rowid FROM regraded WHERE regrade = ? LIMIT ?"
                removed = connection.execute(
                    f"DELETE FROM regraded WHERE rowid IN ({some})", (regrade, _REMOVED_AT_A_TIME)
                ).rowcount

    def get(self, regrade: int) -> Regrade | None:
        """The regrade with this id; None if there is none."""
        return next(iter(self._select(("id = ?", regrade))), None)

    def each(self, *, written: bool = True) -> list[Regrade]:
        """All that are written, or all that are not, newest first."""
        return self._select(("is_written = ?", int(written)))

    def changes(self, regrade: int) -> list[RegradeChange]:
        """What a regrade changes, the most frequent first, at most some hundreds."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT number, agent, evaluation, old, new, cause, count FROM regrade_changes "
                "WHERE regrade = ? ORDER BY count DESC, number LIMIT ?",
                (regrade, _SHOWN_CHANGES),
            ).fetchall()
        return [RegradeChange(*row) for row in rows]

    def of_run(self, run: int) -> list[tuple[Regrade, list[RegradedResult]]]:
        """The written regrades of a run, newest first, each with the results that differ."""
        columns = "regraded.regrade, evaluation, old, new, call, score, explanation"
        source = "regraded LEFT JOIN regrade_changes USING (regrade, number)"
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {columns} FROM {source} WHERE run = ? ORDER BY evaluation", (run,)
            ).fetchall()
        graded = {row[0] for row in rows}
        if not graded:
            return []
        return [
            (one, [RegradedResult(*row[1:]) for row in rows if row[0] == one.id and row[1] is not None])
            for one in self.each()
            if one.id in graded
        ]

    def _number(self, one: ChangedResult, regrade: int, new: list[tuple[object, ...]]) -> int:
        """The number of the change that a result is part of; the row of a new one is added to `new`."""
        names = tuple(as_held(text[:_MAX_NAME]) for text in (one.agent, one.evaluation, one.old, one.new))
        cause = as_held(one.cause[:_MAX_CAUSE])
        if (*names, cause) not in self._numbers and len(self._numbers) >= _MAX_CHANGES:
            cause = ""
        key = (*names, cause)
        if key not in self._numbers:
            if len(self._numbers) >= 2 * _MAX_CHANGES:
                raise RegradeRefused("too many different changes: choose fewer agents")
            self._numbers[key] = len(self._numbers) + 1
            new.append((regrade, self._numbers[key], *key))
        return self._numbers[key]

    @property
    def _room(self) -> int:
        """How many bytes all written regrades may take, and one that is not written yet."""
        return self._database.limit_bytes // _LARGEST_SHARE

    def _make_room(self) -> None:
        """Remove the oldest written regrades of more than there is room for."""
        used = 0
        of_all = Regrades(RunQueries(self._database))
        for one in of_all.each():
            used += one.size
            if used > self._room:
                of_all.remove(one.id)

    def _select(self, condition: Condition) -> list[Regrade]:
        tail = "ORDER BY id DESC LIMIT 100"
        return [Regrade(*row) for row in self._queries.rows(_COLUMNS, "regrades", condition, tail=tail)]


def _clean(text: str) -> str:
    """`text` as SQLite holds it, without spaces around it."""
    return as_held(text.strip()[:_MAX_NAME])
