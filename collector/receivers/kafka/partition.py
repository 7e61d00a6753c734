"""One partition that this process reads: each record in, and held until what it has was delivered."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from collector.clock import Clock
from collector.errors import Overloaded, Refusal, RequestTooLarge
from collector.receivers.consumer import PartitionIntake, RecordConsumer
from collector.receivers.kafka.keys import TrustedKeys
from collector.receivers.kafka.offsets import MAX_METADATA_BYTES, Commit, OffsetTracker, Progress
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import CountedReceipt, RecordReceipt, Signal

if TYPE_CHECKING:
    from confluent_kafka import Message

_logger = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class ReadPartition:
    """Reads the records of a partition in order; the `RecordSource` of their spans."""

    number: int
    progress: Progress
    """How far the member before had come; delivery continues at its offset."""
    consumer: RecordConsumer
    partition_count: int
    keys: TrustedKeys
    """Which traces lie in one partition."""
    max_record_bytes: int
    """Larger records are left out."""
    metrics: Metrics
    clock: Clock
    end: int = 0
    """The offset behind the last record that was there when the partition was taken over."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one trace that is in work, of all partitions that a dead member had."""
    on_announcement: Callable[[], None] = lambda: None
    """Called when `commit` has to be sent at once."""
    signal: Signal = "traces"
    """What is in the records."""
    joined: "ReadPartition | None" = None
    """For log records: the partition that has the spans of the same traces."""

    in_flight: int = field(default=0, init=False)
    """Finished traces and late spans that exporters are not done with."""

    def __post_init__(self) -> None:
        consumer, joined, are_spans = self.consumer, self.joined, self.signal == "traces"
        self.settled = asyncio.Event()
        """Set when something in flight has arrived."""
        self.waiting: deque[Message | None] = deque()
        """What was read and found no room, in order; None is the end of the partition."""
        self.committed: Commit | None = None
        self._tracker = OffsetTracker(self.progress)
        self._log = RateLimitedLogger(_logger, self.clock)
        self._doubtful_until = self.end if self.progress.is_open else 0
        self._awaiting_turn = 0
        self._in_work: bytes | None = None
        self._announced: asyncio.Future[None] | None = None
        self.needs_horizon = are_spans or self.progress.unix_milli is None
        """Whether records before the next one were not read, or are not there any more. Of log records all
        were read that a trace needs which is not delivered: they are held until it is."""
        self._entered: int | None = None  # the number of the first record that waits
        self._is_closed = False
        self._is_over = False
        self._is_joined = joined is not None  # to the partition of the other signal
        if joined is not None:
            joined._is_joined = True
        self.intake: PartitionIntake = (
            consumer.open_partition(self, self.partition_count)
            if are_spans
            else consumer.open_records_partition(self, None if joined is None else joined.intake)
        )

    # For the pipeline.

    def hold(self, record: int) -> None:
        """See `collector.trace.RecordSource`."""
        if not self._is_over:
            self._tracker.hold(record)

    @property
    def has_room(self) -> bool:
        """See `collector.trace.RecordSource`."""
        return not self._awaiting_turn

    def receipt(self, records: Sequence[int]) -> RecordReceipt:
        """See `collector.trace.RecordSource`."""
        self.in_flight += 1
        return _RecordReceipt(self, records)

    def permission(self, trace_id: bytes) -> Awaitable[bool] | None:
        """See `collector.trace.RecordReceipt`."""
        if not self.is_doubtful:
            return None
        self._awaiting_turn += 1
        return self._permission(trace_id)

    @property
    def is_doubtful(self) -> bool:
        """Whether records are held that the member before may have crashed on."""
        return self._tracker.offset < self._doubtful_until

    def has_all(self, trace_id: bytes) -> bool:
        """See `collector.trace.RecordSource`."""
        return self.keys.trusts(trace_id, self.number)

    # For the receiver.

    def take(self, record: "Message | None") -> None:
        """The next record was read, or the end of the partition (None)."""
        if self.waiting or not self._admitted(record):
            self.waiting.append(record)

    def retry(self) -> None:
        """Take what waits, as far as there is room."""
        while self.waiting and self._admitted(self.waiting[0]):
            self.waiting.popleft()

    @property
    def is_ahead(self) -> bool:
        """Whether what waits does so for the partition that this one is joined to, not for room."""
        return bool(self.waiting) and self._entered is None and self.intake.is_ahead

    def caught_up(self) -> None:
        """Records were requested, and all that arrived were handed in."""
        if not self.waiting:
            self.intake.caught_up()

    @property
    def position(self) -> int:
        """The offset behind the last record that was read."""
        return self._tracker.position

    def uncommitted(self) -> int:
        """Records from the first that is not done to the last that was read."""
        return self._tracker.open_records

    def commit(self, max_bytes: int = MAX_METADATA_BYTES) -> Commit:
        """What to commit, with metadata of at most `max_bytes`; until a record is read, as before."""
        is_open = not self._is_closed or self.is_doubtful
        in_work = self.progress.in_work if self.is_doubtful else frozenset()
        if self._in_work is not None:
            in_work |= {self._in_work}
        return self._tracker.commit(max_bytes, is_open=is_open, in_work=in_work)

    def note_committed(self, metadata: str | None) -> None:
        """Brokers have a commit with this metadata."""
        if self._in_work is not None and self._in_work.hex() in (metadata or ""):
            self._go_on()

    def close(self) -> None:
        """Admit nothing more and finish no trace; what is in flight goes on."""
        self._is_closed = True
        self._go_on()
        self.waiting.clear()
        self.intake.close()

    def forget(self) -> None:
        """Release what is held; deliveries that arrive from now on do not count."""
        self._is_over = True
        self.intake.forget()

    def _admitted(self, record: "Message | None") -> bool:
        """Whether there was room for the record, or it was left out for good."""
        if record is None:
            self.intake.reach_end()
            self._doubtful_until = min(self._doubtful_until, self.position)  # what follows holds no records
            return True
        offset = record.offset() or 0
        if self.progress.offset <= offset < self._tracker.position and self._entered is None:
            return True  # read already
        kind, unix_milli = record.timestamp()
        if not kind:
            unix_milli = self.clock.unix_nano() // 1_000_000
        unix_nano = unix_milli * 1_000_000
        if self.needs_horizon:
            self.needs_horizon = False
            if offset:
                self.intake.note_horizon(unix_nano)
        self.intake.read(unix_nano)
        if self._is_joined and self._entered is None and self.intake.is_ahead:
            return False
        number = self._entered
        if number is None and offset >= self.progress.offset:
            number = self._tracker.add(offset, unix_milli)
        try:
            outcome = self._outcome(record, offset, number)
        except Overloaded:
            self._entered = number
            return False
        self._entered = None
        self.metrics.kafka_records.add(1, outcome)
        if number is not None:
            self._tracker.release(number)
        return True

    def _outcome(self, record: "Message", offset: int, number: int | None) -> str:
        """Admit the record; raises `Overloaded`."""
        body = record.value() or b""
        if number is None or self.progress.is_done(offset):
            self.intake.admit_again(body, number)
            return "delivered_before"
        if len(body) > self.max_record_bytes:
            return self._left_out("oversized", offset, f"it has {len(body)} bytes")
        try:
            trace_ids = self.intake.admit(body, number, record.key())
        except Overloaded:
            raise
        except Refusal as refusal:
            outcome = "oversized" if isinstance(refusal, RequestTooLarge) else "malformed"
            return self._left_out(outcome, offset, str(refusal))
        wrong = self.keys.check(record.key(), trace_ids)
        if wrong is not None and trace_ids:
            self.metrics.kafka_untrusted_keys.add(1, wrong)
        return "admitted"

    def _left_out(self, outcome: str, offset: int, why: str) -> str:
        message = "A record cannot be accepted and is left out."
        self._log.error(outcome, message, partition=self.number, offset=offset, error=why)
        return outcome

    async def _permission(self, trace_id: bytes) -> bool:
        """Wait until brokers know that the trace is in work, and no other one is."""
        await self.turn.acquire()
        if trace_id in self.progress.in_work:
            return False
        if not self._is_closed:
            self._in_work = trace_id
            self._announced = asyncio.get_running_loop().create_future()
            self.on_announcement()
            await self._announced
        return True

    def _go_on(self) -> None:
        if self._announced is not None and not self._announced.done():
            self._announced.set_result(None)

    def end_work(self) -> None:
        """The trace whose turn it was is graded, or will not be."""
        self._in_work = None
        self._awaiting_turn -= 1
        self.turn.release()

    def settle(self, records: Sequence[int]) -> None:
        """All deliveries of something in these records are done."""
        self.in_flight -= 1
        self.settled.set()
        if not self._is_over:
            for record in records:
                self._tracker.release(record)


class _RecordReceipt(CountedReceipt):
    """Waits until all deliveries are done; see `collector.trace.RecordReceipt`."""

    __slots__ = ("_has_turn", "_partition")

    def __init__(self, partition: ReadPartition, records: Sequence[int]) -> None:
        super().__init__(partial(partition.settle, records))
        self._partition = partition
        self._has_turn = False

    def permission(self, trace_id: bytes) -> Awaitable[bool] | None:
        """See `RecordReceipt`."""
        permission = self._partition.permission(trace_id)
        self._has_turn = permission is not None
        return permission

    def seal(self) -> None:
        """See `Receipt`."""
        if self._has_turn:
            self._partition.end_work()
        super().seal()
