"""Queries over stored runs: agents, runs, one run, counts by the hour. Blocking; safe in any thread."""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from collector.store.run_database import RunDatabase, word_indices
from collector.store.run_filter import Condition, RunFilter, conditions_of, resolved, source_of
from collector.store.run_rows import (
    CAUSE,
    COST,
    EVALUATION,
    HOUR_MILLISECONDS,
    MISSING,
    NO_CONTENT,
    NOT_STORED,
    RUN,
    TOKENS,
    TOOL,
)
from processors.model import JsonObject, JsonValue, decode_json

EVERY_HOUR = range(1 << 32)
"""Hours since 1970: all that there are."""
MAX_MATCHES = 1_000
MAX_COUNT = 2_000
"""Matches that are counted; more are not, to bound the time of a search."""
_RUNS_AT_A_TIME = 200
_PACKED_BYTES = 1 << 20
_EXEMPTIONS = ("advisory", "shadow", "muted")
"""Labels of failures that alert no one."""
_COLUMNS = (
    "id, time, agent, version, service, tenant, trace, span, conversation, finish_reason, outcome, calls, "
    "failed_calls, seconds, dialect"
)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list; `milliseconds` is the Unix time at which it was graded."""

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
    """The evaluations that failed or errored, those that alert first."""
    exemptions: Mapping[str, str] = field(default_factory=dict)
    """Those of `failed` that alert no one: `advisory`, `shadow` or `muted`."""
    not_evaluated: int = 0
    """How many evaluations gave no verdict."""
    evaluations: int = 0
    """How many evaluations applied."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """The cause of each of `failed`."""


class PackedRun(NamedTuple):
    """A run and, if requested, all of its trace, each as its line is stored; `place` is that of the run."""

    id: int
    place: int
    lines: Sequence[bytes]


@dataclass(slots=True)
class Counts:
    """Counts by outcome, and the sum of their scores or seconds."""

    outcomes: dict[str, int] = field(default_factory=dict)
    total: float = 0.0

    @property
    def count(self) -> int:
        """The sum over all outcomes."""
        return sum(self.outcomes.values())

    @property
    def exempt(self) -> dict[str, int]:
        """Failures that alert no one, by why."""
        return {word: self.outcomes[word] for word in _EXEMPTIONS if self.outcomes.get(word)}

    @property
    def failed(self) -> int:
        """Failed and errored, `exempt` ones included."""
        return sum(self.outcomes.get(label, 0) for label in ("fail", "error", *_EXEMPTIONS))

    @property
    def mean(self) -> float | None:
        """The mean of what is summed; None if there is nothing."""
        return self.total / self.count if self.count else None

    @property
    def decided(self) -> int:
        """Passed, failed and errored."""
        return self.outcomes.get("pass", 0) + self.failed

    @property
    def pass_rate(self) -> float | None:
        """The share of `decided` that passed; None if there are none."""
        return self.outcomes.get("pass", 0) / self.decided if self.decided else None

    @property
    def mean_score(self) -> float | None:
        """The mean score of what has one; None if there is none."""
        scored = self.count - self.outcomes.get("error", 0) - self.outcomes.get("not_evaluated", 0)
        return self.total / scored if scored else None

    def add(self, label: str, count: int, total: float) -> None:
        """Add to the counts."""
        self.outcomes[label] = self.outcomes.get(label, 0) + count
        self.total += total

    def add_all(self, others: "Counts") -> None:
        """Add other counts."""
        for label, count in others.outcomes.items():
            self.add(label, count, 0.0)
        self.total += others.total


@dataclass(slots=True)
class AgentSummary:
    """The runs of an agent; `missing` counts runs by what prevented a verdict.

    `uncaptured` counts runs without captured content by their dialect; `tenants` have such runs.
    """

    name: str
    last_milliseconds: int = 0
    runs: Counts = field(default_factory=Counts)
    hours: dict[int, Counts] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    uncaptured: dict[str, int] = field(default_factory=dict)
    tenants: set[str] = field(default_factory=set)

    def to_json(self) -> JsonObject:
        """As the page's JSON interface and `tracegrade agents --json` give it."""
        return {
            "name": self.name,
            "last_milliseconds": self.last_milliseconds,
            "outcomes": {**self.runs.outcomes},
            "missing": {**self.missing},
        }


@dataclass(slots=True)
class CriterionCounts:
    """Results of an evaluation of an agent: in total, by hour, by version."""

    name: str
    counts: Counts = field(default_factory=Counts)
    hours: dict[int, Counts] = field(default_factory=dict)
    versions: dict[str, Counts] = field(default_factory=dict)

    @property
    def not_evaluated(self) -> int:
        """How often there was no verdict."""
        return self.counts.outcomes.get("not_evaluated", 0)


@dataclass(slots=True)
class FailureCause:
    """Failures of one evaluation of one agent with one cause: the explanation without what varies in it.

    `exemption` is why they alert no one, if so. `versions` has the number of each; `began` is the one that
    failed so first. Hours are since 1970.
    """

    agent: str
    evaluation: str
    outcome: str
    cause: str
    exemption: str
    first_hour: int
    last_hour: int = 0
    began: str = ""
    versions: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many runs failed so."""
        return sum(self.versions.values())


@dataclass(slots=True)
class ToolSummary:
    """Calls of a tool: of all agents and versions, or of one where those are given."""

    name: str
    agent: str = ""
    version: str = ""
    agents: set[str] = field(default_factory=set)
    """Who calls it."""
    calls: int = 0
    errors: int = 0
    durations: dict[int, Counts] = field(default_factory=dict)
    """Calls whose duration is known, with the sum of their seconds, by `duration_bucket`."""

    @property
    def mean_seconds(self) -> float | None:
        """The mean duration; None if none is known."""
        timed = Counts()
        for counts in self.durations.values():
            timed.add_all(counts)
        return timed.mean

    @property
    def p95_seconds(self) -> float | None:
        """The duration that 95 % of the calls do not exceed, to about a fifth; None if none is known.

        It is the mean of the bucket that has it.
        """
        rank = -(-95 * sum(counts.count for counts in self.durations.values()) // 100)
        for _, counts in sorted(self.durations.items()):
            rank -= counts.count
            if rank <= 0:
                return counts.mean
        return None

    def to_json(self) -> JsonObject:
        """As the page's JSON interface gives it."""
        return {
            "name": self.name,
            "agent": self.agent,
            "version": self.version,
            "agents": [*sorted(self.agents)],
            "calls": self.calls,
            "errors": self.errors,
            "mean_seconds": self.mean_seconds,
            "p95_seconds": self.p95_seconds,
        }


class RunQueries:
    """Reads a store of runs: those of every tenant, or with `tenant` only those of one.

    Every method may raise `sqlite3.Error`, and `StoreUnusable` if the store is not open.
    """

    def __init__(self, database: RunDatabase, tenant: str | None = None) -> None:
        self.database = database
        self.tenant = tenant
        self._visible: list[Condition] = [] if tenant is None else [("tenant = ?", tenant)]

    def of_tenant(self, tenant: str) -> "RunQueries":
        """Queries over the runs of this tenant only."""
        return RunQueries(self.database, tenant)

    def newest(self) -> int:
        """The id of the newest run, 0 without any."""
        return int(self.rows("coalesce(max(id), 0)", "runs")[0][0])

    def conversations(self, since: int, most: int) -> tuple[list[tuple[int, JsonValue]], int]:
        """The newest `most` lines of runs with a conversation, graded since then, and when they are complete.

        Times are Unix milliseconds, lines are oldest first. None is missing since the second result; 0: none
        was ever removed.
        """
        with self.database.reading() as connection:
            source, tail = "runs JOIN lines USING (id)", f"ORDER BY id DESC LIMIT {most}"
            conditions: list[Condition] = [("conversation != ''",), ("time >= ?", since)]
            rows = self._select(connection, "time, line", source, *conditions, tail=tail).fetchall()
            first = connection.execute("SELECT id, time FROM runs ORDER BY id LIMIT 1").fetchone()
        complete_from = 0 if first is None or first[0] == 1 else int(first[1])
        if len(rows) == most:
            complete_from = max(complete_from, int(rows[-1][0]))
        return [(time, unpacked(line)) for time, line in rows[::-1]], complete_from

    def agents(self, hours: range = EVERY_HOUR) -> list[AgentSummary]:
        """All agents with runs, the most recent first; counts from these hours."""
        collected: dict[str, AgentSummary] = {}
        with self.database.reading() as connection:
            for agent in self._agents(connection):
                tail = "ORDER BY id DESC LIMIT 1"
                last = self._select(connection, "time", "runs", ("agent = ?", agent), tail=tail).fetchone()
                if last is not None:
                    collected[agent] = AgentSummary(agent, last[0])
        kinds = ("kind IN (?, ?)", RUN, MISSING)
        for agent, tenant, kind, name, label, hour, count, total in self._sums(
            "agent, tenant, kind, name, label, hour", kinds, _during(hours)
        ):
            summary = collected.get(agent)
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
        return sorted(collected.values(), key=lambda agent: -agent.last_milliseconds)

    def evaluations(self, agent: str = "", hours: range = EVERY_HOUR) -> list[CriterionCounts]:
        """The evaluations of an agent, or of all agents, those with the most failures first."""
        collected: dict[str, CriterionCounts] = {}
        for name, label, version, hour, count, total in self._hours(EVALUATION, agent, hours):
            criterion = collected.setdefault(name, CriterionCounts(name))
            criterion.counts.add(label, count, total)
            criterion.hours.setdefault(hour, Counts()).add(label, count, total)
            criterion.versions.setdefault(version, Counts()).add(label, count, total)
        return sorted(collected.values(), key=lambda of: (-of.counts.failed, of.name))

    def evaluation_counts(self, hours: range = EVERY_HOUR) -> dict[tuple[str, str, str], Counts]:
        """Results of each evaluation, by tenant, agent and its name."""
        collected: dict[tuple[str, str, str], Counts] = {}
        for tenant, agent, name, label, count, total in self._sums(
            "tenant, agent, name, label", ("kind = ?", EVALUATION), _during(hours)
        ):
            collected.setdefault((tenant, agent, name), Counts()).add(label, count, total)
        return collected

    def not_stored(self, hours: range = EVERY_HOUR) -> dict[str, int]:
        """How many runs of each agent were not stored, because the store may not take more or cannot."""
        kind, since = ("kind = ?", NOT_STORED), _during(hours)
        return {agent: count for agent, count, _ in self._sums("agent", kind, since)}

    def causes(self, agent: str = "", hours: range = EVERY_HOUR) -> list[FailureCause]:
        """Why runs failed: failures that alert first, then the most frequent."""
        collected: dict[tuple[str, str, str], FailureCause] = {}
        for agent_name, name, label, version, hour, count, _ in self._sums(
            "agent, name, label, version, hour", ("kind = ?", CAUSE), *_of(agent), _during(hours)
        ):
            words, _, text = label.partition(": ")
            outcome, _, exemption = words.partition(" ")
            cause = collected.setdefault(
                (agent_name, name, label),
                FailureCause(agent_name, name, outcome, text, exemption, hour, hour, version),
            )
            if hour < cause.first_hour:
                cause.first_hour, cause.began = hour, version
            cause.last_hour = max(cause.last_hour, hour)
            cause.versions[version] = cause.versions.get(version, 0) + count
        return sorted(collected.values(), key=lambda of: (of.exemption != "", -of.count, -of.last_hour))

    def usage(self, agent: str = "", hours: range = EVERY_HOUR) -> dict[tuple[str, str], dict[str, Counts]]:
        """By agent and version, the `tokens` and the `cost` of the runs that report them."""
        collected: dict[tuple[str, str], dict[str, Counts]] = {}
        kinds = ("kind IN (?, ?)", COST, TOKENS)
        for name, version, kind, count, total in self._sums(
            "agent, version, kind", kinds, *_of(agent), _during(hours)
        ):
            collected.setdefault((name, version), {}).setdefault(kind, Counts()).add("", count, total)
        return collected

    def versions(self, agent: str, hours: range = EVERY_HOUR) -> dict[str, Counts]:
        """Outcomes of the runs of each version of an agent, the one that began last first."""
        collected: dict[str, Counts] = {}
        for _, label, version, _, count, total in self._hours(RUN, agent, hours):
            collected.setdefault(version, Counts()).add(label, count, total)
        began = {version: (hour, 0) for version, hour in self.releases(agent).get(agent, {}).items()}
        for hour in [hour for hour, count in Counter(began.values()).items() if count > 1]:
            order = self._order_within(agent, hour[0])
            began |= {version: order[version] for version in order if began.get(version) == hour}
        return {version: collected[version] for version in sorted(collected, key=lambda of: began[of])[::-1]}

    def _order_within(self, agent: str, hour: int) -> dict[str, tuple[int, int]]:
        """The hour and the first run in it of each version of an agent with runs in that hour."""
        start = hour * HOUR_MILLISECONDS
        rows = self.rows(
            "version, min(id)",
            "runs",
            ("agent = ?", agent),
            ("time >= ? AND time < ?", start, start + HOUR_MILLISECONDS),
            tail="GROUP BY version",
        )
        return {version: (hour, run) for version, run in rows}

    def tools(
        self, *, agent: str = "", tool: str = "", by_release: bool = False, hours: range = EVERY_HOUR
    ) -> list[ToolSummary]:
        """The tools that agents called, the one with the most failed calls first, then with the most calls.

        Only those of `agent`, and only `tool`, if given; `by_release` for each agent and version apart.
        """
        collected: dict[tuple[str, ...], ToolSummary] = {}
        chosen = [*_of(agent), *_of(tool, "name")]
        columns = "name, agent, version, label" if by_release else "name, agent, '', label"
        for name, agent_name, version, label, count, total in self._sums(
            columns, ("kind = ?", TOOL), *chosen, _during(hours)
        ):
            key = (name, agent_name, version) if by_release else (name,)
            summary = collected.setdefault(key, ToolSummary(*key))
            outcome, _, bucket = label.partition(" ")
            summary.agents.add(agent_name)
            summary.calls += count
            summary.errors += count if outcome == "error" else 0
            if bucket:
                summary.durations.setdefault(int(bucket), Counts()).add("", count, total)
        return sorted(
            collected.values(), key=lambda of: (-of.errors, -of.calls, of.name, of.agent, of.version)
        )

    def releases(self, agent: str = "") -> dict[str, dict[str, int]]:
        """The hour in which each version of `agent`, or of each agent, began, as far as runs are retained."""
        began: dict[str, dict[str, int]] = {}
        columns, tail = "agent, version, min(hour)", "GROUP BY agent, version"
        for name, version, hour in self.rows(columns, "hours", ("kind = ?", RUN), *_of(agent), tail=tail):
            began.setdefault(name, {})[version] = hour
        return began

    def names(self) -> dict[str, list[str]]:
        """The choices of a search: `agents`, `evaluations` and `tools`."""
        collected: dict[str, list[str]] = {}
        with self.database.reading() as connection:
            collected["agents"] = self._agents(connection)
            for key, kind in (("evaluations", EVALUATION), ("tools", TOOL)):
                tail = "ORDER BY name LIMIT 1000"
                rows = self._select(connection, "DISTINCT name", "hours", ("kind = ?", kind), tail=tail)
                collected[key] = [name for (name,) in rows]
        return collected

    def find(self, run_filter: RunFilter, limit: int = 50, *, oldest_first: bool = False) -> list[RunSummary]:
        """The runs that match, newest first unless `oldest_first`; at most `limit` and `MAX_MATCHES`."""
        with self.database.reading() as connection:
            ids = self._ids(connection, run_filter, min(limit, MAX_MATCHES), oldest_first=oldest_first)
            return self._summaries(connection, ids)

    def find_and_count(self, run_filter: RunFilter, limit: int) -> tuple[list[RunSummary], int]:
        """The newest runs that match, and how many match: `MAX_COUNT` if there are as many or more."""
        with self.database.reading() as connection:
            ids = self._ids(connection, run_filter, MAX_COUNT)
            return self._summaries(connection, ids[: min(limit, MAX_MATCHES)]), len(ids)

    def _ids(
        self, connection: sqlite3.Connection, run_filter: RunFilter, limit: int, *, oldest_first: bool = False
    ) -> list[int]:
        """The ids of the runs that match, in order: the index returns them so, and few of many are read."""
        run_filter, match = resolved(run_filter)
        order = "ASC" if oldest_first else "DESC"
        ids: list[int] = []
        if not match:
            source, key, conditions = source_of(run_filter)
            tail = f"ORDER BY {key} {order} LIMIT {limit}"
            ids += [run for (run,) in self._select(connection, key, source, *conditions, tail=tail)]
        for index in word_indices(connection)[:: 1 if oldest_first else -1] if match else ():
            key = f"{index}.rowid"
            source = f"{index} CROSS JOIN runs ON id = {key}"
            matches: Condition = (f"{index} MATCH ?", match)
            tail = f"ORDER BY {key} {order} LIMIT {limit - len(ids)}"
            rows = self._select(connection, "id", source, matches, *conditions_of(run_filter), tail=tail)
            ids += [run for (run,) in rows]
        return ids

    def _summaries(self, connection: sqlite3.Connection, ids: Sequence[int]) -> list[RunSummary]:
        """The runs with these ids, in their order."""
        among = f"id IN ({','.join('?' * len(ids))})"
        rows = {row[0]: row for row in self._select(connection, _COLUMNS, "runs", (among, *ids))}
        return [_summary(connection, rows[run]) for run in ids if run in rows]

    def each(
        self, run_filter: RunFilter, needs_line: Callable[[RunSummary], bool] = lambda run: True
    ) -> Iterator[tuple[RunSummary, JsonObject | None]]:
        """All runs that match, newest first, however many they are: read in pages.

        Each with its line, or None where that is not needed or was removed meanwhile.
        """
        while page := self.find(run_filter, _RUNS_AT_A_TIME):
            lines = self.lines([run.id for run in page if needs_line(run)])
            yield from [(run, lines.get(run.id)) for run in page]
            run_filter = replace(run_filter, before=page[-1].id)

    def pages(self, run_filter: RunFilter) -> Iterator[list[int]]:
        """The ids of all runs that match, oldest first, some at a time."""
        page = [run_filter.after]
        while page:
            with self.database.reading() as connection:
                page = self._ids(connection, run_filter, _RUNS_AT_A_TIME, oldest_first=True)
            if page:
                yield page
                run_filter = replace(run_filter, after=page[-1])

    def packed(self, runs: Sequence[int], *, with_traces: bool = False) -> list[PackedRun]:
        """Those of some runs that are still there, in order; with all runs of their traces if requested.

        Once they have a megabyte together, the last ones are left out.
        """
        collected = []
        size = 0
        columns, source = "id, line", "runs JOIN lines USING (id)"
        with self.database.reading() as connection:
            for run in runs:
                conditions = (
                    "trace = (SELECT trace FROM runs WHERE id = ?)" if with_traces else "id = ?",
                    run,
                )
                tail = f"ORDER BY id LIMIT {MAX_MATCHES}"
                rows = self._select(connection, columns, source, conditions, tail=tail).fetchall()
                place = next((place for place, row in enumerate(rows) if row[0] == run), None)
                if place is not None:
                    collected.append(PackedRun(run, place, [line for _, line in rows]))
                    size += sum(len(line) for _, line in rows)
                if size > _PACKED_BYTES:
                    break
        return collected

    def packed_pages(self, runs: Sequence[int], *, with_traces: bool = False) -> Iterator[list[PackedRun]]:
        """As `packed`, all of them, about a megabyte at a time."""
        while runs and (some := self.packed(runs, with_traces=with_traces)):
            yield some
            runs = runs[runs.index(some[-1].id) + 1 :]

    def count(self, run_filter: RunFilter) -> int:
        """How many runs match a filter without text."""
        source, _, conditions = source_of(run_filter)
        return int(self.rows("count(*)", source, *conditions)[0][0])

    def lines(self, runs: Sequence[int]) -> dict[int, JsonObject | None]:
        """The lines of some runs by their ids; None for one that was removed."""
        with self.database.reading() as connection:
            return {run: _line(connection, run) for run in runs}

    def line(self, run: int) -> JsonObject | None:
        """The line of a run by its id; None if there is no such run any more."""
        return self.lines([run] if self.rows("1", "runs", ("id = ?", run)) else []).get(run)

    def runs_of_trace(self, trace_id: str) -> list[tuple[RunSummary, JsonObject]]:
        """The runs of a trace in the order in which they were graded, each with its line."""
        with self.database.reading() as connection:
            trace, tail = ("trace = ?", trace_id), f"ORDER BY id LIMIT {MAX_MATCHES}"
            rows = self._select(connection, _COLUMNS, "runs", trace, tail=tail).fetchall()
            collected = [(_summary(connection, row), _line(connection, row[0])) for row in rows]
        return [(summary, line) for summary, line in collected if line is not None]

    def rows(
        self, columns: str, source: str, *conditions: Condition, tail: str = ""
    ) -> list[tuple[Any, ...]]:
        """These columns of the visible rows of `source` that fulfil all conditions; `tail` follows in SQL."""
        with self.database.reading() as connection:
            return self._select(connection, columns, source, *conditions, tail=tail).fetchall()

    def _where(self, *conditions: Condition) -> tuple[str, list[str | int]]:
        """The visible rows that fulfil all conditions, as SQL and its values."""
        everything = [*conditions, *self._visible]
        where = " AND ".join([condition for condition, *_ in everything]) or "1"
        return where, [value for _, *values in everything for value in values]

    def _select(
        self,
        connection: sqlite3.Connection,
        columns: str,
        source: str,
        *conditions: Condition,
        tail: str = "",
    ) -> sqlite3.Cursor:
        where, values = self._where(*conditions)
        return connection.execute(f"SELECT {columns} FROM {source} WHERE {where} {tail}", values)

    def _sums(self, columns: str, *conditions: Condition) -> list[tuple[Any, ...]]:
        """These columns of the counts by hour, with the sums of counts and totals."""
        sums, tail = f"{columns}, sum(count), sum(total)", f"GROUP BY {columns}"
        return self.rows(sums, "hours", *conditions, tail=tail)

    def _hours(self, kind: str, agent: str, hours: range) -> list[tuple[Any, ...]]:
        return self._sums("name, label, version, hour", ("kind = ?", kind), *_of(agent), _during(hours))

    def _agents(self, connection: sqlite3.Connection) -> list[str]:
        """Agents by name: one step in the index for each, however many runs there are."""
        where, values = self._where(("kind = ?", RUN))
        least = f"SELECT min(agent) FROM hours WHERE {where}"
        result = connection.execute(
            f"WITH RECURSIVE found (agent) AS ({least} UNION ALL "
            f"SELECT ({least} AND agent > found.agent) FROM found "
            "WHERE found.agent IS NOT NULL LIMIT 1000) SELECT agent FROM found WHERE agent IS NOT NULL",
            values * 2,
        )
        return [agent for (agent,) in result]


def _of(name: str, column: str = "agent") -> list[Condition]:
    """The condition that a column has this value, unless it is empty."""
    return [(f"{column} = ?", name)] if name else []


def _during(hours: range) -> Condition:
    return "hour >= ? AND hour < ?", hours.start, hours.stop


def _summary(connection: sqlite3.Connection, row: tuple[Any, ...]) -> RunSummary:
    results = connection.execute(
        "SELECT evaluation, outcome, exemption, cause FROM results WHERE run = ? "
        "ORDER BY exemption != '', evaluation",
        (row[0],),
    ).fetchall()
    failures = {name: cause for name, outcome, _, cause in results if outcome in ("fail", "error")}
    exemptions = {name: exemption for name, _, exemption, _ in results if exemption}
    not_evaluated = sum(outcome == "not_evaluated" for _, outcome, *_ in results)
    return RunSummary(*(*row, tuple(failures), exemptions, not_evaluated, len(results), failures))


def _line(connection: sqlite3.Connection, run: int) -> JsonObject | None:
    result = connection.execute("SELECT line FROM lines WHERE id = ?", (run,)).fetchone()
    if result is None:
        return None
    line = unpacked(result[0])
    return line if isinstance(line, dict) else None


def unpacked(line: bytes) -> JsonValue:
    """The run line that is stored so."""
    return decode_json(zlib.decompress(line))
