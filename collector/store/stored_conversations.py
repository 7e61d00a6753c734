"""Conversations over a restart: their runs come out of the store. Blocking, before anything is graded."""

from collections.abc import Callable

from collector.clock import Clock
from collector.conversations import MAX_AWAY_SECONDS, Conversations
from collector.store.run_database import RunDatabase
from collector.store.run_queries import RunQueries
from processors.model import AgentRun, JsonValue

MAX_RESTORED_RUNS = 20_000
_KNOWN_FROM, _CLOSED = "conversations_known_from", "conversations_closed"


class StoredConversations:
    """Brings conversations back after a restart, and leaves word of how far they are known.

    What the store has of them counts as all there was since a time only after a process that ended in order,
    had every run written and has not been gone for longer than senders try again.

    Args:
        conversations: Where they are kept while the service runs.
        read_run: Reads a line of the store; raises ValueError where it cannot.
        are_as_graded: Whether lines show runs as they were graded; else they do not say what they are of.
        retention: How long a conversation is kept, in seconds.
        clock: Tells how long the service was gone.
    """

    def __init__(
        self,
        conversations: Conversations,
        *,
        read_run: Callable[[JsonValue, str], AgentRun],
        are_as_graded: bool,
        retention: float,
        clock: Clock,
    ) -> None:
        self._conversations = conversations
        self._read_run = read_run
        self._are_as_graded = are_as_graded
        self._retention = retention
        self._clock = clock
        self._is_restored = False

    def restore(self, database: RunDatabase) -> None:
        """Take back what the store has, the first time that it is open; it forgets how far that is known.

        Raises:
            sqlite3.Error: the disk.
        """
        marks = database.take_marks()
        if self._is_restored or not self._are_as_graded or not self._conversations.is_wanted:
            return
        self._is_restored = True
        now = self._clock.unix_nano()
        away = now - marks.get(_CLOSED, 0)
        known_from = marks.get(_KNOWN_FROM, 0) if away <= MAX_AWAY_SECONDS * 1e9 else 0
        since = now // 1_000_000 - round(self._retention * 1000)
        stored = RunQueries(database).conversations(since, MAX_RESTORED_RUNS)
        runs: list[tuple[AgentRun, int]] = []
        for milliseconds, line in stored.lines:
            try:
                runs.append((self._read_run(line, "the store"), milliseconds * 1_000_000))
            except ValueError:  # of another version
                known_from = 0
        if known_from:
            known_from = max(known_from, stored.complete_from * 1_000_000)
        self._conversations.restore(runs, known_from)

    def leave(self, database: RunDatabase) -> None:
        """Leave word for the next process; all runs are written.

        Raises:
            sqlite3.Error: the disk.
        """
        known_from, closed = self._conversations.known_from, self._conversations.closed_unix_nano
        if known_from is not None and closed:
            database.leave_marks({_KNOWN_FROM: known_from, _CLOSED: closed})
