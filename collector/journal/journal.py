"""The journal as the event loop sees it: what is acknowledged is on disk, and so is its outcome.

Changes are gathered while the transaction before them is written, and written together in a thread: one sync
serves all requests that arrived meanwhile. All state here is touched on the loop's thread only.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from operator import attrgetter, itemgetter

from collector.clock import Clock, ends_within
from collector.errors import Overloaded
from collector.journal.activity import Activity
from collector.journal.journal_config import JournalConfig
from collector.journal.kept_criteria import digests_of_kept, keep
from collector.journal.recovery import Recovered, read_journal, require_whole
from collector.journal_file.records import (
    BatchKind,
    DamagedRecord,
    FinishedRecord,
    Notes,
    Place,
    VerdictGroup,
    encode_entry,
    number_key,
    request_of,
    segment_without,
    trace_key,
)
from collector.journal_file.store import Change, JournalFailed, JournalFull, JournalStore, Table
from collector.journal_file.verdicts import encode_graded
from collector.otlp import EnvelopeRegistry
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.text_file import KeptFile
from collector.trace import CountedReceipt, FinishedTrace, GradedTrace, Receipt, SpanBatch
from collector.work_thread import WorkThread
from processors.model import encode_value
from processors.spans import RawRecord, RawSpan

GATHER_SECONDS = 0.002
"""How long to wait for requests that share a sync, while fewer arrived than before, and again for more."""
MAX_GATHER_SECONDS = 0.01
"""How long at most."""
UNHURRIED_SECONDS = 0.05
"""How long what no sender waits for may wait to share a sync with requests."""
REOPEN_SECONDS = 1.0
"""Between attempts to open the journal after the disk failed."""
MAX_FINISHED = 100_000
"""Finished traces that are remembered over restarts, as many as without a journal."""

_SPARSE_PART = 4
"""A segment of which at most this part is still needed is sparse."""
_SPARSE_AT_ONCE = 16
"""Sparse segments that are cut down between two transactions."""
_ENTRY_BYTES = 64
"""Estimated overhead of a request or a verdict."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Record:
    """A numbered record; `uses` counts the batches or traces that still need it."""

    table: Table
    number: int
    size: int = 0
    is_written: bool = False
    uses: int = 0


@dataclass(slots=True, eq=False)
class _Segment(_Record):
    """The requests of one transaction."""

    whole: int = 0
    """How many batches it has."""
    removed: list[int] = field(default_factory=list)
    """Those of them that are no longer needed, as far as that was written."""
    notes: list[_Record] = field(default_factory=list)
    """The records of what is no longer needed of it."""


@dataclass(slots=True, eq=False)
class _Held:
    """What the journal holds of one trace, or of its late spans."""

    segments: list[_Segment] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    """The places of its batches, each a segment and an index: two lists, since a pair for each batch is one
    more object that the garbage collector looks at."""
    records: tuple[_Record, ...] = ()
    """Those that are about it."""
    leaving: int = 0
    """Batches of streamed spans that are being delivered."""
    has_left: bool = False
    """Whether the graded trace was delivered."""


@dataclass(slots=True)
class _Pending:
    """What the next transaction is to write, apart from changes of single records."""

    segment: _Segment | None = None
    entries: list[bytes] = field(default_factory=list)
    verdict_group: _Record | None = None
    verdicts: list[tuple[bytes, bytes]] = field(default_factory=list)
    notes_record: _Record | None = None
    notes: Notes = field(default_factory=Notes)
    removed: dict[_Segment, list[int]] = field(default_factory=dict)
    finished: list[FinishedRecord] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.entries or self.verdicts or self.finished or self.removed or self.notes_record)


_span_id = itemgetter(0)


def _nothing(holder: str = "") -> None:
    """There is nothing to record: the journal holds nothing of the trace."""


_Leaving = tuple[_Held, _Segment, int]
"""A batch that leaves at once: of which trace it is, and where it stands."""


class Journal:
    """Writes what is admitted, graded and delivered; forgets what every exporter has received.

    `bytes_held` is about what the journalled spans take on disk.
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
        self._thread = WorkThread("journal")
        self.bytes_held = 0
        self._held: dict[bytes, _Held] = {}
        self._recovered_leaving: dict[Place, _Leaving] = {}
        self._next_number = 0
        self._finished_parts: dict[tuple[bytes, int], _Held] = {}
        """Traces that may go on after they were finished, by key and latest end, until they are graded."""
        self._graded: dict[bytes, deque[_Held]] = {}
        """Graded traces that have not left yet, by key, in the order of grading."""
        self._finished_groups: deque[tuple[int, int]] = deque()  # number, and how many traces
        self._finished_traces = 0
        self._pending = _Pending()
        self._sparse: dict[_Segment, None] = {}
        self._changes: list[Change] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._stored_callbacks: list[Callable[[], None]] = []
        self._nudge: asyncio.Future[None] | None = None
        """What the writing task waits for, if it waits."""
        self._is_idle = False
        """Whether it waits for something to write."""
        self._expected = 1
        """Requests that may arrive before the next transaction, estimated from the last one."""
        self._kept: dict[bytes, bytes] = {}
        self._has_failed = False
        self._is_closed = False
        self._is_receiving = False
        self._outages: Callable[[], Sequence[tuple[int, int]]] = tuple
        self._writer: asyncio.Task[None] | None = None
        metrics.journal_bytes.read_from(lambda: self.bytes_held)
        metrics.journal_limit_bytes.set(config.max_bytes)
        metrics.journal_failures.start("full", "failed")

    def open(self, envelopes: EnvelopeRegistry) -> Recovered:
        """Open the directory and read what the previous process left. Blocks.

        Raises:
            StartupError: the directory cannot be used, or its content is damaged.
        """
        self._store.open(partial(require_whole, self.config.directory))
        last = self._activity.open()
        recovered = read_journal(self._store, self.config.directory, last, envelopes)
        self._next_number = recovered.next_number
        self._finished_groups.extend(recovered.finished_groups)
        self._finished_traces = len(recovered.finished)
        self._take_up(recovered)
        self._kept = digests_of_kept(self._store)
        # A crash counts once, before anything is graded: the next may happen before the first transaction.
        if recovered.changes:
            try:
                self._store.write(recovered.changes)
            except JournalFailed as error:
                _logger.error("The previous crash cannot be recorded yet.", extra={"error": str(error)})
                self._changes += recovered.changes
                self._store.close(keep_lock=True)
                self._store.open()
        for in_background in (False, True):
            self._activity.end(in_background=in_background)
        return recovered

    def _take_up(self, recovered: Recovered) -> None:
        """Account for what was recovered; delete what is no longer needed."""
        segments = {
            number: _Segment(Table.SEGMENTS, number, size, is_written=True)
            for number, size in recovered.segments.items()
        }
        for (number, index), journalled in recovered.batches.items():
            segment = segments[number]
            (held,) = self._enter([journalled.batch], journalled.kind, segment, index)
            if (number, index) in recovered.left:
                held.leaving -= 1
            elif journalled.kind is not BatchKind.HELD:
                self._recovered_leaving[number, index] = held, segment, index
        records: list[_Record] = [*segments.values()]
        for number, (size, keys) in recovered.verdict_groups.items():
            group = _Record(Table.VERDICTS, number, size, is_written=True)
            records.append(group)
            for key in keys:
                self._refer(self._held.get(key), group)
        for number, notes in recovered.notes.items():
            record = _Record(Table.NOTES, number, is_written=True)
            records.append(record)
            for of in {place[0] for place in notes.removed}:
                if of in segments and segments[of].uses:
                    segments[of].notes.append(record)
                    record.uses += 1
            for key in {key for key, _ in notes.delivered}:
                self._refer(self._held.get(key), record)
            for place in notes.left:
                match = recovered.batches.get(place)
                if match is not None:
                    self._refer(self._held.get(trace_key(match.batch.trace_id, match.batch.tenant)), record)
        for record in records:
            self.bytes_held += record.size
            if not record.uses:
                self._delete(record)

    def start(self, tasks: TaskOwner) -> None:
        """Start writing."""
        self._thread.start()
        self._writer = tasks.create_task(self._write(), name="write journal")
        tasks.create_task(self._stay_alive(), name="record that the process is alive")
        if self.config.fsync == "interval":
            tasks.create_task(self._sync_sometimes(), name="sync journal")

    def require_room(self, size: int) -> None:
        """Raise Overloaded if `size` bytes cannot be stored: the journal is full, or the disk fails."""
        if self._has_failed:
            raise Overloaded("The journal cannot be written; send the request again.")
        if self.bytes_held + size > self.config.max_bytes:
            raise Overloaded("The journal is full; send the request again.")

    def add(self, held: Sequence[SpanBatch], body: bytes | None = None) -> None:
        """Store the batches of one request that wait for a verdict.

        `body` is the request, if it has these batches and no others, all of one tenant.
        """
        if held:
            segment, first = self._write_down(held, BatchKind.HELD, body)
            self._enter(held, BatchKind.HELD, segment, first)

    def add_leaving(self, batches: Sequence[SpanBatch], *, streamed: bool) -> Receipt:
        """Store spans that leave at once, until the returned receipt is settled.

        Streamed ones are stored until they are graded: a copy of them waits for its verdict.
        """
        leaving = self._add_leaving(batches, BatchKind.STREAMED if streamed else BatchKind.LATE)
        if not streamed:
            for batch in batches:
                self._finish(trace_key(batch.trace_id, batch.tenant), batch.spans)
        return CountedReceipt(partial(self._left, leaving))

    def add_records(
        self, records: Sequence[RawRecord], body: bytes | None = None, of_traces: Sequence[SpanBatch] = ()
    ) -> Receipt:
        """Store log records of one request, which leave at once, until the returned receipt is settled.

        Those in `of_traces` are stored until their trace (or run) is graded, or `discard_records`: copies of
        them wait for it. `body` is the request, if it has these records and no others. A record of both a
        trace and a run is stored for each, and leaves once.
        """
        others = records
        if of_traces:
            of_a_trace = {id(record) for batch in of_traces for record in batch.spans}
            others, body = [record for record in records if id(record) not in of_a_trace], None
        batches = [batch for batch in of_traces if not batch.is_run]
        leaving = self._add_leaving([SpanBatch(b"", others)] if others else [], BatchKind.RECORDS, body)
        leaving += self._add_leaving(batches, BatchKind.TRACE_RECORDS)
        leave = {id(record) for batch in batches for record in batch.spans}
        for run in of_traces:
            if run.is_run:
                fresh = [record for record in run.spans if id(record) not in leave]
                again = [record for record in run.spans if id(record) in leave]
                leaving += self._add_leaving(
                    [run._replace(spans=fresh)] if fresh else [], BatchKind.RUN_RECORDS
                )
                self._left(
                    self._add_leaving([run._replace(spans=again)] if again else [], BatchKind.RUN_RECORDS)
                )
        return CountedReceipt(partial(self._left, leaving))

    def _add_leaving(
        self, batches: Sequence[SpanBatch], kind: BatchKind, body: bytes | None = None
    ) -> list[_Leaving]:
        if not batches:
            return []
        segment, first = self._write_down(batches, kind, body)
        entered = self._enter(batches, kind, segment, first)
        return [(held, segment, index) for index, held in enumerate(entered, first)]

    def discard_records(self, key: bytes) -> None:
        """The trace of log records never came: no copies of them wait any more."""
        held = self._held.pop(key, None)
        if held is not None:
            self._delivered(held)

    def stored(self) -> asyncio.Future[None] | None:
        """Done when all that was added so far is on disk; None if it already is. Fails with `Overloaded`."""
        if not self._has_changes:
            return None
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        if len(self._waiting) == 1 or len(self._waiting) >= self._expected:
            self._wake()
        return waiting

    def finish(self, trace: FinishedTrace) -> None:
        """The trace is taken out of the buffer: whatever goes on in it is held separately from here on."""
        if trace.latest_end:
            key = trace_key(trace.trace_id, trace.tenant)
            held = self._held.pop(key, None)
            if held is not None:
                self._finished_parts[key, trace.latest_end] = held

    def add_verdicts(
        self, trace: FinishedTrace, graded: GradedTrace, when_stored: Callable[[], None]
    ) -> None:
        """Store how a trace was graded, and that it is finished; then call `when_stored`.

        It is also called if the disk fails: then what is held must leave all the more.
        """
        key = trace_key(trace.trace_id, trace.tenant)
        held = self._finished_parts.pop((key, trace.latest_end), None) or self._held.pop(key, None)
        if held is not None:
            self._graded.setdefault(key, deque()).append(held)
            content = encode_graded(trace, graded)
            group = self._pending.verdict_group
            if group is None:
                group = self._pending.verdict_group = _Record(Table.VERDICTS, self._number())
            group.size += len(content) + _ENTRY_BYTES
            self.bytes_held += len(content) + _ENTRY_BYTES
            self._pending.verdicts.append((key, content))
            self._refer(held, group)
        self._finish(key, trace.spans, trace.latest_end)
        self._stored_callbacks.append(when_stored)
        self._nudge_writer()

    def keep_criteria(self, files: Sequence[KeptFile]) -> None:
        """Store exactly these criteria files for the next start."""
        self._changes += keep(files, self._kept)
        self._nudge_writer()

    def leaving_receipt(self, place: Place) -> Receipt:
        """Records who has received spans or log records that were recovered and leave at once."""
        return CountedReceipt(partial(self._left, [self._recovered_leaving.pop(place)]))

    def receipt(self, trace_id: bytes, tenant: str, already: frozenset[str] = frozenset()) -> Receipt:
        """Records who has received a graded trace; `already`: before a restart.

        Request it once, when the trace leaves, in the order in which verdicts were added: other spans under
        the same key belong to another trace, or to what went on in this one.
        """
        key = trace_key(trace_id, tenant)
        graded = self._graded.get(key)
        held = self._held.pop(key, None) if graded is None else graded.popleft()
        if graded is not None and not graded:
            del self._graded[key]
        if held is None:
            return _TraceReceipt(_nothing, _nothing, already)
        return _TraceReceipt(partial(self._delivered, held), partial(self._delivered_to, key, held), already)

    def begin(self, trace: FinishedTrace, *, in_background: bool = False) -> None:
        """Record that the trace is being graded, in the loop or in the background, in case that crashes."""
        self._activity.begin(trace_key(trace.trace_id, trace.tenant), in_background=in_background)

    def end(self, *, in_background: bool = False) -> None:
        """No trace is being graded there."""
        self._activity.end(in_background=in_background)

    async def flush(self, deadline: float) -> None:
        """Wait until what was added is on disk, at most until `deadline` on the monotonic clock."""
        stored = self.stored()
        if stored is None and self._stored_callbacks:
            stored = asyncio.get_running_loop().create_future()
            self._waiting.append(stored)
            self._wake()
        if stored is not None:
            await ends_within(deadline - self._clock.monotonic(), stored, self._clock)

    async def shutdown(self) -> None:
        """Write what is pending and close the file. May be called twice, and before `start`."""
        self._is_closed = True
        self._wake()
        writer, self._writer = self._writer, None
        if writer is not None:
            await asyncio.wait([writer])
        self.note_receiving(False)
        await self._thread.close()
        await asyncio.to_thread(self._store.close)
        self._activity.close()

    def _write_down(
        self, batches: Sequence[SpanBatch], kind: BatchKind, body: bytes | None
    ) -> tuple[_Segment, int]:
        """Add batches of one kind to the pending segment; returns it, and the index of the first."""
        segment = self._pending.segment
        if segment is None:
            segment = self._pending.segment = _Segment(Table.SEGMENTS, self._number())
        start = first = segment.whole
        now = self._clock.unix_nano()
        size = 0
        for tenant, group in groupby(batches, attrgetter("tenant")):
            of_tenant = list(group)
            request = request_of(of_tenant) if body is None else body
            self._pending.entries += encode_entry(
                request, arrived_unix_nano=now, kind=kind, first=first, tenant=tenant
            )
            first += len(of_tenant)
            size += len(request) + _ENTRY_BYTES
        segment.size += size
        self.bytes_held += size
        return segment, start

    def _enter(
        self, batches: Sequence[SpanBatch], kind: BatchKind, segment: _Segment, first: int
    ) -> list[_Held]:
        """Account for consecutive batches of a segment; returns what each of them is held with."""
        entered = []
        for index, batch in enumerate(batches, first):
            if kind.leaves_at_once:
                held = _Held()
            else:
                key = trace_key(batch.trace_id, batch.tenant)
                known = self._held.get(key)
                held = self._held[key] = _Held() if known is None else known
                if kind is not BatchKind.HELD:
                    held.leaving += 1
            held.segments.append(segment)
            held.indexes.append(index)
            entered.append(held)
        segment.uses += len(entered)
        segment.whole += len(entered)
        return entered

    def _refer(self, held: _Held | None, record: _Record) -> None:
        """The record is about a trace, so it is needed as long as that is held."""
        if held is not None:
            held.records += (record,)
            record.uses += 1

    def _finish(self, key: bytes, spans: Sequence[RawSpan], latest_end: int = 0) -> None:
        self._pending.finished.append(FinishedRecord(key, b"".join(map(_span_id, spans)), latest_end))

    def _number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def _notes_record(self) -> _Record:
        """The record of notes of the next transaction."""
        if self._pending.notes_record is None:
            self._pending.notes_record = _Record(Table.NOTES, self._number())
        return self._pending.notes_record

    @property
    def _has_changes(self) -> bool:
        """Whether anything is to be written."""
        return bool(self._changes) or not self._pending.is_empty

    # What receipts report.

    def _delivered_to(self, key: bytes, held: _Held, holder: str) -> None:
        self._refer(held, self._notes_record())
        self._pending.notes.delivered.append((key, holder))
        self._nudge_writer()

    def _delivered(self, held: _Held) -> None:
        """Every exporter has received the graded trace."""
        if held.leaving:
            held.has_left = True
        else:
            self._forget(held)

    def _left(self, left: Sequence[_Leaving]) -> None:
        """Every exporter has received spans that left at once."""
        for held, segment, index in left:
            if not held.leaving:
                self._forget(held)  # late spans, log records
                continue
            held.leaving -= 1
            if held.has_left and not held.leaving:
                self._forget(held)
            else:
                self._refer(held, self._notes_record())
                self._pending.notes.left.append((segment.number, index))
                self._nudge_writer()

    def _forget(self, held: _Held) -> None:
        removed = self._pending.removed
        for segment, index in zip(held.segments, held.indexes, strict=True):
            if segment.uses > 1:
                segment.uses -= 1
                removed.setdefault(segment, []).append(index)
                continue
            removed.pop(segment, None)
            self._sparse.pop(segment, None)
            for record in segment.notes:
                self._release(record)
            self._release(segment)
        for record in held.records:
            self._release(record)
        self._nudge_writer()

    def _release(self, record: _Record) -> None:
        record.uses -= 1
        if not record.uses:
            self._delete(record)

    def _delete(self, record: _Record) -> None:
        """Delete a record that is no longer needed; one that is not written yet never will be."""
        self.bytes_held -= record.size
        if record.is_written:
            self._changes.append(Change(record.table, number_key(record.number), None))

    # Writing.

    async def _write(self) -> None:
        """Write changes as they arrive; after a failure reopen the journal until that succeeds."""
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
                # Most senders wait for an answer before they send more: those answered now and those that
                # arrived meanwhile are all that there are.
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
        """What the next transaction is to do; later changes go into the one after it."""
        changes: list[Change] = []
        pending = self._pending
        if pending.segment is not None and pending.segment.uses:
            self._put(changes, pending.segment, pending.entries)
        if pending.verdict_group is not None and pending.verdict_group.uses:
            group = VerdictGroup(self._next_number, pending.verdicts)
            self._put(changes, pending.verdict_group, [encode_value(group)])
        for segment, indexes in pending.removed.items():
            record = self._notes_record()
            record.uses += 1
            segment.notes.append(record)
            segment.removed += indexes
            pending.notes.removed += [(segment.number, index) for index in indexes]
            if segment.uses * _SPARSE_PART <= segment.whole:
                self._sparse[segment] = None
        if pending.notes_record is not None and pending.notes_record.uses:
            self._put(changes, pending.notes_record, [encode_value(pending.notes)])
        if pending.finished:
            number = self._number()
            changes.append(Change(Table.FINISHED, number_key(number), [encode_value(pending.finished)]))
            self._finished_groups.append((number, len(pending.finished)))
            self._finished_traces += len(pending.finished)
            while self._finished_traces - self._finished_groups[0][1] >= MAX_FINISHED:
                oldest, count = self._finished_groups.popleft()
                self._finished_traces -= count
                changes.append(Change(Table.FINISHED, number_key(oldest), None))
        changes += self._changes
        self._changes = []
        self._pending = _Pending()
        return changes

    def _put(self, changes: list[Change], record: _Record, content: Sequence[bytes]) -> None:
        record.is_written = True
        changes.append(Change(record.table, number_key(record.number), content))

    async def _cut_down(self) -> None:
        """Rewrite sparse segments without what is no longer needed: a long trace must not retain others."""
        sparse = [segment for segment in islice(self._sparse, _SPARSE_AT_ONCE) if segment.is_written]

        def cut() -> list[tuple[_Segment, list[bytes]]]:
            collected = []
            for segment in sparse:
                content = self._store.record(Table.SEGMENTS, number_key(segment.number))
                if content is not None:
                    collected.append((segment, segment_without(content, set(segment.removed))))
            return collected

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
        """Wait briefly for requests that can share a transaction."""
        if not self._waiting and not self._is_closed:
            await self._nudged(UNHURRIED_SECONDS)
        latest = self._clock.monotonic() + MAX_GATHER_SECONDS
        arrived = 0
        while not self._is_closed and arrived < len(self._waiting) < self._expected:
            if self._clock.monotonic() >= latest:
                return
            arrived = len(self._waiting)
            await self._nudged(GATHER_SECONDS)

    async def _nudged(self, seconds: float | None) -> None:
        """Wait for `_wake`, at most for `seconds`. A bare future: this is done for every transaction."""
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

    def _nudge_writer(self) -> None:
        """There is something to write that no sender waits for."""
        if self._is_idle:
            self._wake()

    async def _mended(self, failure: JournalFailed) -> bool:
        """Reopen the journal until that succeeds; False when it is being closed."""
        reason = "full" if isinstance(failure, JournalFull) else "failed"
        self._has_failed = True
        self._metrics.journal_failures.add(1, reason)
        self._log.error(
            reason,
            "The journal cannot be written: requests are refused, to be sent again.",
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
        """Whether the journal could be reopened, and room be made in it."""

        def reopen() -> None:
            self._store.close(keep_lock=True)
            self._store.open()
            self._store.write(deletions)
            for turn in (b"1", b"2"):  # LMDB reuses pages two transactions after they were freed
                self._store.write([Change(Table.ABOUT, b"reopened", [turn])])

        try:
            await self._thread.run(reopen)
        except Exception as error:  # whatever it is, try again
            self._log.error("failing", "The journal cannot be opened.", error=str(error))
            return False
        return True

    def note_receiving(self, is_receiving: bool) -> None:
        """Whether requests are taken from now on; a process that starts or drains takes none.

        The next process regards this one as down while it did not.
        """
        if self._is_receiving:
            self._activity.note_alive(self._clock.unix_nano(), self._outages())
        self._is_receiving = is_receiving

    def record_outages(self, outages: Callable[[], Sequence[tuple[int, int]]]) -> None:
        """Let the next process know start and end, in Unix nanoseconds, of what `outages` returns by then."""
        self._outages = outages

    async def _stay_alive(self) -> None:
        while True:
            self.note_receiving(self._is_receiving)
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


class _TraceReceipt(CountedReceipt):
    """Notes who has received a graded trace, while others are yet to."""

    __slots__ = ("_already", "_note")

    def __init__(
        self, settle: Callable[[], None], note: Callable[[str], None], already: frozenset[str]
    ) -> None:
        super().__init__(settle)
        self._note = note
        self._already = already

    def expects(self, holder: str) -> bool:
        """Whether `holder` is to receive it; then it must report when it has."""
        return holder not in self._already and super().expects(holder)

    def delivered(self, holder: str = "") -> None:
        """`holder` has received it, or never will; without one: no one else is to receive it."""
        super().delivered(holder)
        if holder and self._open:
            self._note(holder)
