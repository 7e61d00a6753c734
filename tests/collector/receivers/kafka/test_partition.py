"""One partition in front of the real pipeline, on a clock that moves only when a test says so."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from confluent_kafka import Message, fnv1a
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.otlp import join_spans
from collector.receivers.kafka.keys import TrustedKeys
from collector.receivers.kafka.offsets import Commit, Progress, read_progress
from collector.receivers.kafka.partition import ReadPartition
from processors.spans import Envelope
from tests.support.held_spans import SECOND, START_UNIX_NANO, raw_span, trace_id
from tests.support.service_in_loop import ServiceInLoop

START_MILLI = START_UNIX_NANO // 1_000_000
FORWARDED = 'tracegrade_spans_forwarded_total{exporter="debug"}'
INTERRUPTED = 'tracegrade_traces_interrupted_total{reason="start"}'
REVOKED = "tracegrade_spans_revoked_total"
ACCOUNTING = 'tracegrade_accounting_error_spans{exporter="debug"}'

CONFIGURATION = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
processors:
  group_by_trace: {root_grace: 2s, multi_service_grace: 2s, incomplete_grace: 2s, idle_timeout: 60s}
exporters: {debug: {}}
service: {telemetry: {endpoint: "127.0.0.1:0", self_check: {enabled: false}}}
"""


def written(place: int, second: float, body: bytes, key: bytes | None = None) -> Message:
    """A record as the client gives it."""
    return Message(offset=place, key=key, value=body, timestamp=(1, int(START_MILLI + second * 1000)))


def record(place: int, second: float, trace: int, *spans: int, begins: float | None = None) -> Message:
    """A record with spans of one trace, of which 1 is the root, that began at `begins`."""
    start = START_UNIX_NANO + int((second if begins is None else begins) * SECOND)
    end = START_UNIX_NANO + int(second * SECOND)
    held = [raw_span(span, None if span == 1 else 1, trace=trace, start=start, end=end) for span in spans]
    return written(place, second, join_spans(held), trace_id(trace).hex().encode())


class Reading:
    """A partition that is read from a service in this loop."""

    def __init__(
        self,
        service: ServiceInLoop,
        progress: Progress,
        *,
        end: int = 0,
        on_announcement: Callable[[], None] = lambda: None,
        **settings: int,
    ) -> None:
        self.service = service
        clock = service.clock
        metrics = service.service.parts.metrics
        self.partition = ReadPartition(
            number=0,
            progress=progress,
            consumer=service.service.parts.intake,
            partition_count=1,
            keys=TrustedKeys(None, clock),
            max_record_bytes=settings.get("max_record_bytes", 1 << 20),
            metrics=metrics,
            clock=clock,
            end=end,
            on_announcement=on_announcement,
        )

    def read(self, *records: Message) -> None:
        for each in records:
            self.partition.take(each)

    async def quiet(self, seconds: float) -> None:
        """Nothing comes for so long."""
        self.partition.take(None)
        for _ in range(round(seconds * 5)):
            await self.service.pass_time(0.2)
            self.partition.caught_up()

    @property
    def committed(self) -> Commit:
        return self.partition.commit()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[ServiceInLoop]:
    async with ServiceInLoop(CONFIGURATION, START_UNIX_NANO) as running:
        running.clock.advance(3600)  # readiness is long ago: what is read is a backlog
        yield running


async def test_a_record_is_committed_when_its_trace_was_delivered_and_not_before(
    service: ServiceInLoop,
) -> None:
    reading = Reading(service, Progress(0))

    reading.read(record(0, 10, 1, 2), record(1, 10, 2, 1), record(3, 10.5, 1, 1))
    await service.pass_time(5)  # no time of the partition
    held = reading.committed
    reading.read(record(4, 12.6, 3, 1))
    await service.pass_time(0.5)
    some = reading.committed
    await reading.quiet(3)

    assert 0 == held.offset
    assert 4 == some.offset
    assert 5 == reading.committed.offset
    metrics = await service.metrics()
    assert (4, 0, 0) == (metrics[FORWARDED], metrics[INTERRUPTED], metrics[ACCOUNTING])


async def test_records_done_beyond_the_offset_are_told_and_not_delivered_again(
    service: ServiceInLoop,
) -> None:
    first = Reading(service, Progress(0))
    first.read(record(0, 10, 1, 2), record(1, 10, 2, 1), record(2, 13, 3, 2))
    await service.pass_time(0.5)
    commit = first.committed
    first.partition.close()
    first.partition.forget()

    second = Reading(service, read_progress(commit.offset, commit.metadata))
    second.read(
        record(0, 10, 1, 2),
        record(1, 10, 2, 1),
        record(2, 13, 3, 2),
        record(3, 13, 1, 1),
        record(4, 13, 3, 1),
    )
    await second.quiet(3)

    assert (0, True) == (commit.offset, read_progress(0, commit.metadata).is_done(1))
    assert 5 == second.committed.offset
    metrics = await service.metrics()
    assert (5, 2, 0) == (metrics[FORWARDED], metrics[REVOKED], metrics[ACCOUNTING])
    assert 1 == metrics['tracegrade_kafka_records_total{outcome="delivered_before"}']
    assert 3 == metrics['tracegrade_traces_finished_total{reason="root"}']


async def test_a_late_root_after_a_hand_over_is_known_as_late(service: ServiceInLoop) -> None:
    reading = Reading(service, Progress(1, unix_milli=START_MILLI + 20_000))

    reading.read(record(0, 10, 1, 2), record(1, 20, 1, 1, begins=5), record(2, 20, 2, 1))
    await reading.quiet(3)

    metrics = await service.metrics()
    assert (2, 1) == (metrics[FORWARDED], metrics["tracegrade_late_spans_total"])
    assert 1 == metrics['tracegrade_traces_finished_total{reason="root"}']
    assert 3 == reading.committed.offset


async def test_what_goes_on_in_a_graded_trace_is_committed_when_that_was_delivered(
    service: ServiceInLoop,
) -> None:
    reading = Reading(service, Progress(0))
    reading.read(record(0, 10, 1, 2, 1))
    await reading.quiet(3)

    reading.read(record(1, 20, 1, 3), record(2, 20.5, 2, 1))
    reading.read(record(3, 20.5, 1, 4, begins=9))  # late: it began before the first part ended
    held = reading.committed
    await reading.quiet(3)

    assert 1 == held.offset
    assert 4 == reading.committed.offset
    metrics = await service.metrics()
    assert (1, 1) == (metrics["tracegrade_traces_continued_total"], metrics["tracegrade_late_spans_total"])
    assert (5, 0) == (metrics[FORWARDED], metrics[ACCOUNTING])


async def test_a_trace_that_began_before_the_first_record_is_interrupted(service: ServiceInLoop) -> None:
    reading = Reading(service, Progress(7))

    reading.read(record(7, 20, 1, 2), record(8, 21, 2, 1, begins=19.9), record(9, 21, 3, 1, begins=20.1))
    await reading.quiet(3)

    assert 1 == (await service.metrics())[INTERRUPTED]


async def test_after_a_gap_what_began_before_it_is_interrupted(service: ServiceInLoop) -> None:
    reading = Reading(service, Progress(0))

    reading.read(record(0, 20, 1, 2))
    reading.partition.needs_horizon = True
    reading.read(record(90, 21, 1, 1, begins=19), record(91, 22, 2, 1, begins=21.5))
    await reading.quiet(3)

    assert 1 == (await service.metrics())[INTERRUPTED]
    assert 92 == reading.committed.offset


async def test_a_repeat_that_was_done_joins_the_trace_that_is_held(service: ServiceInLoop) -> None:
    """Two traces in one record: one was delivered, the other was not, so the record is read again."""
    mixed = written(0, 10, (record(0, 10, 1, 2).value() or b"") + (record(0, 10, 2, 2).value() or b""))
    progress = Progress(0, START_MILLI, ((1, 2),))
    reading = Reading(service, progress)

    reading.read(mixed, record(1, 10, 1, 1), record(2, 10, 2, 1))
    await reading.quiet(3)

    metrics = await service.metrics()
    assert (4, 0) == (metrics[FORWARDED], metrics["tracegrade_late_spans_total"])
    assert 2 == metrics['tracegrade_traces_interrupted_total{reason="keys"}']


async def test_what_has_no_room_waits_in_order_and_is_taken_when_there_is_some(
    service: ServiceInLoop,
) -> None:
    reading = Reading(service, Progress(0))
    limiter = service.service.parts.finisher.delivery.limiter
    taken = limiter.limit - limiter.used
    limiter.take(taken)

    reading.read(record(0, 10, 1, 1), record(1, 11, 2, 1))
    waiting, before = len(reading.partition.waiting), reading.committed.offset
    limiter.release(taken)
    reading.partition.retry()
    await reading.quiet(3)

    assert (2, 0) == (waiting, before)
    assert ([], 2) == (list(reading.partition.waiting), reading.committed.offset)
    assert 2 == (await service.metrics())[FORWARDED]


async def test_what_cannot_be_taken_is_left_out_and_done(service: ServiceInLoop) -> None:
    reading = Reading(service, Progress(0), max_record_bytes=1000)

    reading.read(written(0, 10, b"no request"), written(1, 10, bytes(1001)), written(2, 10, b""))

    assert 3 == reading.committed.offset
    metrics = await service.metrics()
    assert [1, 1, 1] == [
        metrics[f'tracegrade_kafka_records_total{{outcome="{outcome}"}}']
        for outcome in ("malformed", "oversized", "admitted")
    ]


async def test_deliveries_that_arrive_after_the_partition_was_lost_count_no_more(
    service: ServiceInLoop,
) -> None:
    reading = Reading(service, Progress(0))
    reading.read(record(0, 10, 1, 1))
    receipt = reading.partition.receipt([0])
    assert receipt.expects("slow")
    receipt.seal()

    in_flight = reading.partition.in_flight
    reading.partition.forget()
    receipt.delivered("slow")

    assert (1, 0) == (in_flight, reading.partition.in_flight)
    assert 0 == reading.committed.offset
    metrics = await service.metrics()
    assert (1, 0) == (metrics[REVOKED], metrics[ACCOUNTING])


async def test_after_a_crash_a_trace_is_graded_when_that_is_known_and_not_a_third_time(
    service: ServiceInLoop,
) -> None:
    before = Reading(service, Progress(0))
    before.read(record(0, 10, 1, 1))
    crashed = before.committed
    before.partition.close()
    before.partition.forget()

    told = asyncio.Event()
    again = Reading(service, read_progress(0, crashed.metadata), end=2, on_announcement=told.set)
    again.read(record(0, 10, 1, 1), record(1, 10, 2, 1))
    await again.quiet(3)
    assert told.is_set()
    announced = again.committed
    waiting = await service.metrics()
    again.partition.note_committed(crashed.metadata)
    await service.pass_time(0.2)
    still_waiting = await service.metrics()
    again.partition.close()  # as in a crash, but that what was waiting goes on
    again.partition.forget()
    await service.pass_time(0.2)

    third = Reading(service, read_progress(0, announced.metadata), end=2)
    third.read(record(0, 10, 1, 1), record(1, 10, 2, 1))
    await third.quiet(3)
    second_announced = third.committed
    third.partition.note_committed(second_announced.metadata)
    await third.quiet(1)

    assert (True, frozenset()) == (read_progress(0, crashed.metadata).is_open, in_work_of(crashed))
    assert frozenset({trace_id(1)}) == in_work_of(announced)
    assert frozenset({trace_id(1), trace_id(2)}) == in_work_of(second_announced)
    assert waiting[FORWARDED] == still_waiting[FORWARDED] == 0
    metrics = await service.metrics()
    assert 1 == metrics["tracegrade_traces_quarantined_total"]
    assert 0 == metrics[ACCOUNTING]
    assert 2 == third.committed.offset
    assert not third.partition.is_doubtful
    assert frozenset() == in_work_of(third.committed)
    third.partition.close()
    assert not read_progress(2, third.committed.metadata).is_open


def in_work_of(commit: Commit) -> frozenset[bytes]:
    return read_progress(commit.offset, commit.metadata).in_work


def test_the_collectors_partitioner_is_the_one_of_the_client() -> None:
    """Sarama: FNV-1a of the key as a signed number, without its sign, by the number of partitions."""

    def of_sarama(key: bytes, count: int) -> int:
        sum32 = 0x811C9DC5
        for byte in key:
            sum32 = (sum32 ^ byte) * 0x01000193 & 0xFFFFFFFF
        signed = sum32 - (1 << 32) if sum32 >= 1 << 31 else sum32
        return abs(signed) % count

    keys = [number.to_bytes(16).hex().encode() for number in range(300)]
    assert [of_sarama(key, 12) for key in keys] == [fnv1a(key, 12) for key in keys]


def log_record(place: int, second: float, trace: int, *, key: bytes | None = b"key") -> Message:
    """A record with an agent's log record of one trace."""
    message = LogRecord(
        trace_id=trace_id(trace),
        time_unix_nano=START_UNIX_NANO + int(second * SECOND),
        event_name="gen_ai.user.message",
        body=AnyValue(string_value="{}"),
    )
    return written(place, second, join_spans([(b"", message.SerializeToString(), Envelope(b"", b""))]), key)


class ReadingBoth(Reading):
    """As `Reading`, with the partition of the log records of the same traces."""

    def __init__(self, service: ServiceInLoop) -> None:
        super().__init__(service, Progress(0))
        self.logs = ReadPartition(
            number=0,
            progress=Progress(0),
            consumer=service.service.parts.intake,
            partition_count=1,
            keys=TrustedKeys(None, service.clock),
            max_record_bytes=1 << 20,
            metrics=service.service.parts.metrics,
            clock=service.clock,
            signal="logs",
            joined=self.partition,
        )

    def retry(self) -> None:
        """As the receiver does ten times a second; twice, since each may wait for the other."""
        for partition in (self.logs, self.partition) * 2:
            partition.retry()


async def test_a_trace_waits_until_the_log_records_of_its_time_are_read(service: ServiceInLoop) -> None:
    reading = ReadingBoth(service)

    reading.logs.take(log_record(0, 10, 9))
    reading.read(record(0, 10, 1, 1), record(1, 20, 2, 1))
    reading.retry()
    await service.pass_time(5)
    behind = await service.metrics()
    reading.logs.take(log_record(1, 10.5, 1))
    reading.logs.take(log_record(2, 20, 2))
    await service.pass_time(1)
    metrics = await service.metrics()
    await service.pass_time(1)

    assert 0 == behind[FORWARDED]
    assert 1 == metrics[FORWARDED]
    assert 0 == metrics["tracegrade_late_log_records_total"]
    assert 0 == reading.logs.commit().offset  # the first waits for a trace that may still come
    assert (0, ((1, 2),)) == (
        (progress := read_progress(0, reading.logs.commit().metadata)).offset,
        progress.done,
    )
    assert 1 == reading.committed.offset


async def test_neither_signal_is_read_far_ahead_of_the_other(service: ServiceInLoop) -> None:
    reading = ReadingBoth(service)

    reading.read(record(0, 10, 1, 1))  # waits: nothing is known of log records yet
    reading.logs.take(log_record(0, 10, 1))
    reading.retry()
    for place, second in enumerate((39, 41, 42), 1):
        reading.logs.take(log_record(place, second, place))
    ahead = reading.logs.is_ahead, len(reading.logs.waiting)
    reading.read(record(1, 41, 7, 2))
    reading.retry()

    assert (True, 2) == ahead
    assert (False, 0) == (reading.logs.is_ahead, len(reading.logs.waiting))
    reading.logs.take(None)  # at the end there is nothing to wait for
    reading.read(record(2, 500, 8, 1))
    assert not reading.partition.waiting


async def test_both_signals_far_behind_each_other_do_not_wait_for_ever(service: ServiceInLoop) -> None:
    reading = ReadingBoth(service)
    reading.logs.take(log_record(0, 10, 1))
    reading.read(record(0, 10, 1, 1))

    reading.logs.take(log_record(1, 1000, 2))
    reading.read(record(1, 1000, 2, 1))
    reading.retry()

    assert not reading.logs.waiting
    assert not reading.partition.waiting


async def test_log_records_that_never_find_their_trace_are_committed_when_given_up(
    service: ServiceInLoop,
) -> None:
    reading = ReadingBoth(service)
    reading.logs.take(log_record(0, 10, 1))
    reading.logs.take(None)
    await reading.quiet(3)
    reading.retry()
    waiting = reading.logs.commit().offset
    service.clock.advance(100)
    reading.read(record(0, 3590, 5, 1), record(1, 3620, 6, 1))
    await service.pass_time(1)

    assert 0 == waiting
    assert 1 == reading.logs.commit().offset
    assert 1 == (await service.metrics())['tracegrade_log_records_unmatched_total{reason="max_age"}']


async def test_a_partition_that_is_given_away_leaves_nothing_held_of_either_signal(
    service: ServiceInLoop,
) -> None:
    reading = ReadingBoth(service)
    reading.logs.take(log_record(0, 10, 1))
    reading.read(record(0, 10, 1, 2))
    for partition in (reading.partition, reading.logs):
        partition.close()
        partition.forget()

    metrics = await service.metrics()
    assert 0 == metrics["tracegrade_held_bytes"] == metrics["tracegrade_log_records_awaiting_verdict"]
    assert 0 == metrics['tracegrade_accounting_error_log_records{exporter="debug"}']
    assert 0 == metrics[ACCOUNTING]
    assert (0, 0) == (reading.committed.offset, reading.logs.commit().offset)
