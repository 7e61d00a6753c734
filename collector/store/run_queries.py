"""What people ask the store: agents, runs, one run, counts by the hour. Blocking; safe in any thread."""

import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from collector.store.run_database import RunDatabase, word_indices
from collector.store.run_rows import EVALUATION, MISSING, NO_CONTENT, RUN, TOOL, search_words
from processors.model import JsonObject, JsonValue, decode_json

MAX_FOUND = 1_000
_COLUMNS = (
    "id, time, agent, version, service, tenant, trace, span, conversation, finish_reason, outcome, calls, "
    "failed_calls, seconds, dialect"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are looked for; what is empty is not asked for.

    `since` and `until` are Unix milliseconds. With `evaluation`, `outcome` is that of the evaluation, else
    that of the run. `text` finds runs with all its words, or words that begin so. `before` is a run's id:
    only older runs; `after`: only newer ones.
    """

    agent: str = ""
    evaluation: str = ""
    outcome: str = ""
    tool: str = ""
    text: str = ""
    conversation: str = ""
    tenant: str = ""
    version: str = ""
    dialect: str = ""
    since: int = 0
    until: int = 0
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What is told of a run in a list; `milliseconds` is when it was graded, since 1970."""

    id: int
    milliseconds: int
    agent: str
    version: str
    service: str
    tenant: str
    trace_id: str
    span_id: str
    conversation: str
    finish_reason: str
    outcome: str
    calls: int
    failed_calls: int
    seconds: float | None
    dialect: str
    failed: tuple[str, ...] = ()
    """The evaluations that failed or errored."""


@dataclass(slots=True)
class Counts:
    """Outcomes, and the sum of what was measured with them: scores or seconds."""

    outcomes: dict[str, int] = field(default_factory=dict)
    total: float = 0.0

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.outcomes.values())

    @property
    def decided(self) -> int:
        """Those that passed, failed or errored."""
        return sum(self.outcomes.get(outcome, 0) for outcome in ("pass", "fail", "error"))

    @property
    def pass_rate(self) -> float | None:
        """The share of those decided that passed; None where none was."""
        return self.outcomes.get("pass", 0) / self.decided if self.decided else None

    @property
    def mean_score(self) -> float | None:
        """The mean of what passed or failed; None where nothing did."""
        scored = self.count - self.outcomes.get("error", 0) - self.outcomes.get("not_evaluated", 0)
        return self.total / scored if scored else None

    def add(self, label: str, count: int, total: float) -> None:
        """Count some more."""
        self.outcomes[label] = self.outcomes.get(label, 0) + count
        self.total += total

    def add_all(self, others: "Counts") -> None:
        """Count what others counted."""
        for label, count in others.outcomes.items():
            self.add(label, count, 0.0)
        self.total += others.total


@dataclass(slots=True)
class AgentSummary:
    """What is told of an agent; `missing` counts runs by what kept them from being graded.

    `uncaptured` counts those whose content was not captured by their dialect, `tenants` names whose runs
    they are.
    """

    name: str
    last_milliseconds: int = 0
    runs: Counts = field(default_factory=Counts)
    hours: dict[int, Counts] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    uncaptured: dict[str, int] = field(default_factory=dict)
    tenants: set[str] = field(default_factory=set)


@dataclass(slots=True)
class CriterionCounts:
    """How an evaluation of an agent went: over all, by the hour, by version."""

    name: str
    counts: Counts = field(default_factory=Counts)
    hours: dict[int, Counts] = field(default_factory=dict)
    versions: dict[str, Counts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolSummary:
    """Calls of a tool, those that failed, and their mean seconds."""

    name: str
    calls: int
    errors: int
    mean_seconds: float


@dataclass(frozen=True, slots=True)
class StoredLines:
    """Run lines with the Unix milliseconds at which they were graded, oldest first.

    From `complete_from` on none is missing among them; 0: none was ever let go of.
    """

    lines: Sequence[tuple[int, JsonValue]]
    complete_from: int


class RunQueries:
    """Reads a store of runs: those of every tenant, or, with a `tenant`, those of one alone.

    Every method may raise `sqlite3.Error`, and `StoreUnusable` where the store is not open.
    """

    def __init__(self, database: RunDatabase, tenant: str | None = None) -> None:
        self._database = database
        self._whose = "1" if tenant is None else "tenant = ?"
        self._tenant = () if tenant is None else (tenant,)

    def of_tenant(self, tenant: str) -> "RunQueries":
        """What reads the runs of this tenant alone."""
        return RunQueries(self._database, tenant)

    def newest(self) -> int:
        """The id of the newest run, 0 without any."""
        with self._database.reading() as connection:
            newest = f"SELECT coalesce(max(id), 0) FROM runs WHERE {self._whose}"
            return int(connection.execute(newest, self._tenant).fetchone()[0])

    def conversations(self, since: int, most: int) -> "StoredLines":
        """The runs that name a conversation and were graded since then, in Unix milliseconds.

        If there are more than `most`, the newest.
        """
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT runs.time, lines.line FROM runs JOIN lines USING (id) "
                f"WHERE runs.conversation != '' AND runs.time >= ? AND {self._whose} "
                "ORDER BY runs.id DESC LIMIT ?",
                (since, *self._tenant, most),
            ).fetchall()
            first = connection.execute("SELECT id, time FROM runs ORDER BY id LIMIT 1").fetchone()
        complete_from = 0 if first is None or first[0] == 1 else int(first[1])
        if len(rows) == most:
            complete_from = max(complete_from, int(rows[-1][0]))
        return StoredLines(
            [(time, decode_json(zlib.decompress(line))) for time, line in rows[::-1]], complete_from
        )

    def agents(self, since_hour: int = 0) -> list[AgentSummary]:
        """All agents with runs, the one that came last first; counts from `since_hour` on."""
        found: dict[str, AgentSummary] = {}
        with self._database.reading() as connection:
            for agent in self._agents(connection):
                last = connection.execute(
                    f"SELECT time FROM runs WHERE agent = ? AND {self._whose} ORDER BY id DESC LIMIT 1",
                    (agent, *self._tenant),
                ).fetchone()
                if last is not None:
                    found[agent] = AgentSummary(agent, last[0])
            rows = connection.execute(
                "SELECT agent, tenant, kind, name, label, hour, sum(count), sum(total) FROM hours "
                f"WHERE kind IN (?, ?) AND hour >= ? AND {self._whose} "
                "GROUP BY agent, tenant, kind, name, label, hour",
                (RUN, MISSING, since_hour, *self._tenant),
            )
            for agent, tenant, kind, name, label, hour, count, total in rows:
                summary = found.get(agent)
                if summary is None:
                    continue
                if kind == MISSING:
                    summary.missing[name] = summary.missing.get(name, 0) + count
                    if name == NO_CONTENT:
                        summary.uncaptured[label] = summary.uncaptured.get(label, 0) + count
                else:
                    summary.tenants.add(tenant)
                    summary.runs.add(label, count, total)
                    summary.hours.setdefault(hour, Counts()).add(label, count, total)
        return sorted(found.values(), key=lambda agent: -agent.last_milliseconds)

    def evaluations(self, agent: str = "", since_hour: int = 0) -> list[CriterionCounts]:
        """The evaluations of an agent (of all, without one), those with the most failures first."""
        found: dict[str, CriterionCounts] = {}
        for name, label, version, hour, count, total in self._hours(EVALUATION, agent, since_hour):
            criterion = found.setdefault(name, CriterionCounts(name))
            criterion.counts.add(label, count, total)
            criterion.hours.setdefault(hour, Counts()).add(label, count, total)
            criterion.versions.setdefault(version, Counts()).add(label, count, total)
        return sorted(found.values(), key=lambda of: (-of.counts.outcomes.get("fail", 0), of.name))

    def evaluation_counts(self, since_hour: int = 0) -> dict[tuple[str, str, str], Counts]:
        """How each evaluation went, by tenant, agent and its name."""
        found: dict[tuple[str, str, str], Counts] = {}
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT tenant, agent, name, label, sum(count), sum(total) FROM hours "
                f"WHERE kind = ? AND hour >= ? AND {self._whose} GROUP BY tenant, agent, name, label",
                (EVALUATION, since_hour, *self._tenant),
            )
            for tenant, agent, name, label, count, total in rows:
                found.setdefault((tenant, agent, name), Counts()).add(label, count, total)
        return found

    def versions(self, agent: str, since_hour: int = 0) -> dict[str, Counts]:
        """How the runs of each version of an agent ended, versions in the order of their last hour."""
        found: dict[str, Counts] = {}
        last: dict[str, int] = {}
        for _, label, version, hour, count, total in self._hours(RUN, agent, since_hour):
            found.setdefault(version, Counts()).add(label, count, total)
            last[version] = max(last.get(version, 0), hour)
        return {version: found[version] for version in sorted(found, key=lambda of: -last[of])}

    def tools(self, agent: str, since_hour: int = 0) -> list[ToolSummary]:
        """The tools that an agent called, most calls first."""
        found: dict[str, Counts] = {}
        for name, label, _, _, count, total in self._hours(TOOL, agent, since_hour):
            found.setdefault(name, Counts()).add(label, count, total)
        tools = [
            ToolSummary(name, of.count, of.outcomes.get("error", 0), of.total / of.count)
            for name, of in found.items()
        ]
        return sorted(tools, key=lambda tool: (-tool.calls, tool.name))

    def names(self) -> dict[str, list[str]]:
        """What can be chosen from: `agents`, `evaluations` and `tools`."""
        with self._database.reading() as connection:
            agents = self._agents(connection)
            kinds = {
                kind: [
                    name
                    for (name,) in connection.execute(
                        f"SELECT DISTINCT name FROM hours WHERE kind = ? AND {self._whose} "
                        "ORDER BY name LIMIT 1000",
                        (kind, *self._tenant),
                    )
                ]
                for kind in (EVALUATION, TOOL)
            }
        return {"agents": agents, "evaluations": kinds[EVALUATION], "tools": kinds[TOOL]}

    def find(self, wanted: RunFilter, limit: int = 50) -> list[RunSummary]:
        """The newest runs that `wanted` describes, newest first; at most `limit` and `MAX_FOUND`."""
        limit = min(limit, MAX_FOUND)
        conditions, parameters = _conditions(wanted)
        words = " ".join(f'"{word}"*' for word in search_words(wanted.text))
        if wanted.text.strip() and not words:
            return []
        with self._database.reading() as connection:
            rows: list[tuple[object, ...]] = []
            for index in reversed(word_indices(connection)) if words else [""]:
                source, where, values = "runs", [*conditions, self._whose], [*parameters, *self._tenant]
                if words:  # the index itself brings the newest first, so that few of many need be looked at
                    source = f"{index} CROSS JOIN runs ON id = {index}.rowid"
                    where, values = [f"{index} MATCH ?", *where], [words, *values]
                found = f"FROM {source} WHERE {' AND '.join(where)}"
                order = f"{index}.rowid" if words else "id"
                try:
                    rows += connection.execute(
                        f"SELECT {_COLUMNS} {found} ORDER BY {order} DESC LIMIT ?",
                        (*values, limit - len(rows)),
                    )
                except sqlite3.OperationalError as error:
                    if "fts5" in str(error):  # a word that the index reads as several
                        return []
                    raise
                if len(rows) == limit:
                    break
            return [_summary(connection, row) for row in rows]

    def line(self, run: int) -> JsonObject | None:
        """The line of a run by its id; None where it is not there any more."""
        with self._database.reading() as connection:
            own = f"SELECT 1 FROM runs WHERE id = ? AND {self._whose}"
            if connection.execute(own, (run, *self._tenant)).fetchone() is None:
                return None
            return _line(connection, run)

    def runs_of_trace(self, trace_id: str) -> list[tuple[RunSummary, JsonObject]]:
        """The runs of a trace in the order in which they were graded, each with its line."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM runs WHERE trace = ? AND {self._whose} ORDER BY id LIMIT ?",
                (trace_id, *self._tenant, MAX_FOUND),
            ).fetchall()
            found = [(_summary(connection, row), _line(connection, row[0])) for row in rows]
        return [(summary, line) for summary, line in found if line is not None]

    def _hours(
        self, kind: str, agent: str, since_hour: int
    ) -> Sequence[tuple[str, str, str, int, int, float]]:
        condition, parameters = ("agent = ? AND", (agent,)) if agent else ("", ())
        with self._database.reading() as connection:
            return connection.execute(
                "SELECT name, label, version, hour, sum(count), sum(total) FROM hours "
                f"WHERE kind = ? AND {condition} hour >= ? AND {self._whose} "
                "GROUP BY name, label, version, hour",
                (kind, *parameters, since_hour, *self._tenant),
            ).fetchall()

    def _agents(self, connection: sqlite3.Connection) -> list[str]:
        """In the order of their names: one step in the index for each, however many runs there are."""
        of_runs = f"FROM hours WHERE kind = '{RUN}' AND {self._whose}"
        found = connection.execute(
            f"WITH RECURSIVE found (agent) AS (SELECT min(agent) {of_runs} UNION ALL "
            f"SELECT (SELECT min(agent) {of_runs} AND agent > found.agent) FROM found "
            "WHERE found.agent IS NOT NULL LIMIT 1000) SELECT agent FROM found WHERE agent IS NOT NULL",
            self._tenant * 2,
        )
        return [agent for (agent,) in found]


def _conditions(wanted: RunFilter) -> tuple[list[str], list[str | int]]:
    """What a run has to be, but for its text."""
    conditions: list[str] = []
    parameters: list[str | int] = []

    def add(condition: str, *values: str | int) -> None:
        conditions.append(condition)
        parameters.extend(values)

    for column in ("agent", "tenant", "conversation", "version", "dialect"):
        if value := getattr(wanted, column):
            add(f"{column} = ?", value)
    if wanted.evaluation and wanted.outcome:
        add(
            "id IN (SELECT run FROM results WHERE evaluation = ? AND outcome = ?)",
            wanted.evaluation,
            wanted.outcome,
        )
    elif wanted.evaluation:
        add("id IN (SELECT run FROM results WHERE evaluation = ?)", wanted.evaluation)
    elif wanted.outcome:
        add("outcome = ?", wanted.outcome)
    if wanted.tool:
        add("id IN (SELECT run FROM tools WHERE tool = ?)", wanted.tool)
    for condition, value in (
        ("time >= ?", wanted.since),
        ("time < ?", wanted.until),
        ("id < ?", wanted.before),
        ("id > ?", wanted.after),
    ):
        if value:
            add(condition, value)
    return conditions, parameters


def _summary(connection: sqlite3.Connection, row: tuple[object, ...]) -> RunSummary:
    failed = connection.execute(
        "SELECT evaluation FROM results WHERE run = ? AND outcome IN ('fail', 'error') ORDER BY evaluation",
        (row[0],),
    )
    return RunSummary(*row, tuple(name for (name,) in failed))  # type: ignore[arg-type,call-arg]  # as the schema has it


def _line(connection: sqlite3.Connection, run: int) -> JsonObject | None:
    found = connection.execute("SELECT line FROM lines WHERE id = ?", (run,)).fetchone()
    if found is None:
        return None
    line = decode_json(zlib.decompress(found[0]))
    return line if isinstance(line, dict) else None
