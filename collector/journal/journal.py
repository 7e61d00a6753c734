"""The journal as the event loop sees it: what is acknowledged is on disk, and so is what became of it.

Changes are gathered while the transaction before them is written, and written together in a thread: one sync
serves all requests that came meanwhile. All state here is touched on the loop's thread only.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import Protocol

from collector.clock import Clock, ends_within
from collector.errors import Overloaded
from collector.journal.activity import Activity
from collector.journal.journal_config import JournalConfig
from collector.journal.journal_thread import JournalThread
from collector.journal.kept_criteria import digests_of_kept, keep
from collector.journal.records import (
    BatchKind,
    DamagedRecord,
    Notes,
    Place,
    encode_entry,
    encode_notes,
    encode_pair,
    encode_verdict_group,
    finished_record,
    number_key,
    request_of,
    segment_without,
    trace_key,
)
from collector.journal.recovery import Recovered, read_journal, require_whole
from collector.journal.store import Change, JournalFailed, JournalFull, JournalStore, Table
from collector.journal.verdicts import encode_graded
from collector.otlp import EnvelopeRegistry
from collector.telemetry import Metrics, RateLimitedLogger
from collector.text_file import KeptFile
from collector.trace import CountedReceipt, FinishedTrace, GradedTrace, Receipt, SpanBatch
from processors.spans import RawSpan

GATHER_SECONDS = 0.002
"""How long requests are waited for that share a sync, while fewer came than before; as long again while more
come."""
MAX_GATHER_SECONDS = 0.01
"""How long at most."""
UNHURRIED_SECONDS = 0.05
"""How long what no sender waits for may wait for a sync of requests to share."""
REOPEN_SECONDS = 1.0
"""After the disk failed, how long until it is tried again."""
MAX_FINISHED = 100_000
"""Finished traces that are remembered over restarts, as many as without one."""

_SPARSE_PART = 4
"""A segment of which at most this part is still needed is sparse."""
_SPARSE_AT_ONCE = 16
"""Sparse segments that are cut down between two transactions."""
_ENTRY_BYTES = 64
"""What a request or a verdict takes beside its content, about."""

_logger = logging.getLogger(__name__)


class TaskOwner(Protocol):
    """Runs the tasks of the journal."""

    def create_task(self, coroutine: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
        """Run `coroutine` as a task."""
        ...


class _Record:
    """A numbered record, and how many batches or traces still need it."""

    __slots__ = ("is_written", "number", "size", "table", "uses")

    def __init__(self, table: Table, number: int, size: int = 0, *, is_written: bool = False) -> None:
        self.table = table
        self.number = number
        self.size = size
        self.uses = 0
        self.is_written = is_written


class _Segment(_Record):
    """The requests of one transaction; `uses` counts batches that not everybody has got."""

    __slots__ = ("gone", "notes", "whole")

    def __init__(self, number: int, size: int = 0, *, is_written: bool = False) -> None:
        super().__init__(Table.SEGMENTS, number, size, is_written=is_written)
        self.whole = 0
        """How many batches stand in it."""
        self.gone: list[int] = []
        """Those of them that are no longer needed, as far as that was written."""
        self.notes: list[_Record] = []
        """The records that say what is no longer needed of it."""


class _Held:
    """What the journal holds of one trace, or of spans that came late to one."""

    __slots__ = ("has_left", "indexes", "leaving", "records", "segments")

    def __init__(self) -> None:
        self.segments: list[_Segment] = []
        self.indexes: list[int] = []
        """The places of its batches, each a segment and an index: two lists, since a pair for each batch is
        one more object that the garbage collector looks at."""
        self.records: tuple[_Record, ...] = ()
        """Those that say something of it."""
        self.leaving = 0
        """Batches of streamed spans that are on their way."""
        self.has_left = False
        """Whether the graded trace was delivered."""


_span_id = itemgetter(0)

_Leaving = tuple[_Held, _Segment, int]
"""A batch that leaves at once: of which trace it is, and where it stands."""


def _by_tenant(batches: Sequence[SpanBatch]) -> Iterator[tuple[str, Sequence[SpanBatch]]]:
    """Batches that stand side by side and have the same tenant."""
    return ((tenant, list(group)) for tenant, group in groupby(batches, key=attrgetter("tenant")))


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
        self._thread = JournalThread()
        self.bytes_held = 0
        self._held: dict[bytes, _Held] = {}
        self._found_leaving: dict[Place, _Leaving] = {}
        self._next_number = 0
        self._finished_parts: dict[tuple[bytes, int], _Held] = {}
        """What was taken out of the buffer and may go on, by key and latest end, until it is graded."""
        self._graded: dict[bytes, deque[_Held]] = {}
        """What was graded and has not left yet, by key, in the order of grading."""
        self._finished_groups: deque[tuple[int, int]] = deque()  # number, and how many traces
        self._finished_traces = 0
        # What the next transaction is to write.
        self._segment: _Segment | None = None
        self._entries: list[bytes] = []
        self._verdict_group: _Record | None = None
        self._verdicts: list[bytes] = []
        self._notes_record: _Record | None = None
        self._notes = Notes()
        self._gone: dict[_Segment, list[int]] = {}
        self._finished: list[bytes] = []
        self._finished_now = 0
        self._sparse: dict[_Segment, None] = {}
        self._changes: list[Change] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._stored_callbacks: list[Callable[[], None]] = []
        self._nudge: asyncio.Future[None] | None = None
        """What the writing task waits for, if it does, before it writes."""
        self._is_idle = False
        """Whether it waits for something to write."""
        self._expected = 1
        """Requests that may come before the next transaction, by those before."""
        self._kept: dict[bytes, bytes] = {}
        self._has_failed = False
        self._is_closed = False
        self._writer: asyncio.Task[None] | None = None
        metrics.journal_bytes.read_from(lambda: self.bytes_held)
        metrics.journal_limit_bytes.set(config.max_bytes)
        for reason in ("full", "failed"):
            metrics.journal_failures.add(0, reason)

    def open(self, envelopes: EnvelopeRegistry) -> Recovered:
        """Open the directory, and read what the process before left; blocks.

        Args:
            envelopes: Where resources and scopes come from.

        Raises:
            StartupError: the directory cannot be used, or what is in it is damaged.
        """
        self._store.open(partial(require_whole, self.config.directory))
        last = self._activity.open()
        recovered = read_journal(self._store, self.config.directory, last, envelopes)
        self._next_number = recovered.next_number
        self._finished_groups.extend(recovered.finished_groups)
        self._finished_traces = len(recovered.finished)
        self._take_up(recovered)
        self._kept = digests_of_kept(self._store)
        # A crash counts once, and before anything is graded: the next may come before the first transaction.
        if recovered.changes:
            try:
                self._store.write(recovered.changes)
            except JournalFailed as error:
                _logger.error("The crash before cannot be counted yet.", extra={"error": str(error)})
                self._changes += recovered.changes
                self._store.close(keep_lock=True)
                self._store.open()
        for aside in (False, True):
            self._activity.end(aside=aside)
        return recovered

    def _take_up(self, recovered: Recovered) -> None:
        """Enter what was found in the books; what nobody needs any more is deleted."""
        segments = {
            number: _Segment(number, size, is_written=True) for number, size in recovered.segments.items()
        }
        for (number, index), journalled in recovered.batches.items():
            segment = segments[number]
            (held,) = self._enter([journalled.batch], journalled.kind, segment, index)
            if (number, index) in recovered.left:
                held.leaving -= 1
            elif journalled.kind is not BatchKind.HELD:
                self._found_leaving[number, index] = held, segment, index
        records: list[_Record] = [*segments.values()]
        for number, (size, keys) in recovered.verdict_groups.items():
            group = _Record(Table.VERDICTS, number, size, is_written=True)
            records.append(group)
            for key in keys:
                self._say_of(self._held.get(key), group)
        for number, notes in recovered.notes.items():
            record = _Record(Table.NOTES, number, is_written=True)
            records.append(record)
            for of in {place[0] for place in notes.gone}:
                if of in segments and segments[of].uses:
                    segments[of].notes.append(record)
                    record.uses += 1
            for key in {key for key, _ in notes.delivered}:
                self._say_of(self._held.get(key), record)
            for place in notes.left:
                found = recovered.batches.get(place)
                if found is not None:
                    self._say_of(self._held.get(trace_key(found.batch.trace_id, found.batch.tenant)), record)
        for record in records:
            self.bytes_held += record.size
            if not record.uses:
                self._delete(record)

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

    def add(self, held: Sequence[SpanBatch], body: bytes | None = None) -> None:
        """Keep spans that wait for a verdict.

        Args:
            held: The batches of one request.
            body: The request, if it has these batches and no others, all of one tenant.
        """
        if held:
            segment, first = self._write_down(held, BatchKind.HELD, body)
            self._enter(held, BatchKind.HELD, segment, first)

    def add_leaving(self, batches: Sequence[SpanBatch], *, streamed: bool) -> Receipt:
        """Keep spans that leave at once, until the returned receipt says that they are delivered.

        Streamed ones are kept further on, for grading: a copy of them waits for its verdict.
        """
        kind = BatchKind.STREAMED if streamed else BatchKind.LATE
        segment, first = self._write_down(batches, kind, None)
        entered = self._enter(batches, kind, segment, first)
        leaving = [(held, segment, index) for index, held in enumerate(entered, first)]
        if not streamed:
            for batch in batches:
                self._finish(trace_key(batch.trace_id, batch.tenant), batch.spans)
        return CountedReceipt(partial(self._left, leaving))

    def stored(self) -> asyncio.Future[None] | None:
        """Done when all that was added so far is on disk; None if it is. Fails with `Overloaded`."""
        if not self._has_changes:
            return None
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        if len(self._waiting) == 1 or len(self._waiting) >= self._expected:
            self._wake()
        return waiting

    def finish(self, trace: FinishedTrace) -> None:
        """The trace is taken out of the buffer: if it goes on, that is held by itself from here on."""
        if trace.latest_end:
            key = trace_key(trace.trace_id, trace.tenant)
            held = self._held.pop(key, None)
            if held is not None:
                self._finished_parts[key, trace.latest_end] = held

    def add_verdicts(
        self, trace: FinishedTrace, graded: GradedTrace, when_stored: Callable[[], None]
    ) -> None:
        """Keep how a trace was graded, and that it is finished; then call `when_stored`.

        It is called as well if the disk fails: what is held must go out then more than ever.
        """
        key = trace_key(trace.trace_id, trace.tenant)
        held = self._finished_parts.pop((key, trace.latest_end), None) or self._held.pop(key, None)
        if held is not None:
            self._graded.setdefault(key, deque()).append(held)
            content = encode_graded(trace, graded)
            group = self._verdict_group
            if group is None:
                group = self._verdict_group = _Record(Table.VERDICTS, self._number())
            group.size += len(content) + _ENTRY_BYTES
            self.bytes_held += len(content) + _ENTRY_BYTES
            self._verdicts += encode_pair(key, content)
            self._say_of(held, group)
        self._finish(key, trace.spans, trace.latest_end)
        self._stored_callbacks.append(when_stored)
        self._want()

    def keep_criteria(self, files: Sequence[KeptFile]) -> None:
        """Keep exactly these criteria files for the next start."""
        self._changes += keep(files, self._kept)
        self._want()

    def leaving_receipt(self, place: Place) -> Receipt:
        """Takes note of who has got spans that were found in the journal and leave at once."""
        return CountedReceipt(partial(self._left, [self._found_leaving.pop(place)]))

    def receipt(self, trace_id: bytes, tenant: str, already: frozenset[str] = frozenset()) -> Receipt:
        """Takes note of who has got a graded trace; `already` those who had before a restart.

        To be asked for once, when the trace leaves, in the order in which verdicts were added: other spans
        under the same key are another trace's, or what went on in this one.
        """
        key = trace_key(trace_id, tenant)
        graded = self._graded.get(key)
        if graded is None:
            return _TraceReceipt(self, key, self._held.pop(key, None), already)
        held = graded.popleft()
        if not graded:
            del self._graded[key]
        return _TraceReceipt(self, key, held, already)

    def begin(self, trace: FinishedTrace, *, aside: bool = False) -> None:
        """The trace is in work from now on: who finds that after a crash knows what it was at.

        One trace can be in work in the loop, and one `aside` of it.
        """
        self._activity.begin(trace_key(trace.trace_id, trace.tenant), aside=aside)

    def end(self, *, aside: bool = False) -> None:
        """No trace is in work there."""
        self._activity.end(aside=aside)

    async def flush(self, deadline: float) -> None:
        """Wait until what was added is on disk, at most until `deadline` on the clock's monotonic time."""
        stored = self.stored()
        if stored is None and self._stored_callbacks:
            stored = asyncio.get_running_loop().create_future()
            self._waiting.append(stored)
            self._wake()
        if stored is not None:
            await ends_within(deadline - self._clock.monotonic(), stored, self._clock)

    async def shutdown(self) -> None:
        """Write what is pending and close the file; safe twice and before `start`."""
        self._is_closed = True
        self._wake()
        writer, self._writer = self._writer, None
        if writer is not None:
            await asyncio.wait([writer])
        self._activity.note_alive(self._clock.unix_nano())
        await self._thread.run(self._store.close)
        self._activity.close()
        self._thread.close()

    def _write_down(
        self, batches: Sequence[SpanBatch], kind: BatchKind, body: bytes | None
    ) -> tuple[_Segment, int]:
        """Write batches of one kind down; in which segment they stand, and the index of the first."""
        segment = self._segment
        if segment is None:
            segment = self._segment = _Segment(self._number())
        start = first = segment.whole
        now = self._clock.unix_nano()
        size = 0
        for tenant, group in _by_tenant(batches) if body is None else ((batches[0].tenant, batches),):
            request = request_of(group) if body is None else body
            self._entries += encode_entry(
                request, arrived_unix_nano=now, kind=kind, first=first, tenant=tenant
            )
            first += len(group)
            size += len(request) + _ENTRY_BYTES
        segment.size += size
        self.bytes_held += size
        return segment, start

    def _enter(
        self, batches: Sequence[SpanBatch], kind: BatchKind, segment: _Segment, first: int
    ) -> list[_Held]:
        """Enter batches that stand side by side in the books; what each of them is held with."""
        entered = []
        for index, batch in enumerate(batches, first):
            if kind is BatchKind.LATE:
                held = _Held()
            else:
                key = trace_key(batch.trace_id, batch.tenant)
                known = self._held.get(key)
                held = self._held[key] = _Held() if known is None else known
                if kind is BatchKind.STREAMED:
                    held.leaving += 1
            held.segments.append(segment)
            held.indexes.append(index)
            entered.append(held)
        segment.uses += len(entered)
        segment.whole += len(entered)
        return entered

    def _say_of(self, held: _Held | None, record: _Record) -> None:
        """The record says something of a trace, so that it is needed as long as that is held."""
        if held is not None:
            held.records += (record,)
            record.uses += 1

    def _finish(self, key: bytes, spans: Sequence[RawSpan], latest_end: int = 0) -> None:
        self._finished += encode_pair(key, finished_record(list(map(_span_id, spans)), latest_end))
        self._finished_now += 1

    def _number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def _noting(self) -> _Record:
        """The record of notes of the next transaction."""
        if self._notes_record is None:
            self._notes_record = _Record(Table.NOTES, self._number())
        return self._notes_record

    @property
    def _has_changes(self) -> bool:
        """Whether anything is to be written."""
        return bool(
            self._changes
            or self._entries
            or self._verdicts
            or self._finished
            or self._gone
            or self._notes_record is not None
        )

    # What receipts say.

    def _delivered_to(self, key: bytes, held: _Held, holder: str) -> None:
        self._say_of(held, self._noting())
        self._notes.delivered.append((key, holder))
        self._want()

    def _delivered(self, held: _Held) -> None:
        """Everybody has got the graded trace."""
        if held.leaving:
            held.has_left = True
        else:
            self._forget(held)

    def _left(self, left: Sequence[_Leaving]) -> None:
        """Everybody has got spans that left at once."""
        for held, segment, index in left:
            if not held.leaving:
                self._forget(held)  # late spans
                continue
            held.leaving -= 1
            if held.has_left and not held.leaving:
                self._forget(held)
            else:
                self._say_of(held, self._noting())
                self._notes.left.append((segment.number, index))
                self._want()

    def _forget(self, held: _Held) -> None:
        gone = self._gone
        for segment, index in zip(held.segments, held.indexes, strict=True):
            if segment.uses > 1:
                segment.uses -= 1
                if segment in gone:
                    gone[segment].append(index)
                else:
                    gone[segment] = [index]
                continue
            gone.pop(segment, None)
            self._sparse.pop(segment, None)
            for record in segment.notes:
                self._let_go(record)
            self._let_go(segment)
        for record in held.records:
            self._let_go(record)
        self._want()

    def _let_go(self, record: _Record) -> None:
        record.uses -= 1
        if not record.uses:
            self._delete(record)

    def _delete(self, record: _Record) -> None:
        """Nobody needs the record any more; one that is not written yet never will be."""
        self.bytes_held -= record.size
        if record.is_written:
            self._changes.append(Change(record.table, number_key(record.number), None))

    # Writing.

    async def _write(self) -> None:
        """Write changes as they come; after a failure open the journal anew until that succeeds."""
        while True:
            while not self._has_changes:
                if self._is_closed:
                    return
                await self._nudged(None)
            await self._gather()
            if self.bytes_held > self.config.max_bytes // _SPARSE_PART and self._sparse:
                await self._cut_down()
            changes = self._take_changes()
            waiting, self._waiting = self._waiting, []
            callbacks, self._stored_callbacks = self._stored_callbacks, []
            started = self._clock.monotonic()
            failure: JournalFailed | None = None
            try:
                await self._thread.run(self._store.write, changes)
            except JournalFailed as error:
                failure = error
                self._changes[:0] = changes
            else:
                self._metrics.journal_commit_seconds.observe(self._clock.monotonic() - started)
                self._has_failed = False
            if waiting:
                # Most senders wait for an answer before they send more: those that were answered now, and
                # those that came meanwhile, are all that there are.
                self._expected = len(waiting) + len(self._waiting)
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

    def _take_changes(self) -> list[Change]:
        """What the next transaction is to do; from then on others are gathered."""
        changes: list[Change] = []
        if self._segment is not None and self._segment.uses:
            self._put(changes, self._segment, self._entries)
        if self._verdict_group is not None and self._verdict_group.uses:
            self._put(changes, self._verdict_group, encode_verdict_group(self._next_number, self._verdicts))
        for segment, indexes in self._gone.items():
            record = self._noting()
            record.uses += 1
            segment.notes.append(record)
            segment.gone += indexes
            self._notes.gone += [(segment.number, index) for index in indexes]
            if segment.uses * _SPARSE_PART <= segment.whole:
                self._sparse[segment] = None
        if self._notes_record is not None and self._notes_record.uses:
            self._put(changes, self._notes_record, encode_notes(self._notes))
        if self._finished:
            number, count = self._number(), self._finished_now
            changes.append(Change(Table.FINISHED, number_key(number), self._finished))
            self._finished_groups.append((number, count))
            self._finished_traces += count
            while self._finished_traces - self._finished_groups[0][1] >= MAX_FINISHED:
                oldest, count = self._finished_groups.popleft()
                self._finished_traces -= count
                changes.append(Change(Table.FINISHED, number_key(oldest), None))
        changes += self._changes
        self._changes = []
        self._segment = self._verdict_group = self._notes_record = None
        self._entries, self._verdicts, self._finished, self._finished_now = [], [], [], 0
        self._gone, self._notes = {}, Notes()
        return changes

    def _put(self, changes: list[Change], record: _Record, content: Sequence[bytes]) -> None:
        record.is_written = True
        changes.append(Change(record.table, number_key(record.number), content))

    async def _cut_down(self) -> None:
        """Write segments of which little is needed again, without the rest: a long trace keeps no others."""
        sparse = [segment for segment in islice(self._sparse, _SPARSE_AT_ONCE) if segment.is_written]

        def cut() -> list[tuple[_Segment, list[bytes]]]:
            found = []
            for segment in sparse:
                content = self._store.record(Table.SEGMENTS, number_key(segment.number))
                if content is not None:
                    found.append((segment, segment_without(content, set(segment.gone))))
            return found

        for segment in sparse:
            del self._sparse[segment]
        try:
            smaller = await self._thread.run(cut)
        except (DamagedRecord, JournalFailed) as error:
            self._log.error("failing", "A record of the journal cannot be read.", error=str(error))
            return
        for segment, parts in smaller:
            if segment.uses:
                size = sum(map(len, parts))
                self.bytes_held += size - segment.size
                segment.size, segment.whole = size, segment.uses
                self._changes.append(Change(Table.SEGMENTS, number_key(segment.number), parts))

    async def _gather(self) -> None:
        """Let as much come together as can share a transaction, and nobody wait for long."""
        if not self._waiting and not self._is_closed:
            await self._nudged(UNHURRIED_SECONDS)
        latest = self._clock.monotonic() + MAX_GATHER_SECONDS
        came = 0
        while not self._is_closed and came < len(self._waiting) < self._expected:
            if self._clock.monotonic() >= latest:
                return
            came = len(self._waiting)
            await self._nudged(GATHER_SECONDS)

    async def _nudged(self, seconds: float | None) -> None:
        """Wait until `_wake` is called, or so long. Bare futures: this is done for every transaction."""
        loop = asyncio.get_running_loop()
        nudge = self._nudge = loop.create_future()
        self._is_idle = seconds is None
        timer = None if seconds is None else loop.call_later(seconds, self._wake)
        try:
            await nudge
        finally:
            self._nudge = None
            self._is_idle = False
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        """The writing task need not wait any longer."""
        if self._nudge is not None and not self._nudge.done():
            self._nudge.set_result(None)

    def _want(self) -> None:
        """There is something to write, which nobody waits for."""
        if self._is_idle:
            self._wake()

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
                self._store.write([Change(Table.ABOUT, b"reopened", [turn])])

        try:
            await self._thread.run(reopen)
        except Exception as error:  # whatever it is, it is tried again
            self._log.error("failing", "The journal cannot be opened.", error=str(error))
            return False
        return True

    async def _stay_alive(self) -> None:
        while True:
            self._activity.note_alive(self._clock.unix_nano())
            await self._clock.sleep(0.1)

    async def _sync_sometimes(self) -> None:
        while True:
            await self._clock.sleep(self.config.interval)
            try:
                await self._thread.run(self._store.sync)
            except JournalFailed as error:
                self._has_failed = True
                self._metrics.journal_failures.add(1, "failed")
                self._log.error("failing", "The journal cannot be synced.", error=str(error))
                while not await self._reopened(()):
                    await self._clock.sleep(REOPEN_SECONDS)
                self._has_failed = False


class _TraceReceipt:
    """Who has got a graded trace, and who has yet to."""

    __slots__ = ("_already", "_held", "_is_sealed", "_journal", "_key", "_open")

    def __init__(self, journal: Journal, key: bytes, held: _Held | None, already: frozenset[str]) -> None:
        self._journal = journal
        self._key = key
        self._held = held
        self._already = already
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
        if self._held is None:
            return
        if self._is_sealed and not self._open:
            self._journal._delivered(self._held)
        else:
            self._journal._delivered_to(self._key, self._held, holder)

    def seal(self) -> None:
        """Nobody else is to get it."""
        self._is_sealed = True
        if not self._open and self._held is not None:
            self._journal._delivered(self._held)
