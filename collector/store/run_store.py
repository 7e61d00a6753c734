"""The run store of the service: accepts graded runs in the loop and writes them in a thread."""

import asyncio
import logging
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import NamedTuple

from collector.clock import Clock, ends_within
from collector.store.reviews import Answer, Reviews
from collector.store.run_database import RunDatabase, StoreUnusable
from collector.store.run_queries import RunQueries
from collector.store.run_rows import HourKey, RunRows, not_stored_key, rows_of
from collector.store.store_config import StoreConfig
from collector.store.stored_conversations import StoredConversations
from collector.telemetry import Labels, Metrics, RateLimitedLogger
from collector.trace import GradedTrace
from processors.model import GradedRun, Outcome

STORE = "store"
"""Its name among exporters, as in the journal and in metrics."""
_MAX_PENDING = 500
_MAX_PENDING_BYTES = 16 * 1024 * 1024
_RUNS_PER_WRITE = 32
_FIRST_TURN_SECONDS, _TURN_SECONDS, _SECONDS_BETWEEN_TURNS = 0.02, 0.005, 0.1
"""How long the loop stops for a batch: at first, and then a twentieth of the time, if the disk is slow."""
_LARGEST_SHARE = 32
"""Runs whose line takes more than this part of the limit are not stored."""
_LARGE_RUN_STEPS, _LARGE_RUN_CHARACTERS = 200, 256 * 1024
"""Runs with more calls and messages, or more text in them, are read in the thread."""
_LONGEST_REST_SECONDS = 2.0
_RETRY_SECONDS = 10.0
_MAX_REVIEW_SERIES = 3_000

_MAX_NOT_STORED = 10_000
"""Pairs of agent, version and hour whose runs that were not stored are counted until the next write."""
_FAILED = (Outcome.FAIL, Outcome.ERROR)


class _Trace(NamedTuple):
    """The rows of each run of a trace, or a large run itself, and what to call once they are written."""

    runs: Sequence[RunRows | GradedRun]
    done: Callable[[], None] | None


class _Queue:
    """Traces that wait to be written."""

    def __init__(self) -> None:
        self._traces: deque[_Trace] = deque()
        self.runs = 0
        self._bytes = 0

    def has_room(self, runs: int) -> bool:
        return self.runs + runs <= _MAX_PENDING and self._bytes <= _MAX_PENDING_BYTES

    def add(self, trace: _Trace) -> None:
        self._traces.append(trace)
        self.runs += len(trace.runs)
        self._bytes += sum(map(_size, trace.runs))

    def take(self, most: int | None = None) -> list[_Trace]:
        """Remove the oldest: all, or traces of `most` runs together, or one with more."""
        taken: list[_Trace] = []
        runs = 0
        while self._traces and (most is None or runs < most):
            trace = self._traces.popleft()
            taken.append(trace)
            runs += len(trace.runs)
            self._bytes -= sum(map(_size, trace.runs))
        self.runs -= runs
        return taken


_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class RunStore:
    """An exporter of results that stores graded runs; if the disk fails, only stored runs are lost.

    Runs that exceed the time which the store may take are dropped and counted, failed ones last. It uses
    `limit_bytes`, by default those of `config`. `conversations` are restored from a file when it is opened.

    Runs are read into rows when they arrive, in the loop: they are in the CPU's cache then, and rows are a
    quarter as large. Retained as objects, each run would cost the loop more than that, mostly in the garbage
    collector.
    """

    name = STORE

    config: StoreConfig
    metrics: Metrics
    clock: Clock
    limit_bytes: int = 0
    conversations: StoredConversations | None = None

    def __post_init__(self) -> None:
        self.limit_bytes = self.limit_bytes or self.config.limit_bytes
        self._has_all = True
        self._log = RateLimitedLogger(_logger, self.clock)
        self._database = RunDatabase(self.config.path, self.limit_bytes)
        self.queries = RunQueries(self._database)
        """Queries, from any thread."""
        self._database.on_review = self._show_reviews
        self._failed, self._others = _Queue(), _Queue()
        """What waits to be written; failed runs have room of their own, and are written first."""
        self._not_stored: Counter[HourKey] = Counter()
        self._reading_seconds = 0.0
        self._writing: list[_Trace] = []
        self._arrived = asyncio.Event()
        self._closing = asyncio.Event()
        self._is_broken = False
        self._thread: ThreadPoolExecutor | None = None
        self._writer: asyncio.Task[None] | None = None
        for reason in ("queue_full", "too_large", "disk", "shutdown"):
            self.metrics.results_dropped.add(0, reason, STORE)
        for outcome in ("written", "removed"):
            self.metrics.store_runs.add(0, outcome)
        self.metrics.store_limit_bytes.set(self.limit_bytes)
        self.metrics.store_bytes.set(0)

    async def start(self) -> None:
        """Open the database and start writing; a failing disk is retried later."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=STORE)
        await self._open(self._thread)
        self._writer = asyncio.create_task(self._write_pending(self._thread))

    def export_results(self, trace: GradedTrace, done: Callable[[], None] | None = None) -> None:
        """Queue the runs of a trace; without room they are dropped."""
        runs = trace.runs
        is_failed = any(run.verdict in _FAILED for run in runs)
        queue = self._failed if is_failed else self._others
        if self._is_broken or not queue.has_room(len(runs)):
            self._drop(runs, "disk" if self._is_broken else "queue_full")
            if done is not None:
                done()
            return
        started = time.thread_time()
        now = self.clock.unix_nano()
        queue.add(_Trace([run if _is_large(run) else rows_of(run, now) for run in runs], done))
        self._reading_seconds += time.thread_time() - started
        self._arrived.set()

    async def shutdown(self, deadline: float) -> None:
        """Write pending runs until `deadline`, then close the database. Safe before start and twice."""
        self._closing.set()
        self._arrived.set()
        writer, self._writer = self._writer, None
        if writer is not None:
            await ends_within(deadline - self.clock.monotonic(), writer, self.clock)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        thread, self._thread = self._thread, None
        lost = [*self._writing, *self._failed.take(), *self._others.take()]
        if thread is not None:
            if self.conversations is not None and self._has_all and not lost:
                thread.submit(self.conversations.leave, self._database)
            thread.submit(self._database.close)
            thread.shutdown(wait=False)
        if lost:
            self._writing = []
            self._drop([run for trace in lost for run in trace.runs], "shutdown")

    async def _open(self, thread: ThreadPoolExecutor) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(thread, self._open_database)
        except (sqlite3.Error, OSError, StoreUnusable) as error:
            self._fail(error)
        else:
            self._is_broken = False

    def _open_database(self) -> None:
        self._database.open()
        self._show_reviews()
        if self.conversations is not None:
            self.conversations.restore(self._database)

    def _show_reviews(self) -> None:
        """Show the answers to verdicts as metrics."""
        shown: dict[Labels, float] = {}
        for of, precision in Reviews(self.queries).precision().items():
            for answer in () if of.rule or len(shown) >= _MAX_REVIEW_SERIES else Answer:
                labels = (of.agent, of.evaluation, answer.value)
                shown[labels] = shown.get(labels, 0) + getattr(precision, answer.value)
        self.metrics.reviewed_failures.values = shown

    def _fail(self, error: Exception) -> None:
        if not self._is_broken:
            self.metrics.store_failures.add(1)
            self._log.warning(
                "failing",
                "The run store is unavailable. Runs are still graded and delivered but not stored until its "
                "file can be written.",
                path=str(self.config.path or "memory"),
                error=str(error),
            )
        self._is_broken = True
        self._database.problem = str(error)
        self._complete([*self._writing, *self._failed.take(), *self._others.take()], "disk")
        self._writing = []

    async def _write_pending(self, thread: ThreadPoolExecutor) -> None:
        rest_per_work = 1 / self.config.max_cpu - 1
        while True:
            while not self._failed.runs and not self._others.runs:
                if self._closing.is_set():
                    return
                self._arrived.clear()
                if self._is_broken:
                    await ends_within(_RETRY_SECONDS, self._closing.wait(), self.clock)
                    await self._open(thread)
                else:
                    await self._arrived.wait()
            self._writing = self._failed.take(_RUNS_PER_WRITE)
            self._writing += self._others.take(
                _RUNS_PER_WRITE - sum(len(trace.runs) for trace in self._writing)
            )
            not_stored, self._not_stored = self._not_stored, Counter()
            try:
                runs = [run for trace in self._writing for run in trace.runs]
                writing = thread.submit(self._write, runs, not_stored)
                # The loop stops for the thread: a batch takes about four milliseconds then, but seconds, and
                # ten times the CPU, if both compete for the interpreter over every statement.
                turn = _FIRST_TURN_SECONDS
                while wait([writing], turn).not_done:
                    await asyncio.sleep(_SECONDS_BETWEEN_TURNS)
                    turn = _TURN_SECONDS
                written, removed, used, seconds = writing.result()
            except (sqlite3.Error, OSError, StoreUnusable) as error:
                self._not_stored.update(not_stored)
                self._fail(error)
                continue
            self.metrics.store_runs.add(written, "written")
            self.metrics.store_runs.add(removed, "removed")
            self.metrics.store_bytes.set(used)
            if written < len(runs):
                self._has_all = False
                self.metrics.results_dropped.add(len(runs) - written, "too_large", STORE)
            self._complete(self._writing)
            self._writing = []
            seconds += self._reading_seconds
            self._reading_seconds = 0.0
            rest = min(rest_per_work * seconds, _LONGEST_REST_SECONDS)
            await ends_within(rest, self._closing.wait(), self.clock)

    def _drop(self, runs: Sequence[RunRows | GradedRun], reason: str) -> None:
        """Count runs that are not stored, also in the store itself once it is written again."""
        self._has_all = False
        self.metrics.results_dropped.add(len(runs), reason, STORE)
        now = self.clock.unix_nano()
        for run in runs if len(self._not_stored) < _MAX_NOT_STORED else ():
            self._not_stored[not_stored_key(run, reason, now)] += 1
        if reason == "queue_full":
            self._log.warning(
                "full",
                "Runs are not stored: more arrive than the store may take (store.max_cpu).",
                runs=len(runs),
            )

    def _complete(self, traces: list[_Trace], reason: str | None = None) -> None:
        """Report runs as written, or as dropped for `reason`."""
        if reason is not None and traces:
            self._drop([run for trace in traces for run in trace.runs], reason)
        for trace in traces:
            if trace.done is not None:
                trace.done()

    def _write(
        self, runs: Sequence[RunRows | GradedRun], not_stored: Mapping[HourKey, int]
    ) -> tuple[int, int, int, float]:
        """Runs written and removed, bytes used, and CPU seconds taken."""
        started = time.thread_time()
        now = self.clock.unix_nano()
        largest = self.limit_bytes // _LARGEST_SHARE
        plain = (run if isinstance(run, RunRows) else rows_of(run, now) for run in runs)
        rows = []
        not_stored = Counter(not_stored)
        for row in (row.packed() for row in plain):
            if len(row.line) <= largest:
                rows.append(row)
            else:
                not_stored[not_stored_key(row, "too_large", now)] += 1
        oldest = now // 1_000_000 - round(self.config.retention * 1000)
        removed = 0
        for together in [*_portions(rows, largest)] or [()]:
            removed += self._database.write(together, oldest, not_stored)
            not_stored.clear()
        return len(rows), removed, self._database.used_bytes(), time.thread_time() - started


def _portions(rows: Sequence[RunRows], largest: int) -> Iterator[Sequence[RunRows]]:
    """Portions of `rows` whose lines have about `largest` bytes."""
    portion: list[RunRows] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += row.size
        if size >= largest:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _is_large(run: GradedRun) -> bool:
    """Whether reading it would block the loop."""
    calls, messages = run.run.tool_calls, run.run.messages
    if len(run.line) > _LARGE_RUN_CHARACTERS or len(calls) + len(messages) > _LARGE_RUN_STEPS:
        return True
    written = sum(len(call.arguments_text or "") + len(call.result_text or "") for call in calls)
    return written + sum(len(message.content) for message in messages) > _LARGE_RUN_CHARACTERS


def _size(row: RunRows | GradedRun) -> int:
    return row.size if isinstance(row, RunRows) else 4 * _LARGE_RUN_CHARACTERS
