"""One partition that this process reads: each record in, and held until its spans were delivered."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from collector.clock import Clock
from collector.errors import Overloaded, Refusal, RequestTooLarge
from collector.receivers.consumer import PartitionIntake, RecordConsumer
from collector.receivers.kafka.keys import TrustedKeys
from collector.receivers.kafka.offsets import Commit, OffsetTracker, Progress
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import CountingReceipt, Receipt

_logger = logging.getLogger(__name__)


class Record(Protocol):
    """A message as the client gives it."""

    def offset(self) -> int | None:
        """Its place in the partition."""
        ...

    def timestamp(self) -> tuple[int, int]:
        """Which time it has, 0 for none, and the time in Unix milliseconds."""
        ...

    def key(self) -> bytes | None:
        """What its partition was found by."""
        ...

    def value(self) -> bytes | None:
        """What is in it."""
        ...


class ReadPartition:
    """Reads the records of a partition in order; is the `RecordSource` of what comes out of them.

    Args:
        number: Of the partition.
        progress: How far a member before had come; its offset is where delivering goes on.
        consumer: Where records go.
        partition_count: How many partitions the topic has.
        keys: Which traces lie in one partition.
        max_record_bytes: Larger records are left out.
        metrics: Counts the records.
        clock: What the log's limit is measured on.
    """

    def __init__(
        self,
        number: int,
        progress: Progress,
        *,
        consumer: RecordConsumer,
        partition_count: int,
        keys: TrustedKeys,
        max_record_bytes: int,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self.number = number
        self.in_flight = 0
        """Finished traces and late spans that exporters have not let go of."""
        self.settled = asyncio.Event()
        """Set when something in flight has arrived."""
        self.waiting: deque[Record | None] = deque()
        """What was read and found no room, in order; None is the end of the partition."""
        self.committed: Commit | None = None
        self._tracker = OffsetTracker(progress.offset)
        self._progress = progress
        self._keys = keys
        self._max_record_bytes = max_record_bytes
        self._metrics = metrics
        self._clock = clock
        self._log = RateLimitedLogger(_logger, clock)
        self._needs_horizon = True
        self._entered: int | None = None  # the number of the first record that waits
        self._is_over = False
        self._intake: PartitionIntake = consumer.open_partition(self, partition_count)

    # What the pipeline asks of it.

    def hold(self, record: int) -> None:
        """See `collector.trace.RecordSource`."""
        if not self._is_over:
            self._tracker.hold(record)

    def receipt(self, records: Sequence[int]) -> Receipt:
        """See `collector.trace.RecordSource`."""
        self.in_flight += 1
        return CountingReceipt(lambda: self._settle(records))

    def has_all(self, trace_id: bytes) -> bool:
        """See `collector.trace.RecordSource`."""
        return self._keys.trusts(trace_id, self.number)

    # What the reader tells it.

    def take(self, record: Record | None) -> None:
        """The next record was read, or the end of the partition (None)."""
        if self.waiting or not self._admitted(record):
            self.waiting.append(record)

    def retry(self) -> None:
        """Take what waits, as far as there is room."""
        while self.waiting and self._admitted(self.waiting[0]):
            self.waiting.popleft()

    def hear(self) -> None:
        """Records were asked for, and all that came was handed in."""
        if not self.waiting:
            self._intake.hear()

    def pause(self) -> None:
        """Records are not read for now."""
        self._intake.leave_end()

    def stand_still(self) -> None:
        """Nothing is heard of the broker."""
        self._intake.stand_still()

    def note_gap(self) -> None:
        """Records before the next one are gone."""
        self._needs_horizon = True

    @property
    def position(self) -> int:
        """The offset behind the last record that was read."""
        return self._tracker.position

    def uncommitted(self) -> int:
        """Records from the first that is not done to the last that was read."""
        return self._tracker.open_records

    def commit(self) -> Commit | None:
        """What to commit; None while no record was read, since whoever committed before knew more."""
        return self._tracker.commit() if self._tracker.has_read else None

    def close(self) -> None:
        """Admit nothing more and finish no trace; what is in flight goes on."""
        self.waiting.clear()
        self._intake.close()

    def forget(self) -> None:
        """Let go of what is held; deliveries that arrive from now on do not count."""
        self._is_over = True
        self._intake.forget()

    def _admitted(self, record: Record | None) -> bool:
        """Whether there was room for the record, or it was left out for good."""
        if record is None:
            self._intake.reach_end()
            return True
        offset = record.offset() or 0
        if self._progress.offset <= offset < self._tracker.position and self._entered is None:
            return True  # read already
        kind, unix_milli = record.timestamp()
        if not kind:
            unix_milli = self._clock.unix_nano() // 1_000_000
        unix_nano = unix_milli * 1_000_000
        if self._needs_horizon:
            self._needs_horizon = False
            if offset:
                self._intake.note_horizon(unix_nano)
        self._intake.read(unix_nano)
        number = self._entered
        if number is None and offset >= self._progress.offset:
            number = self._tracker.add(offset, unix_milli)
        try:
            outcome = self._outcome(record, offset, number)
        except Overloaded:
            self._entered = number
            return False
        self._entered = None
        self._metrics.kafka_records.add(1, outcome)
        if number is not None:
            self._tracker.let_go(number)
        return True

    def _outcome(self, record: Record, offset: int, number: int | None) -> str:
        """Admit the record; raises `Overloaded`."""
        body = record.value() or b""
        if number is None or self._progress.is_done(offset):
            self._intake.admit_again(body, number)
            return "delivered_before"
        if len(body) > self._max_record_bytes:
            self._tell_left_out("oversized", offset, f"it has {len(body)} bytes")
            return "oversized"
        try:
            trace_ids = self._intake.admit(body, number)
        except Overloaded:
            raise
        except Refusal as refusal:
            outcome = "oversized" if isinstance(refusal, RequestTooLarge) else "malformed"
            self._tell_left_out(outcome, offset, str(refusal))
            return outcome
        wrong = self._keys.check(record.key(), trace_ids)
        if wrong is not None and trace_ids:
            self._metrics.kafka_untrusted_keys.add(1, wrong)
        return "admitted"

    def _tell_left_out(self, outcome: str, offset: int, why: str) -> None:
        self._log.error(
            outcome,
            "A record cannot be taken and is left out.",
            partition=self.number,
            offset=offset,
            error=why,
        )

    def _settle(self, records: Sequence[int]) -> None:
        self.in_flight -= 1
        self.settled.set()
        if not self._is_over:
            for record in records:
                self._tracker.let_go(record)
