"""The trace buffer: spans in by request, finished traces out.

It groups spans by trace, drops repeats, bounds what it holds, and finishes traces by the finish policy. All
calls happen on the event loop's thread.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Literal, TypeAlias, get_args

from collector.buffer.finish_clock import OUTAGE_SECONDS, FinishClock
from collector.buffer.finish_policy import FinishPolicy, GroupByTraceConfig
from collector.buffer.finished_traces import FinishedTraces
from collector.buffer.held_trace import TRACE_OVERHEAD_BYTES, HeldTrace
from collector.buffer.learned_waits import GapWatch, LearnedWaits
from collector.buffer.outages import Outage, Outages, RefusedSpans
from collector.buffer.waiting_records import TRACE_BYTES as WAITING_TRACE_BYTES
from collector.buffer.waiting_records import WaitingRecords
from collector.clock import Clock
from collector.errors import Overloaded, RequestTooLarge
from collector.memory_limiter import MemoryLimiter
from collector.telemetry import Metrics
from collector.trace import (
    RECEIPT_BYTES,
    SPAN_OVERHEAD_BYTES,
    FinishedTrace,
    JoinedReceipt,
    Origin,
    RecordSource,
    SpanBatch,
    held_bytes,
    receipts,
)
from processors.model import FinishReason
from processors.reconstruction import Scopes
from processors.spans import RawRecord, RawSpan

Interruption: TypeAlias = Literal["start", "outage", "refused", "peers", "keys"]
"""Why a trace may lack spans: it began before the service took any, met an outage, had some refused, was
under way while the set of replicas changed, so that some may have gone to another one, or its records may
lie in several partitions."""


SOFT_LIMIT = 0.8
"""Part of the memory limit that buffers may fill by themselves before they finish traces early."""

HEADS_AT_ONCE = 10_000
"""Heads of spans of one trace that are read at once: some 30 ms. The rest is read the next time."""

JUDGED_SPANS, JUDGED_BYTES = 1000, 1 << 20
"""A trace with more waits the longer grace: to read it would hold up the loop."""
TIMES_JUDGED = 4
"""How often it is checked whether a trace is settled, while span after span is late."""
JUDGED_A_SECOND = 100
"""Traces of one buffer that are read for that: some 7 % of a core. Under more load others wait longer."""

_WAITING_PART = 16
"""Part of the memory limit that log records may take whose trace has not come."""
_MAX_SERVICES = 1_000

_STORED_NANO = 900_000_000_000
_CAN_GO_ON = frozenset(
    {FinishReason.ROOT, FinishReason.ROOT_INCOMPLETE, FinishReason.IDLE, FinishReason.MAX_AGE}
)
"""What starts after a trace that finished so can be another run. What was cut short for want of room is not
held again."""
_LACKS_SPANS = frozenset({FinishReason.IDLE, FinishReason.ROOT_INCOMPLETE})
"""A trace that was quiet for long and still has no root, or misses parents, is but a part."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of an admitted request.

    `late` are the spans of traces that are finished already, to be forwarded at once. `fresh` are all other
    spans that arrived for the first time, in a buffer that streams; copies stay for grading. The bytes of
    both are acquired like those of a finished trace, and released by their last holder. `continued` are the
    spans that are held because a trace goes on that was graded already.
    """

    late: Sequence[SpanBatch] = ()
    fresh: Sequence[SpanBatch] = ()
    continued: Sequence[SpanBatch] = ()


_NOTHING_LEAVES = Admission()


@dataclass(frozen=True, slots=True)
class RecordAdmission:
    """What became of admitted log records, all of which leave at once.

    `held_bytes` was acquired for that, and is released by who has them last. `kept` are those of which copies
    wait with their trace, or for it; `late` those whose trace is finished.
    """

    held_bytes: int
    kept: Sequence[SpanBatch] = ()
    late: Sequence[SpanBatch] = ()


class TraceBuffer:
    """Holds spans by trace until each trace is finished.

    Every admitted span leaves once, in a `FinishedTrace` or as late, or is dropped and counted as
    `duplicate` or `conflict`. A finished trace can go on: spans of it that began after everything that was
    graded are held and finish again, as a trace of their own under the same id; all other spans that arrive
    for a finished trace are late.

    Admission acquires `held_bytes` of the spans from the limiter, and `TRACE_OVERHEAD_BYTES` for each trace
    while it is held here (with `has_receipts` `RECEIPT_BYTES` more); what has left the buffer is released by
    its receiver.

    Args:
        streams: Hand every span out when it is admitted, and hold copies, whose bytes are acquired as well.
            Of two different spans with one id the first has left, whichever is graded.
        verdict_delay: Seconds for which every trace is held longer than it must be quiet, so that a rerouting
            before that can become known.
        group: The buffers that share the memory limit; by default a new one.
        source: Where spans are read from in records; these are held there as well, until their trace was
            delivered, or until `forget`.
        learned: The waits where `root_grace` is `auto`; they learn from what is finished here.
        settled_scopes: Returns the runs of spans that show that their trace is over, else None. Not called
            for what was restored, nor for records of a `source`: were it to crash the process, no one would
            know which trace did. Without it the longer grace counts for every trace.

    Attributes:
        finish_clock: the clock of quiet time. `poll` reads it; outages that the process cannot see (its own
            downtime) are to be recorded in its `outages`.
        held_bytes: bytes acquired for what the buffer holds.
        spans_held: spans in the buffer.
    """

    def __init__(
        self,
        *,
        config: GroupByTraceConfig,
        limiter: MemoryLimiter,
        metrics: Metrics,
        clock: Clock,
        policy: FinishPolicy | None = None,
        finished_traces: FinishedTraces | None = None,
        finish_clock: FinishClock | None = None,
        streams: bool = False,
        has_receipts: bool = False,
        verdict_delay: float = 0.0,
        group: "BufferGroup | None" = None,
        source: RecordSource | None = None,
        learned: LearnedWaits | None = None,
        settled_scopes: Callable[[Sequence[RawSpan]], Scopes | None] | None = None,
        reports_end: Callable[[Sequence[RawRecord]], bool] = lambda records: False,
    ) -> None:
        self._config = config
        self._learned = learned
        self._gaps = None if learned is None else GapWatch(learned)
        self._policy = policy or FinishPolicy(config, learned, verdict_delay)
        self._verdict_delay = verdict_delay
        self._settled_scopes = settled_scopes
        self._reports_end = reports_end
        self._judging_since = 0.0
        self._judged = 0  # traces since then
        self._clock = clock
        self.streams = streams
        self._trace_bytes = TRACE_OVERHEAD_BYTES + (RECEIPT_BYTES if has_receipts else 0)
        self._max_spans = config.max_spans_per_trace
        self._max_bytes = config.max_bytes_per_trace
        self._max_lateness_nano = int(config.max_lateness * 1e9)
        self._limiter = limiter
        self._metrics = metrics
        self.finish_clock: FinishClock = finish_clock or FinishClock(clock)
        self._refused = RefusedSpans(self.finish_clock.outages)
        self._reroutings = Outages()
        self._finished = FinishedTraces() if finished_traces is None else finished_traces
        self._traces: OrderedDict[bytes, HeldTrace] = OrderedDict()  # the longest quiet first
        self._held_since: dict[bytes, int] = {}  # when each trace here was opened, the oldest first
        self._deadlines: list[tuple[float, bytes]] = []  # when to look at a trace again
        self._over_limit: list[HeldTrace] = []  # taken out, to leave with the next poll
        self._counted_standstill = 0.0
        self._ready_unix_nano = 0
        self._horizon_unix_nano = 0
        self._source = source
        self.held_bytes = 0
        self.spans_held = 0
        self._waiting_records = WaitingRecords(limiter.limit // _WAITING_PART)
        self._with_late_records: dict[str, None] = {}  # services whose records come after their spans
        self.log_records_held = 0
        self.on_unmatched: Callable[[bytes], None] = lambda key: None
        """Called with the key of a trace that never came, whose records wait no longer."""
        metrics.log_records_unmatched.start("max_age", "no_room")
        metrics.spans_dropped.start("duplicate", "conflict", others=("",))
        metrics.traces_interrupted.start(*get_args(Interruption))
        if group is None:
            group = BufferGroup(limiter.limit)
            group.publish(metrics, clock)
        self.group = group
        group.buffers.append(self)

    def sibling(
        self, source: RecordSource, finish_clock: FinishClock, finished_traces: FinishedTraces
    ) -> "TraceBuffer":
        """A buffer of the same settings and group for what is read from `source`."""
        return TraceBuffer(
            config=self._config,
            limiter=self._limiter,
            metrics=self._metrics,
            clock=self._clock,
            finished_traces=finished_traces,
            finish_clock=finish_clock,
            streams=self.streams,
            has_receipts=True,
            group=self.group,
            source=source,
            learned=self._learned,
        )

    @property
    def traces_held(self) -> int:
        """Traces in the buffer."""
        return len(self._traces) + len(self._over_limit)

    @property
    def lost_until_unix_nano(self) -> int:
        """Until when the process stood still, or refused what has not come back; 0 if it never did."""
        return max(self.finish_clock.outages.end_unix_nano, self._refused.last_unix_nano)

    def admit(self, batches: Sequence[SpanBatch], record: int | None = None) -> Admission:
        """Take all spans of one request, or none. `record` is the one of the source that they were read from.

        Raises:
            Overloaded: there is no room now. The caller passes the batches to `note_refused`.
            RequestTooLarge: the request could not even be held alone.
        """
        total = needed = unopened = 0
        steps: list[tuple[SpanBatch, bytes, int]] = []
        for batch in batches:
            spans = batch.spans
            if not spans:
                continue
            size = SPAN_OVERHEAD_BYTES * len(spans)
            for span in spans:
                size += len(span[1])
            key = _key(batch)
            if key not in self._traces:
                unopened += 1
            needed += size
            total += len(spans)
            steps.append((batch, key, size))
        reserved = needed if self.streams else 0  # for what leaves at once, in addition to the copies
        try:
            self._acquire(needed + reserved + unopened * self._trace_bytes, batches)
        except RequestTooLarge:
            self._remember_refused(batches)
            raise

        arrival = self.finish_clock.now()
        self._metrics.spans_received.add(total)
        late: list[SpanBatch] = []
        fresh: list[SpanBatch] = []
        continued: list[SpanBatch] = []
        for batch, key, size in steps:
            if self._refused:
                self._refused.remove(key, [span[0] for span in batch.spans])
            trace = self._traces.get(key)
            if (trace is None and key in self._finished) or (trace is not None and trace.was_graded):
                going_on = [span for span in batch.spans if self._goes_on(key, span)]
                if len(going_on) < len(batch.spans):
                    on_time = {span[0] for span in going_on}
                    new_spans = self._admit_late(
                        key, [span for span in batch.spans if span[0] not in on_time]
                    )
                    if new_spans:
                        late.append(SpanBatch(batch.trace_id, new_spans, batch.tenant))
                if not going_on:
                    continue
                batch = SpanBatch(batch.trace_id, going_on, batch.tenant)
                size = held_bytes(going_on)
                continued.append(batch)
            if trace is None:
                trace = self._open(key, batch, arrival)
                unopened -= 1
            new_count = self._add(trace, batch.spans, size, arrival)
            if record is not None and self._source is not None:
                self._source.hold(record)
                if trace.records is None:
                    trace.records = [record]
                else:
                    trace.records.append(record)
            if new_count and self.streams:
                fresh.append(_newest(trace, batch, new_count))
        if reserved:
            leaving = sum(held_bytes(batch.spans) for batch in fresh)
            self._limiter.release(reserved - leaving)
        if unopened:  # a trace that was in the request twice was counted twice
            self._limiter.release(unopened * self._trace_bytes)
        return Admission(late, fresh, continued) if late or fresh or continued else _NOTHING_LEAVES

    def note_ready(self, resumed_unix_nano: int = 0) -> None:
        """Spans are taken from now on: a trace that began earlier is `interrupted`.

        Exempt is backfill, and what ended more than 15 minutes before it arrived whatever `max_lateness` is:
        such a trace is read from a store, which has it whole. Where everything that a process before had
        until `resumed_unix_nano` was restored, only what was sent between then and now can be missing:
        nothing, if that was no longer than senders try again.
        """
        if not resumed_unix_nano:
            self._ready_unix_nano = _whole_millisecond(self._clock.unix_nano())
            return
        for trace in self._traces.values():
            trace.read_shape()
            is_whole = trace.has_root and not (trace.is_missing_parents or trace.is_distributed)
            if is_whole or not trace.spans:
                trace.whole_unix_nano = min(trace.last_unix_nano, resumed_unix_nano)
        clock = self.finish_clock
        clock.stand_still()
        if clock.unix_nano - resumed_unix_nano > OUTAGE_SECONDS * 1e9:
            clock.outages.record(Outage(resumed_unix_nano, clock.unix_nano, clock.monotonic))

    def note_horizon(self, unix_nano: int) -> None:
        """What was sent before `unix_nano` may be missing: a trace that began earlier is `interrupted`."""
        self._horizon_unix_nano = max(self._horizon_unix_nano, unix_nano)

    def holds_any(self, batches: Sequence[SpanBatch]) -> bool:
        """Whether a trace of `batches` is held."""
        return any(_key(batch) in self._traces for batch in batches)

    def held(self, key: bytes) -> HeldTrace | None:
        """The trace with this key, if it is held."""
        return self._traces.get(key)

    def changed(self, since: float) -> Iterator[HeldTrace]:
        """The traces of which something arrived from `since` on, by the finish clock; the last one first."""
        for trace in reversed(self._traces.values()):
            if trace.last_arrival < since:
                break
            yield trace

    def goes_on(self, trace: HeldTrace, begun_unix_nano: int) -> bool:
        """Whether more is to come of a held trace: its root, or a parent, has not arrived.

        Not of one that began, or was opened, before `begun_unix_nano`, of backfill, and of what goes on after
        it was graded.
        """
        begun_unix_nano = _whole_millisecond(begun_unix_nano)
        if not trace.spans or trace.was_graded or self._held_since[trace.key] < begun_unix_nano:
            return False
        trace.read_shape(HEADS_AT_ONCE)
        if (trace.has_root or trace.has_remote_root) and not trace.is_missing_parents:
            return False
        is_live = trace.latest_end >= trace.last_unix_nano - self._max_lateness_nano
        return is_live and trace.earliest_start >= begun_unix_nano

    def forget(self) -> int:
        """Discard all that is held, which another reader has, and leave the group; how many spans."""
        spans_held = self.spans_held
        self._limiter.release(self.held_bytes)
        self.group.held_bytes -= self.held_bytes
        self.group.buffers.remove(self)
        self.held_bytes = self.spans_held = 0
        for held in (self._traces, self._held_since, self._deadlines, self._over_limit):
            held.clear()
        return spans_held

    def has_finished(self, batch: SpanBatch) -> bool:
        """Whether the trace of `batch` is finished and remembered, so that its spans are late."""
        return _key(batch) in self._finished

    def remember_finished(self, key: bytes, span_ids: Iterable[bytes], latest_end: int = 0) -> None:
        """Remember a trace that a process before finished, what went on in it, or late spans of one."""
        if latest_end or key not in self._finished:
            self._finished.add(key, span_ids, latest_end)
            return
        for span_id in span_ids:
            self._finished.add_late_span(key, span_id)

    def restore(self, batch: SpanBatch, arrived_unix_nano: int, stopped_unix_nano: int) -> None:
        """Hold spans that a process before, which stopped some time later, admitted at `arrived_unix_nano`.

        Quiet time between the two has passed; none has since. To be called in order of arrival.
        """
        size = held_bytes(batch.spans)
        self._limiter.take(size)
        quiet = max(0, stopped_unix_nano - arrived_unix_nano) / 1e9
        arrival = self.finish_clock.now() - quiet
        key = _key(batch)
        trace = self._traces.get(key)
        if trace is None:
            self._limiter.take(self._trace_bytes)
            trace = self._open(key, batch, arrival)
            self._opened_before(trace, arrived_unix_nano)
        self._add(trace, batch.spans, size, arrival)
        trace.times_judged = TIMES_JUDGED
        trace.last_unix_nano = arrived_unix_nano

    def restore_records(self, batch: SpanBatch, arrived_unix_nano: int, stopped_unix_nano: int) -> None:
        """Hold copies of log records, as `restore` does with spans."""
        quiet = max(0, stopped_unix_nano - arrived_unix_nano) / 1e9
        arrival = self.finish_clock.now() - quiet
        trace = self._traces.get(_key(batch)) or self._open_run(batch, arrival)
        if trace is None:
            self._await_trace(_key(batch), batch.spans, arrival)
            return
        self._add_records(trace, batch.spans, arrival)
        if batch.is_run:
            trace.last_unix_nano = arrived_unix_nano
            self._opened_before(trace, arrived_unix_nano)
        self._check_size(trace)

    def _opened_before(self, trace: HeldTrace, arrived_unix_nano: int) -> None:
        """The first of a restored trace arrived at that time, or earlier."""
        since = self._held_since[trace.key] = min(self._held_since[trace.key], arrived_unix_nano)
        trace.first_monotonic = self._monotonic_of(since)

    def _monotonic_of(self, unix_nano: int) -> float:
        """What the monotonic clock would have shown then."""
        clock = self.finish_clock
        return clock.monotonic - (clock.unix_nano - unix_nano) / 1e9

    def restore_outages(self, times: Iterable[tuple[int, int]]) -> None:
        """Take over what `outages` returned in the process before."""
        for start, end in times:
            self.finish_clock.outages.record(Outage(start, end, self._monotonic_of(end)))

    def outages(self) -> Sequence[tuple[int, int]]:
        """Start and end, in Unix nanoseconds, of the times of which spans may be missing."""
        known = [(each.start_unix_nano, each.end_unix_nano) for each in self.finish_clock.outages]
        return [*known, *self._refused.times]

    def note_rerouting(self, start_unix_nano: int, seconds: float) -> None:
        """From `start_unix_nano` to `seconds` from now, spans of one trace may go to different replicas.

        Every trace that may have been under way then is `interrupted`, also one that is opened later; but not
        one that had been quiet for its grace before.
        """
        clock = self._clock
        self._reroutings.record(
            Outage(start_unix_nano, clock.unix_nano() + int(seconds * 1e9), clock.monotonic() + seconds)
        )

    def note_refused(self, batches: Sequence[SpanBatch]) -> None:
        """Remember that these spans were refused and should come back.

        The finish clock stands still for 10 s from now. A trace that finishes while refused spans of it are
        missing is `interrupted`.
        """
        self.finish_clock.stand_still()
        self._remember_refused(batches)

    def poll(self, max_traces: int | None = None) -> list[FinishedTrace]:
        """The traces that are finished by now, at most `max_traces`; to be called ten times a second.

        While the buffer by itself fills more than its part of the memory limit, or leaves no room for a
        request that was refused, the traces that have been quiet longest finish as `pressure`. Bytes that
        wait in queues do not count there: finishing traces would not free them.
        """
        if self._source is not None and not self._source.has_room:
            return []
        most = len(self._traces) + len(self._over_limit) if max_traces is None else max_traces
        now = self.finish_clock.now()
        self._count_standstill()
        finished = self._finish_over_limit(most)
        deadlines = self._deadlines
        unread: list[HeldTrace] = []
        while deadlines and deadlines[0][0] <= now and len(finished) < most:
            checked_at, key = heappop(deadlines)
            trace = self._traces.get(key)
            if trace is None or trace.checked_at != checked_at:
                continue  # an entry left behind by a finished trace or by an earlier deadline
            due = self._earliest(trace)
            if due <= now:
                if not trace.read_shape(HEADS_AT_ONCE):
                    unread.append(trace)
                    continue
                trace.is_missing_refused_spans = trace.key in self._refused
                due, reason = self._policy.deadline(trace)
                scopes = None
                if due > now and (evidence_due := self._evidence_due(trace)) is not None:
                    if evidence_due > now:
                        due = min(due, evidence_due)
                    elif (scopes := self._judge(trace, now)) is not None:
                        due, reason = self._policy.deadline(trace)
                if due <= now:
                    finished.append(self._finish(trace, reason, scopes))
                    continue
            trace.checked_at = due
            heappush(deadlines, (due, key))
        for trace in unread:
            trace.checked_at = now
            heappush(deadlines, (now, trace.key))
        if self._waiting_records.count:
            self._discard_waiting(now)
        if self.group.excess_bytes > 0:
            enough = self.held_bytes - self.group.share_of_excess(self.held_bytes)
            while self.held_bytes > enough and self._traces and len(finished) < most:
                finished.append(self._finish(next(iter(self._traces.values())), FinishReason.PRESSURE))
        if self.group.excess_bytes <= 0:
            self.group.relax()
        return finished

    def finish_all(self, reason: FinishReason) -> list[FinishedTrace]:
        """Every trace still held, in order of first arrival, finished for `reason`."""
        return [*self._finish_over_limit(), *(self._finish(trace, reason) for trace in self._by_arrival())]

    def settle(self) -> list[FinishedTrace]:
        """Every trace still held, in order of first arrival, finished as unlimited quiet would."""
        finished = self._finish_over_limit()
        for trace in self._by_arrival():
            trace.read_shape()
            finished.append(self._finish(trace, self._policy.settled_reason(trace)))
        return finished

    def oldest_arrival_unix_nano(self) -> int | None:
        """When the oldest of the held spans arrived; None if none is held."""
        return next(iter(self._held_since.values()), None)

    def _acquire(self, needed: int, batches: Sequence[SpanBatch]) -> None:
        if self._limiter.try_acquire(needed):
            return
        limit = self._limiter.limit
        envelopes = {span[2] for batch in batches for span in batch.spans}
        alone = needed + sum(len(envelope.resource) + len(envelope.scope) for envelope in envelopes)
        if alone > limit:
            raise RequestTooLarge(
                f"The request takes {alone} bytes to hold, more than the limit of {limit} for all spans."
            )
        self.group.make_room(needed + self._limiter.shared_bytes())
        raise Overloaded("The memory limit for held spans is reached; send the request again.")

    def admit_records(
        self, records: Sequence[RawRecord], content: Sequence[SpanBatch] = (), origin: Origin | None = None
    ) -> RecordAdmission:
        """Take all log records of one request, or none, to leave at once.

        Copies of those in `content`, the content records of agents by trace, wait to be graded with their
        trace; where none of its spans came yet, for them. Those that make a run by themselves are held as a
        trace without spans, which is finished when it was idle. The record of `origin` is held for each trace
        that has a copy out of it, until that was delivered.

        Raises:
            Overloaded: there is no room now.
            RequestTooLarge: the request could not even be held alone.
        """
        held = held_bytes(records)
        sizes = [
            held_bytes(batch.spans) + (self._trace_bytes if batch.is_run else WAITING_TRACE_BYTES)
            for batch in content
        ]
        self._acquire(held + sum(sizes), (SpanBatch(b"", records),))
        self._metrics.log_records_received.add(len(records))
        if not content:
            return RecordAdmission(held)
        kept: list[SpanBatch] = []
        late: list[SpanBatch] = []
        arrival = self.finish_clock.now()
        for batch, size in zip(content, sizes, strict=True):
            self._limiter.release(size)  # what is kept of it is acquired again, without repeats
            trace = self._traces.get(_key(batch))
            if trace is None and _key(batch) in self._finished:
                self._note_late_records(batch)
                late.append(batch)
            elif (trace := trace or self._open_run(batch, arrival)) is not None:
                if origin is not None:
                    origin[0].hold(origin[1])
                    if trace.origins is None:
                        trace.origins = []
                    trace.origins.append(origin)
                self._add_records(trace, batch.spans, arrival)
                self._check_size(trace)
                kept.append(batch)
            elif size <= self._waiting_records.max_bytes:
                if origin is not None:
                    origin[0].hold(origin[1])
                self._await_trace(_key(batch), batch.spans, arrival, origin)
                kept.append(batch)
            else:
                self._metrics.log_records_unmatched.add(len(batch.spans), "no_room")
        for key in self._waiting_records.excess():
            self._give_up_waiting(key, "no_room")
            kept = [batch for batch in kept if _key(batch) != key]
        return RecordAdmission(held, kept, late)

    def _open(self, key: bytes, batch: SpanBatch, arrival: float) -> HeldTrace:
        trace = HeldTrace(key, batch.trace_id, batch.tenant, arrival, self.finish_clock.monotonic)
        if key in self._finished:
            trace.was_graded = partial(self._finished.had, key)
        self._traces[key] = trace
        self._held_since[key] = self.finish_clock.unix_nano
        self._count_held(self._trace_bytes)
        if self._waiting_records.count:
            held = self._waiting_records.held_bytes
            records, origins = self._waiting_records.take(key)
            self._give_back(held - self._waiting_records.held_bytes)
            self.log_records_held -= len(records)
            if records:
                trace.origins = list(origins) or None
                self._add_records(trace, records, arrival)
        return trace

    def _open_run(self, batch: SpanBatch, arrival: float) -> HeldTrace | None:
        """A trace without spans for log records that make a run; None for those that name a trace."""
        if not batch.is_run:
            return None
        self._limiter.take(self._trace_bytes)
        trace = self._open(_key(batch), batch, arrival)
        trace.last_unix_nano = self.finish_clock.unix_nano
        trace.checked_at = self._earliest(trace)
        self._push_deadline(trace.checked_at, trace.key)
        return trace

    def _await_trace(
        self, key: bytes, records: Sequence[RawRecord], arrival: float, origin: Origin | None = None
    ) -> None:
        """Let copies of records wait for a trace of which no span came."""
        waiting = self._waiting_records
        held, count = waiting.held_bytes, waiting.count
        waiting.add(key, records, arrival, origin)
        self._limiter.take(waiting.held_bytes - held)
        self._count_held(waiting.held_bytes - held)
        self.log_records_held += waiting.count - count

    def _discard_waiting(self, now: float) -> None:
        """Discard what waited too long, and, while too much is held, what waited longest."""
        for key in self._waiting_records.expired(now - self._config.max_trace_age):
            self._give_up_waiting(key, "max_age")
        while self.group.excess_bytes > 0 and (waiting := self._waiting_records.oldest()) is not None:
            self._give_up_waiting(waiting, "no_room")

    def _give_up_waiting(self, key: bytes, reason: str) -> None:
        """The trace of these records did not come: their copies are discarded; they left long ago."""
        held = self._waiting_records.held_bytes
        records, origins = self._waiting_records.take(key)
        self._give_back(held - self._waiting_records.held_bytes)
        self.log_records_held -= len(records)
        for receipt in receipts(origins):
            receipt.seal()
        self._metrics.log_records_unmatched.add(len(records), reason)
        self.on_unmatched(key)

    def _give_back(self, size: int) -> None:
        self._count_held(-size)
        self._limiter.release(size)

    def _add_records(self, trace: HeldTrace, records: Sequence[RawRecord], arrival: float) -> None:
        """Hold copies of log records with their trace, which has to be quiet for its grace after them."""
        if trace.log_records is None:
            trace.log_records = {}
        held = trace.log_records
        fresh = {record[1]: record for record in records if record[1] not in held}
        if not fresh:
            return
        held |= fresh
        size = held_bytes(list(fresh.values()))
        self._limiter.take(size)
        self._count_held(size)
        trace.held_bytes += size
        self.log_records_held += len(fresh)
        if trace.has_root:  # as far as it was looked at
            for record in fresh.values():
                self._expect_records_of(record)
        if arrival > trace.last_arrival:
            trace.last_arrival = arrival
            trace.is_judged = trace.is_settled = False
            self._traces.move_to_end(trace.key)
        if not trace.spans:
            trace.whole_unix_nano = None
            trace.last_unix_nano = self.finish_clock.unix_nano

    def _check_size(self, trace: HeldTrace) -> None:
        """Finish a trace of which too much is held."""
        if trace.held_bytes > self._max_bytes or len(trace.log_records or ()) > self._max_spans:
            self._take_out(trace, FinishReason.OVER_LIMIT)
            self._over_limit.append(trace)

    def _note_late_records(self, batch: SpanBatch) -> None:
        self._metrics.late_log_records.add(len(batch.spans))
        if self._gaps is not None:
            self._gaps.note_late(_key(batch), self.finish_clock.now())
        for record in () if batch.is_run else batch.spans:
            self._expect_records_of(record)

    def _expect_records_of(self, record: RawRecord) -> None:
        """Records of this service come after their spans: no trace of it is over when its spans are."""
        if len(self._with_late_records) < _MAX_SERVICES:
            self._with_late_records[record[2].service_name] = None

    def _add(self, trace: HeldTrace, arrived: Sequence[RawSpan], size: int, arrival: float) -> int:
        """Hold what arrived; how many spans arrived for the first time."""
        spans = trace.spans
        held_before = len(spans)
        has_conflict = False
        for span in arrived:
            span_id = span[0]
            if span_id in spans:
                dropped, reason = trace.settle_repeat(spans[span_id], span)
                size -= self._drop(dropped, reason)
                has_conflict = has_conflict or reason == "conflict"
            else:
                spans[span_id] = span
        if len(spans) == held_before and not has_conflict:
            return 0  # nothing new from a sender that repeats itself: the trace is as quiet as before
        trace.last_arrival = arrival
        trace.is_judged = trace.is_settled = False
        trace.last_unix_nano = self.finish_clock.unix_nano
        trace.held_bytes += size
        self._count_held(size)
        new_count = len(spans) - held_before
        if self._gaps is not None:
            if trace.arrivals is None:
                trace.arrivals = []
            trace.arrivals.append((len(spans), arrival))
        self.spans_held += new_count
        self._traces.move_to_end(trace.key)
        if len(spans) > self._max_spans or trace.held_bytes > self._max_bytes:
            self._take_out(trace, FinishReason.OVER_LIMIT)
            self._over_limit.append(trace)
            return new_count
        check = self._earliest(trace)
        if check < trace.checked_at:
            trace.checked_at = check
            self._push_deadline(check, trace.key)
        return new_count

    def _count_held(self, size: int) -> None:
        self.held_bytes += size
        self.group.held_bytes += size

    def _goes_on(self, key: bytes, span: RawSpan) -> bool:
        """Whether a span of a finished trace is to be held: it began after all that was graded."""
        return not self._finished.had(key, span[0]) and self._finished.goes_on(key, span)

    def _admit_late(self, key: bytes, arrived: Sequence[RawSpan]) -> list[RawSpan]:
        new_spans = []
        for span in arrived:
            if self._finished.add_late_span(key, span[0]):
                new_spans.append(span)
            else:
                self._drop(span, "duplicate")
        self._metrics.late_spans.add(len(new_spans))
        if self._gaps is not None and new_spans:
            self._gaps.note_late(key, self.finish_clock.now())
        return new_spans

    def _drop(self, span: RawSpan, reason: str) -> int:
        size = len(span[1]) + SPAN_OVERHEAD_BYTES
        self._limiter.release(size)
        self._metrics.spans_dropped.add(1, reason, "")
        return size

    def _push_deadline(self, deadline: float, key: bytes) -> None:
        deadlines = self._deadlines
        if len(deadlines) > 4 * len(self._traces) + 1024:
            deadlines[:] = [(trace.checked_at, trace.key) for trace in self._traces.values()]
            heapify(deadlines)
        else:
            heappush(deadlines, (deadline, key))

    def _earliest(self, trace: HeldTrace) -> float:
        """When `trace` could be finished at the earliest, whatever it shows."""
        return min(
            trace.last_arrival + self._policy.shortest_quiet, trace.first_arrival + self._policy.shortest_age
        )

    def _take_out(self, trace: HeldTrace, reason: FinishReason) -> None:
        del self._traces[trace.key]
        if trace.was_graded is not None:
            self._metrics.traces_continued.add(1)
        can_go_on = reason in _CAN_GO_ON and trace.spans and trace.read_shape()
        self._finished.add(trace.key, trace.spans, trace.latest_end if can_go_on else 0)

    def _evidence_due(self, trace: HeldTrace) -> float | None:
        """When to look whether the trace is settled; None where that was seen or does not decide."""
        if (
            self._settled_scopes is None
            or (self._with_late_records and not self._with_late_records.keys().isdisjoint(trace.services))
            or trace.is_judged
            or trace.times_judged >= TIMES_JUDGED
            or len(trace.spans) > JUDGED_SPANS
            or trace.held_bytes > JUDGED_BYTES
        ):
            return None
        return self._policy.evidence_due(trace)

    def _judge(self, trace: HeldTrace, now: float) -> Scopes | None:
        """Look whether the trace is settled, unless many were read within this second; its runs, if it is."""
        assert self._settled_scopes is not None
        trace.is_judged = True
        if now - self._judging_since >= 1.0:
            self._judging_since, self._judged = now, 0
        self._judged += 1
        if self._judged > JUDGED_A_SECOND:
            return None
        trace.times_judged += 1
        scopes = self._settled_scopes(list(trace.spans.values()))
        trace.is_settled = scopes is not None
        return scopes

    def _finish(self, trace: HeldTrace, reason: FinishReason, scopes: Scopes | None = None) -> FinishedTrace:
        self._take_out(trace, reason)
        return self._hand_over(trace, reason, scopes)

    def _finish_over_limit(self, most: int | None = None) -> list[FinishedTrace]:
        taken = self._over_limit[:most]
        del self._over_limit[:most]
        return [self._hand_over(trace, FinishReason.OVER_LIMIT) for trace in taken]

    def _hand_over(
        self, trace: HeldTrace, reason: FinishReason, scopes: Scopes | None = None
    ) -> FinishedTrace:
        trace.read_shape()
        self._held_since.pop(trace.key, None)
        self._count_held(-trace.held_bytes - self._trace_bytes)
        self.spans_held -= len(trace.spans)
        log_records = list(trace.log_records.values()) if trace.log_records else ()
        self.log_records_held -= len(log_records)
        self._limiter.release(self._trace_bytes)
        backfill = 0 < trace.latest_end < trace.last_unix_nano - self._max_lateness_nano
        interruption = self._interruption(trace)
        if interruption is not None:
            self._metrics.traces_interrupted.add(1, interruption)
            if interruption == "peers" and reason in _LACKS_SPANS:
                self._metrics.traces_orphaned.add(1)
        self._refused.forget(trace.key)
        if self._gaps is not None and reason is FinishReason.ROOT and interruption is None:
            self._watch_gap(trace, self._gaps)
        receipt = None if self._source is None else self._source.receipt(trace.records or ())
        if receipt is not None and trace.origins:
            receipt = JoinedReceipt(receipt, receipts(trace.origins))
        held_seconds = self.finish_clock.monotonic - trace.first_monotonic
        self._metrics.traces_finished.add(1, reason.value)
        self._metrics.hold_seconds.observe(held_seconds)
        return FinishedTrace(
            trace_id=trace.trace_id,
            spans=list(trace.spans.values()),
            reason=reason,
            interrupted=interruption is not None,
            split=interruption == "peers",
            was_quiet=reason is not FinishReason.OVER_LIMIT
            and self.finish_clock.now() - trace.last_arrival >= self._policy.grace(trace),
            backfill=backfill,
            continues=trace.was_graded is not None,
            held_seconds=held_seconds,
            latest_end=trace.latest_end if reason in _CAN_GO_ON and trace.spans else 0,
            tenant=trace.tenant,
            receipt=receipt,
            scopes=scopes,
            records=log_records,
        )

    def _watch_gap(self, trace: HeldTrace, gaps: GapWatch) -> None:
        """Let the wait be learned from a trace that it applies to."""
        root_arrival = None if trace.is_distributed else trace.root_arrival()
        if root_arrival is not None:
            service = next(iter(trace.services), "")
            gaps.finish(trace.key, service, root_arrival, trace.last_arrival, self.finish_clock.now())

    def _interruption(self, trace: HeldTrace) -> Interruption | None:
        """Why spans of the trace may have been lost, if they may."""
        if trace.key in self._refused:
            return "refused"
        if self._source is not None and trace.spans and not self._source.has_all(trace.trace_id):
            return "keys"
        if trace.earliest_start < self._horizon_unix_nano:
            return "start"
        if self.finish_clock.outages.touch(
            trace.first_monotonic, trace.earliest_start, trace.latest_end, self._whole_unix_nano(trace)
        ):
            return "outage"
        if trace.earliest_start < self._ready_unix_nano:
            stored_nano = min(self._max_lateness_nano, _STORED_NANO)
            if trace.latest_end >= trace.last_unix_nano - stored_nano:
                return "start"
        if not self._reroutings:
            return None
        grace = self._policy.grace(trace) - self._verdict_delay
        is_split = self._reroutings.touch(
            trace.first_monotonic,
            trace.earliest_start,
            trace.latest_end,
            whole_at=trace.last_unix_nano + int(grace * 1e9),
        )
        return "peers" if is_split else None

    def _whole_unix_nano(self, trace: HeldTrace) -> int | None:
        """Since when the trace is whole, if it was before the process was down."""
        if trace.whole_unix_nano is None or trace.spans:
            return trace.whole_unix_nano
        reports_end = self._reports_end([*(trace.log_records or {}).values()])
        return trace.whole_unix_nano if reports_end else None

    def _remember_refused(self, batches: Sequence[SpanBatch]) -> None:
        clock = self.finish_clock
        for batch in batches:
            key = _key(batch)
            if key in self._finished:
                continue  # its verdict is out
            trace = self._traces.get(key)
            held = trace.spans if trace is not None else ()
            missing = [span[0] for span in batch.spans if span[0] not in held]
            self._refused.add(key, missing, clock.unix_nano, clock.monotonic)

    def _by_arrival(self) -> list[HeldTrace]:
        return [self._traces[key] for key in self._held_since if key in self._traces]

    def _count_standstill(self) -> None:
        total = self.finish_clock.standstill_seconds
        self._metrics.finish_clock_standstill_seconds.add(total - self._counted_standstill)
        self._counted_standstill = total


class BufferGroup:
    """The buffers of a service, under one memory limit.

    Attributes:
        buffers: those that are in use.
        held_bytes: bytes acquired for what they hold together.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.buffers: list[TraceBuffer] = []
        self.held_bytes = 0
        self._limit = limit_bytes
        self._soft_limit = self._target = int(limit_bytes * SOFT_LIMIT)

    @property
    def spans_held(self) -> int:
        """Spans in all of them."""
        return sum(buffer.spans_held for buffer in self.buffers)

    @property
    def excess_bytes(self) -> int:
        """How much more is held than should be; negative while there is room."""
        return self.held_bytes - self._target

    def share_of_excess(self, held_bytes: int) -> int:
        """How much of the excess, which there is, a buffer is to release that holds `held_bytes` of all."""
        return -(-self.excess_bytes * held_bytes // self.held_bytes)

    def make_room(self, size: int) -> None:
        """A request was refused: `size` bytes are to be free in addition to what is held, if possible."""
        self._target = max(0, min(self._target, self._limit - size))

    def relax(self) -> None:
        """There is room: let the soft limit count again."""
        self._target = self._soft_limit

    def publish(self, metrics: Metrics, clock: Clock) -> None:
        """Let every scrape see what is held."""

        def oldest() -> float:
            arrivals = [buffer.oldest_arrival_unix_nano() for buffer in self.buffers]
            return min((arrival for arrival in arrivals if arrival), default=clock.unix_nano()) / 1e9

        metrics.spans_held.read_from(lambda: self.spans_held, "")
        metrics.log_records_awaiting_verdict.read_from(
            lambda: sum(buffer.log_records_held for buffer in self.buffers)
        )
        metrics.traces_held.read_from(lambda: sum(buffer.traces_held for buffer in self.buffers))
        metrics.oldest_held_span.read_from(oldest)


def settled_spans(batches: Iterable[SpanBatch]) -> list[RawSpan]:
    """The spans of one trace as a buffer holds them: of two with one id the one that is kept."""
    trace = HeldTrace(b"", b"")
    for batch in batches:
        for span in batch.spans:
            if span[0] in trace.spans:
                trace.settle_repeat(trace.spans[span[0]], span)
            else:
                trace.spans[span[0]] = span
    return list(trace.spans.values())


def _newest(trace: HeldTrace, batch: SpanBatch, count: int) -> SpanBatch:
    """The `count` spans of `batch` that `trace` did not hold before, in order; all others were repeats."""
    if count == len(batch.spans):
        return batch
    newest = list(islice(reversed(trace.spans.values()), count))
    return SpanBatch(batch.trace_id, newest[::-1], batch.tenant)


def _whole_millisecond(unix_nano: int) -> int:
    """The beginning of this millisecond: many SDKs record the times of spans no finer."""
    return unix_nano - unix_nano % 1_000_000


def _key(batch: SpanBatch) -> bytes:
    return batch.trace_id + batch.tenant.encode() if batch.tenant else batch.trace_id
