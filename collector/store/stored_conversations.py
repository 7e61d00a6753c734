"""Restores conversations from the run store after a restart. Blocking, before anything is graded."""

from collections.abc import Callable
from dataclasses import dataclass, field

from collector.clock import Clock
from collector.conversations import MAX_AWAY_SECONDS, Conversations
from collector.store.run_database import RunDatabase
from collector.store.run_queries import RunQueries
from processors.model import AgentRun, JsonValue

MAX_RESTORED_RUNS = 20_000
_KNOWN_FROM, _CLOSED = "conversations_known_from", "conversations_closed"


@dataclass(eq=False)
class StoredConversations:
    """Restores conversations after a restart, and records since when they are complete.

    Stored runs count as complete since some time only if the previous process shut down in order, had written
    every run, and ended no longer ago than senders retry. `read_run` reads a stored line, or raises
    ValueError; unless lines `are_as_graded` they cannot be attributed. `retention` is in seconds.
    """

    conversations: Conversations
    read_run: Callable[[JsonValue, str], AgentRun]
    are_as_graded: bool
    retention: float
    clock: Clock
    _is_restored: bool = field(default=False, init=False)

    def restore(self, database: RunDatabase) -> None:
        """Restore stored conversations the first time that the store is open; raises `sqlite3.Error`."""
        marks = database.take_marks()
        if self._is_restored or not self.are_as_graded or not self.conversations.is_needed:
            return
        self._is_restored = True
        now = self.clock.unix_nano()
        away = now - marks.get(_CLOSED, 0)
        known_from = marks.get(_KNOWN_FROM, 0) if away <= MAX_AWAY_SECONDS * 1e9 else 0
        since = now // 1_000_000 - round(self.retention * 1000)
        lines, complete_from = RunQueries(database).conversations(since, MAX_RESTORED_RUNS)
        runs: list[tuple[AgentRun, int]] = []
        for milliseconds, line in lines:
            try:
                runs.append((self.read_run(line, "the store"), milliseconds * 1_000_000))
            except ValueError:  # of another version
                known_from = 0
        if known_from:
            known_from = max(known_from, complete_from * 1_000_000)
        self.conversations.restore(runs, known_from)

    def leave(self, database: RunDatabase) -> None:
        """Record the state for the next process, once all runs are written; raises `sqlite3.Error`."""
        known_from, closed = self.conversations.known_from, self.conversations.closed_unix_nano
        if known_from is not None and closed:
            database.leave_marks({_KNOWN_FROM: known_from, _CLOSED: closed})
