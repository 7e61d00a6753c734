"""The journal as the event loop sees it: what is acknowledged is on disk, and so is what became of it.

Changes are gathered while the transaction before them is written, and written together in a thread: one sync
serves all requests that came meanwhile. All state here is touched on the loop's thread only.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from collector.clock import Clock, ends_within
from collector.errors import Overloaded
from collector.journal.activity import Activity
from collector.journal.journal_config import JournalConfig
from collector.journal.records import (
    BatchKind,
    JournalledBatch,
    encode_batch,
    encode_envelope,
    encode_finished,
    envelopes_of,
    number_key,
    trace_key,
)
from collector.journal.recovery import Recovered, read_journal, require_whole
from collector.journal.store import (
    Change,
    JournalFailed,
    JournalFull,
    JournalStore,
    Table,
    stored_size,
)
from collector.journal.verdicts import encode_verdicts
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import FinishedTrace, GradedTrace, Receipt, SpanBatch, held_bytes
from processors.spans import Envelope

GATHER_SECONDS = 0.002
"""How long requests are waited for that share a sync."""
REOPEN_SECONDS = 1.0
"""After the disk failed, how long until it is tried again."""
MAX_FINISHED = 100_000
"""Finished traces that are remembered over restarts, as many as without one."""

_logger = logging.getLogger(__name__)


class TaskOwner(Protocol):
    """Runs the tasks of the journal."""

    def create_task(self, coroutine: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
        """Run `coroutine` as a task."""
        ...


class _Held:
    """What the journal holds of one trace, or of spans that left at once."""

    __slots__ = ("envelopes", "has_left", "leaving", "left", "numbers", "size")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.envelopes: list[Envelope] = []
        self.size = 0
        self.leaving = 0
        """Batches of streamed spans that are on their way."""
        self.left: list[int] = []
        """The numbers of those that everybody has got."""
        self.has_left = False
        """Whether the graded trace was delivered."""


class Journal:
    """Writes what is admitted, graded and delivered; forgets what everybody has got.

    Attributes:
        bytes_held: What the journalled spans take on disk, about.
    """

    def __init__(
        self, config: JournalConfig, *, metrics: Metrics, clock: Clock, store: JournalStore | None = None
    ) -> None:
        self.config = config
        self._store = store or JournalStore(
            config.directory, max_bytes=config.max_bytes, syncs=config.fsync == "always"
        )
        self._activity = Activity(config.directory)
        self._metrics = metrics
        self._clock = clock
        self._log = RateLimitedLogger(_logger, clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self.bytes_held = 0
        self._held: dict[bytes, _Held] = {}
        self._envelopes: dict[Envelope, list[int]] = {}  # number and how many batches name it
        self._next_batch = self._next_envelope = self._next_finished = 0
        self._finished_numbers: deque[int] = deque()
        self._changes: list[Change] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._stored_callbacks: list[Callable[[], None]] = []
        self._wanted = asyncio.Event()
        self._has_failed = False
        self._is_closed = False
        self._writer: asyncio.Task[None] | None = None
        metrics.journal_bytes.read_from(lambda: self.bytes_held)
        metrics.journal_limit_bytes.set(config.max_bytes)
        for reason in ("full", "failed"):
            metrics.journal_failures.add(0, reason)

    def open(self, envelope: Callable[[bytes, bytes], Envelope]) -> Recovered:
        """Open the directory, and read what the process before left; blocks.

        Args:
            envelope: Gives the one envelope for a resource and a scope.

        Raises:
            StartupError: the directory cannot be used, or what is in it is damaged.
        """
        self._store.open(partial(require_whole, self.config.directory))
        last = self._activity.open()
        recovered = read_journal(self._store, self.config.directory, last, envelope)
        for number, known in recovered.envelopes.items():
            self._envelopes[known] = [number, 0]
            self._next_envelope = max(self._next_envelope, number + 1)
        for number, journalled in recovered.batches.items():
            key = journalled.held_under(number)
            self._note_batch(key, number, journalled, stored_size(held_bytes(journalled.batch.spans)))
            self._next_batch = number + 1
            if number in recovered.left:
                self._held[key].leaving -= 1
                self._held[key].left.append(number)
        for number in recovered.finished:
            self._finished_numbers.append(number)
            self._next_finished = number + 1
        for known, (number, uses) in list(self._envelopes.items()):
            if not uses:
                del self._envelopes[known]
                self._change(Table.ENVELOPES, number_key(number), None)
        self._changes += recovered.changes
        self._activity.end()  # it counts once, also if this process is killed before it grades anything
        return recovered

    def start(self, tasks: TaskOwner) -> None:
        """Begin to write."""
        self._writer = tasks.create_task(self._write(), name="write journal")
        tasks.create_task(self._stay_alive(), name="tell that the process lives")
        if self.config.fsync == "interval":
            tasks.create_task(self._sync_sometimes(), name="sync journal")

    def require_room(self, size: int) -> None:
        """Refuse a request of `size` bytes, retryably, that could not be kept.

        Raises:
            Overloaded: the journal is full, or the disk fails.
        """
        if self._has_failed:
            raise Overloaded("The journal cannot be written; send the request again.")
        if self.bytes_held + size > self.config.max_bytes:
            raise Overloaded("The journal is full; send the request again.")

    def add(self, held: Iterable[SpanBatch]) -> None:
        """Keep spans that wait for a verdict."""
        now = self._clock.unix_nano()
        for batch in held:
            self._add(JournalledBatch(batch=batch, arrived_unix_nano=now, kind=BatchKind.HELD))

    def add_leaving(self, batches: Sequence[SpanBatch], *, streamed: bool) -> Receipt:
        """Keep spans that leave at once, until the returned receipt says that they are delivered.

        Streamed ones are kept further on, for grading: a copy of them waits for its verdict.
        """
        now = self._clock.unix_nano()
        left: list[tuple[bytes, int]] = []
        for batch in batches:
            key = trace_key(batch.trace_id, batch.tenant)
            kind = BatchKind.STREAMED if streamed else BatchKind.LATE
            journalled = JournalledBatch(batch=batch, arrived_unix_nano=now, kind=kind)
            left.append(self._add(journalled))
            if not streamed:
                self._finish(partial(encode_finished, key, b"".join(span[0] for span in batch.spans)))
        return _LeavingReceipt(self, left)

    def stored(self) -> asyncio.Future[None] | None:
        """Done when all that was added so far is on disk; None if it is. Fails with `Overloaded`."""
        if not self._changes:
            return None
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._wanted.set()
        return waiting

    def add_verdicts(
        self, trace: FinishedTrace, graded: GradedTrace, when_stored: Callable[[], None]
    ) -> None:
        """Keep how a trace was graded, and that it is finished; then call `when_stored`.

        It is called as well if the disk fails: what is held must go out then more than ever.
        """
        key = trace_key(trace.trace_id, trace.tenant)
        span_ids = [span[0] for span in trace.spans]
        self._change(Table.VERDICTS, key, partial(encode_verdicts, trace, graded))
        self._finish(lambda: encode_finished(key, b"".join(sorted(span_ids))))
        self._stored_callbacks.append(when_stored)
        self._wanted.set()

    def leaving_receipt(self, number: int, batch: JournalledBatch) -> Receipt:
        """Takes note of who has got spans that were found in the journal and leave at once."""
        return _LeavingReceipt(self, [(batch.held_under(number), number)])

    def receipt(self, trace_id: bytes, tenant: str, already: frozenset[str] = frozenset()) -> Receipt:
        """Takes note of who has got a graded trace; `already` those who had before a restart."""
        return _TraceReceipt(self, trace_key(trace_id, tenant), already)

    def begin(self, trace: FinishedTrace) -> None:
        """The trace is in work from now on: who finds that after a crash knows what it was at."""
        self._activity.begin(trace_key(trace.trace_id, trace.tenant))

    def end(self) -> None:
        """No trace is in work."""
        self._activity.end()

    async def flush(self, deadline: float) -> None:
        """Wait until what was added is on disk, at most until `deadline` on the clock's monotonic time."""
        stored = self.stored()
        if stored is None and self._stored_callbacks:
            stored = asyncio.get_running_loop().create_future()
            self._waiting.append(stored)
        if stored is not None:
            await ends_within(deadline - self._clock.monotonic(), stored, self._clock)

    async def shutdown(self) -> None:
        """Write what is pending and close the file; safe twice and before `start`."""
        self._is_closed = True
        self._wanted.set()
        writer, self._writer = self._writer, None
        if writer is not None:
            await asyncio.wait([writer])
        self._activity.note_alive(self._clock.unix_nano())
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.close)
        self._activity.close()
        self._thread.shutdown(wait=False)

    def _add(self, journalled: JournalledBatch) -> tuple[bytes, int]:
        """Write a batch down; under which key it is held, and its number."""
        number = self._next_batch
        self._next_batch += 1
        key = journalled.held_under(number)
        numbers = self._note_batch(key, number, journalled, stored_size(held_bytes(journalled.batch.spans)))
        self._change(
            Table.BATCHES, number_key(number), partial(encode_batch, journalled, numbers.__getitem__)
        )
        return key, number

    def _note_batch(
        self, key: bytes, number: int, journalled: JournalledBatch, size: int
    ) -> dict[Envelope, int]:
        """Enter a batch in the books; the numbers of its envelopes."""
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held()
        held.numbers.append(number)
        held.size += size
        self.bytes_held += size
        if journalled.kind is BatchKind.STREAMED:
            held.leaving += 1
        numbers: dict[Envelope, int] = {}
        for envelope in envelopes_of(journalled.batch.spans):
            known = self._envelopes.get(envelope)
            if known is None:
                known = self._envelopes[envelope] = [self._next_envelope, 0]
                self._next_envelope += 1
                self._change(Table.ENVELOPES, number_key(known[0]), encode_envelope(envelope))
            known[1] += 1
            numbers[envelope] = known[0]
            held.envelopes.append(envelope)
        return numbers

    def _finish(self, content: Callable[[], bytes]) -> None:
        number = self._next_finished
        self._next_finished += 1
        self._finished_numbers.append(number)
        self._change(Table.FINISHED, number_key(number), content)
        if len(self._finished_numbers) > MAX_FINISHED:
            self._change(Table.FINISHED, number_key(self._finished_numbers.popleft()), None)

    def _change(self, table: Table, key: bytes, content: bytes | Callable[[], bytes] | None) -> None:
        self._changes.append(Change(table, key, content))

    # What receipts say.

    def _delivered_to(self, key: bytes, holder: str) -> None:
        self._change(Table.DELIVERIES, key + b"\0" + holder.encode(), b"")
        self._wanted.set()

    def _delivered(self, key: bytes, holders: Iterable[str]) -> None:
        """Everybody has got the graded trace."""
        for holder in holders:
            self._change(Table.DELIVERIES, key + b"\0" + holder.encode(), None)
        held = self._held.get(key)
        if held is None:
            return
        if held.leaving:
            held.has_left = True
        else:
            self._forget(key)

    def _left(self, left: Sequence[tuple[bytes, int]]) -> None:
        """Everybody has got spans that left at once."""
        for key, number in left:
            held = self._held[key]
            if not held.leaving:
                self._forget(key)  # late spans
                continue
            held.leaving -= 1
            held.left.append(number)
            if held.has_left and not held.leaving:
                self._forget(key)
            else:
                self._change(Table.DELIVERIES, number_key(number), b"")
                self._wanted.set()

    def _forget(self, key: bytes) -> None:
        held = self._held.pop(key)
        self.bytes_held -= held.size
        for number in held.numbers:
            self._change(Table.BATCHES, number_key(number), None)
        for number in held.left:
            self._change(Table.DELIVERIES, number_key(number), None)
        self._change(Table.VERDICTS, key, None)
        for envelope in held.envelopes:
            known = self._envelopes[envelope]
            known[1] -= 1
            if not known[1]:
                del self._envelopes[envelope]
                self._change(Table.ENVELOPES, number_key(known[0]), None)
        self._wanted.set()

    # Writing.

    async def _write(self) -> None:
        """Write changes as they come; after a failure open the journal anew until that succeeds."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._changes:
                if self._is_closed:
                    return
                self._wanted.clear()
                await self._wanted.wait()
            if not self._is_closed:
                await self._clock.sleep(GATHER_SECONDS)
            changes, self._changes = self._changes, []
            waiting, self._waiting = self._waiting, []
            callbacks, self._stored_callbacks = self._stored_callbacks, []
            started = self._clock.monotonic()
            failure: JournalFailed | None = None
            try:
                await loop.run_in_executor(self._thread, self._store.write, changes)
            except JournalFailed as error:
                failure = error
                self._changes[:0] = changes
            else:
                self._metrics.journal_commit_seconds.observe(self._clock.monotonic() - started)
                self._has_failed = False
            for future in waiting:
                if not future.done():
                    if failure is None:
                        future.set_result(None)
                    else:
                        future.set_exception(
                            Overloaded("The journal cannot be written; send the request again.")
                        )
            for callback in callbacks:
                callback()
            if failure is not None and not await self._mended(failure):
                return

    async def _mended(self, failure: JournalFailed) -> bool:
        """Wait until the journal may be tried again; False when it is being closed."""
        reason = "full" if isinstance(failure, JournalFull) else "failed"
        self._has_failed = True
        self._metrics.journal_failures.add(1, reason)
        self._log.error(
            reason,
            "The journal cannot be written: senders are told to come back.",
            directory=str(self.config.directory),
            error=str(failure),
        )
        while not self._is_closed:
            await self._clock.sleep(REOPEN_SECONDS)
            # What is deleted makes room, so it goes first; of changes to one record only the last counts.
            last = {(change.table, change.key): change for change in self._changes}
            deletions = [change for change in last.values() if change.content is None]
            self._changes = [change for change in last.values() if change.content is not None]
            if await self._reopened(deletions):
                return True
            self._changes[:0] = deletions
        return False

    async def _reopened(self, deletions: Sequence[Change]) -> bool:
        """Whether the journal could be opened anew, and room be made in it."""

        def reopen() -> None:
            self._store.close(keep_lock=True)
            self._store.open()
            self._store.write(deletions)
            for turn in (b"1", b"2"):  # LMDB gives pages out again two transactions after they were let go
                self._store.write([Change(Table.ABOUT, b"reopened", turn)])

        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, reopen)
        except Exception as error:  # whatever it is, it is tried again
            self._log.error("failing", "The journal cannot be opened.", error=str(error))
            return False
        return True

    async def _stay_alive(self) -> None:
        while True:
            self._activity.note_alive(self._clock.unix_nano())
            await self._clock.sleep(0.1)

    async def _sync_sometimes(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._clock.sleep(self.config.interval)
            try:
                await loop.run_in_executor(self._thread, self._store.sync)
            except JournalFailed as error:
                self._has_failed = True
                self._metrics.journal_failures.add(1, "failed")
                self._log.error("failing", "The journal cannot be synced.", error=str(error))
                while not await self._reopened(()):
                    await self._clock.sleep(REOPEN_SECONDS)
                self._has_failed = False


class _TraceReceipt:
    """Who has got a graded trace, and who has yet to."""

    __slots__ = ("_already", "_is_sealed", "_journal", "_key", "_noted", "_open")

    def __init__(self, journal: Journal, key: bytes, already: frozenset[str]) -> None:
        self._journal = journal
        self._key = key
        self._already = already
        self._noted = set(already)
        self._open = 0
        self._is_sealed = False

    def expects(self, holder: str) -> bool:
        """Whether `holder` is to get it; then it must say when it has."""
        if holder in self._already:
            return False
        self._open += 1
        return True

    def delivered(self, holder: str) -> None:
        """`holder` has got it, or will never."""
        self._open -= 1
        if self._is_sealed and not self._open:
            self._journal._delivered(self._key, self._noted)
        else:
            self._noted.add(holder)
            self._journal._delivered_to(self._key, holder)

    def seal(self) -> None:
        """Nobody else is to get it."""
        self._is_sealed = True
        if not self._open:
            self._journal._delivered(self._key, self._noted)


class _LeavingReceipt:
    """Who has got spans that left at once, and who has yet to."""

    __slots__ = ("_is_sealed", "_journal", "_left", "_open")

    def __init__(self, journal: Journal, left: Sequence[tuple[bytes, int]]) -> None:
        self._journal = journal
        self._left = left
        self._open = 0
        self._is_sealed = False

    def expects(self, holder: str) -> bool:
        """See `Receipt`."""
        self._open += 1
        return True

    def delivered(self, holder: str) -> None:
        """See `Receipt`."""
        self._open -= 1
        if self._is_sealed and not self._open:
            self._journal._left(self._left)

    def seal(self) -> None:
        """See `Receipt`."""
        self._is_sealed = True
        if not self._open:
            self._journal._left(self._left)
