"""A member of a Kafka consumer group: a thread that polls the client, and the loop that admits the records.

The client is touched by the thread alone, everything else by the loop alone. While the loop is behind, the
thread reads no further, but remains a member of the group.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from collector.client_thread import ClientThread
from collector.clock import Clock, ends_within
from collector.kafka_connection import startup_errors
from collector.receivers.consumer import RecordConsumer
from collector.receivers.kafka.config import KafkaReceiverConfig
from collector.receivers.kafka.keys import TrustedKeys
from collector.receivers.kafka.offsets import (
    MAX_METADATA_BYTES,
    MIN_METADATA_BYTES,
    Commit,
    Progress,
    read_progress,
)
from collector.receivers.kafka.partition import ReadPartition, Record
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import Signal

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

REVOKE_SECONDS = 5.0
"""How long deliveries in flight are waited for before a partition is given away."""

_BATCH_RECORDS = 500
_BATCHES_AHEAD = 2
_POLL_SECONDS = 0.1
_SHORT_POLL_SECONDS = 0.002
"""While each trace is announced before it is graded."""
_TICK_SECONDS = 0.1
_COMMIT_SECONDS = 1.0
"""Between two commits of the offsets of what was delivered."""
_TURN_SECONDS = 0.01
"""How long records are taken in before requests and finished traces get their turn."""
_PAUSE_SECONDS = 1.0
"""How long reading stops at least."""
_BROKER_SECONDS = 10.0
"""How long a broker may take to answer."""
_RESTART_SECONDS = 5.0
_SILENT_MICROSECONDS = 2_000_000
"""A broker answers every half second, even when it has nothing."""
_PREFETCH_KIB = 32 * 1024

_logger = logging.getLogger(__name__)


class _Assignment(NamedTuple):
    """A partition that is to be read from `start` on; what precedes `progress` was delivered."""

    number: int
    start: int
    progress: Progress
    end: int
    is_out_of_range: bool = False


@dataclass(eq=False)
class KafkaReceiver:
    """Reads the partitions that the group assigns to this process, and commits what was delivered."""

    config: KafkaReceiverConfig
    consumer: RecordConsumer
    """Where the records go."""
    metrics: Metrics
    clock: Clock
    signal: Signal = "traces"
    """What is in the records."""

    def __post_init__(self) -> None:
        self._of_topic = () if self.signal == "traces" else (self.config.topic,)
        self._log = RateLimitedLogger(_logger, self.clock)
        self._keys = TrustedKeys(None, self.clock)
        self._partitions: dict[int, ReadPartition] = {}
        self._inbox: deque[Sequence[Message]] = deque()
        self._arrived = asyncio.Event()
        self._is_paused = False
        self._pause_ends = 0.0
        self._next_commit = 0.0
        self._max_metadata_bytes = MAX_METADATA_BYTES
        self._deadline: float | None = None
        self._poll_seconds = _POLL_SECONDS
        self._turn = asyncio.Lock()
        self._thread: ClientThread
        self._client: Consumer | None = None
        self._offset_client: Consumer | None = None
        self._owned: set[int] = set()  # what the thread has assigned
        self._room = threading.Semaphore(_BATCHES_AHEAD)
        self._commands: SimpleQueue[Callable[[Consumer], None]] = SimpleQueue()
        for counter, values in (
            (self.metrics.kafka_records, ("admitted", "delivered_before", "malformed", "oversized")),
            (self.metrics.kafka_untrusted_keys, ("missing", "foreign")),
            (self.metrics.kafka_rebalances, ("assigned", "revoked", "lost")),
            (self.metrics.kafka_commits, ("success", "failure")),
        ):
            for value in values:
                counter.add(0, value)
        partitions = self.metrics.kafka_partitions
        partitions.read_from(lambda: len(self._partitions), "assigned", *self._of_topic)
        partitions.read_from(
            lambda: len(self._partitions) if self._is_paused else 0, "paused", *self._of_topic
        )

    @property
    def endpoint(self) -> str:
        """The brokers, as configured."""
        return ",".join(self.config.brokers)

    async def start(self, tasks: TaskOwner) -> None:
        """Create the client, whether or not any broker answers; raises `StartupError` if that fails."""
        self._thread = ClientThread("read from kafka", self._run)
        with startup_errors("receivers.kafka"):
            self._keys = TrustedKeys(_partition_of(self.config.partitioner), self.clock)
            self._client = self._new_client()
        tasks.create_task(self._take_in(), name="take in records")
        tasks.create_task(self._tick(), name="commit offsets")

    async def set_serving(self, is_serving: bool) -> None:
        """Join the group; leaving it is what `shutdown` does."""
        if is_serving:
            self._thread.start()

    async def shutdown(self, deadline: float) -> None:
        """Leave the group: what is held is read again by another member. Safe before `start` and twice."""
        self._deadline = deadline = min(deadline, self.clock.monotonic() + 2 * REVOKE_SECONDS)
        client, self._client = self._client, None
        if client is None:
            return
        self._thread.stop()
        if not self._thread.is_started:
            client.close()
        elif not await self._thread.join(deadline, self.clock):
            _logger.error("The Kafka group could not be left in time.")

    # On the loop.

    async def _take_in(self) -> None:
        """Take in what the thread has read, in short turns."""
        while True:
            self._arrived.clear()
            if not self._inbox:
                await self._arrived.wait()
            turn_ends = self.clock.monotonic() + _TURN_SECONDS
            messages = self._inbox.popleft()
            for message in messages:
                self._take(message)
                if self.clock.monotonic() >= turn_ends:
                    await self.clock.sleep(0)
                    turn_ends = self.clock.monotonic() + _TURN_SECONDS
            if len(messages) < _BATCH_RECORDS:  # else more wait
                for partition in self._partitions.values():
                    partition.caught_up()
            self._room.release()

    def _take(self, message: "Message") -> None:
        number = message.partition()
        partition = self._partitions.get(-1 if number is None else number)
        if partition is None:
            return  # it was revoked meanwhile
        error = message.error()
        if error is None:
            record: Record = message
            partition.take(record)
        elif error.code() == error._PARTITION_EOF:
            partition.take(None)

    def _arrive(self, messages: "Sequence[Message]") -> None:
        self._inbox.append(messages)
        self._arrived.set()

    async def _tick(self) -> None:
        """Between records: retry what found no room, pause and resume reading, commit offsets."""
        while True:
            await self.clock.sleep(_TICK_SECONDS)
            for partition in self._partitions.values():
                partition.retry()
            self._pause_or_resume()
            is_doubtful = any(partition.is_doubtful for partition in self._partitions.values())
            self._poll_seconds = _SHORT_POLL_SECONDS if is_doubtful else _POLL_SECONDS
            now = self.clock.monotonic()
            if now >= self._next_commit:
                self._next_commit = now + _COMMIT_SECONDS
                self._commit()

    def _pause_or_resume(self) -> None:
        must_pause = not self.consumer.has_room or any(each.waiting for each in self._partitions.values())
        now = self.clock.monotonic()
        if must_pause:
            self._pause_ends = now + _PAUSE_SECONDS
        if must_pause == self._is_paused or (not must_pause and now < self._pause_ends):
            return
        self._is_paused = must_pause
        if must_pause:
            for partition in self._partitions.values():
                partition.intake.leave_end()
            self._log.warning("paused", "Exporters do not keep up: reading from Kafka is paused.")
        self._commands.put(_pausing(must_pause))

    def _commit(self) -> None:
        """Let the thread commit what has changed."""
        due: list[tuple[int, Commit]] = []
        for number, partition in self._partitions.items():
            commit = partition.commit(self._max_metadata_bytes)
            if commit != partition.committed:
                partition.committed = commit
                due.append((number, commit))
        if due:
            self._commands.put(lambda client: self._send_commits(client, due))

    async def _open(self, assigned: Iterable[_Assignment], partition_count: int) -> None:
        """These partitions are read from now on."""
        self._note_partition_count(partition_count)
        for each in assigned:
            if each.is_out_of_range:
                self._note_out_of_range(each.number)
            partition = ReadPartition(
                number=each.number,
                progress=each.progress,
                consumer=self.consumer,
                partition_count=partition_count,
                keys=self._keys,
                max_record_bytes=self.config.max_record_bytes,
                metrics=self.metrics,
                clock=self.clock,
                end=each.end,
                turn=self._turn,
                on_announcement=self._commit,
                signal=self.signal,
            )
            self._partitions[each.number] = partition
            self.metrics.kafka_rebalances.add(1, "assigned")
            labels = self._labels(each.number)
            self.metrics.kafka_lag.set(0, *labels)
            self.metrics.kafka_uncommitted.read_from(partition.uncommitted, *labels)
        if self._is_paused:
            self._commands.put(_pausing(True))
        self._next_commit = 0.0  # so that others soon know who has them
        _logger.info("Partitions were assigned.", extra={"partitions": [each.number for each in assigned]})

    async def _close(self, numbers: Sequence[int], kind: str) -> list[tuple[int, Commit]]:
        """These partitions are read by others from now on; what to commit for them, unless they are `lost`.

        Deliveries in flight are waited for, for 5 s at most. No trace is ended.
        """
        closing = [self._partitions.pop(number) for number in numbers if number in self._partitions]
        for partition in closing:
            partition.close()
        if kind != "lost":
            await self._settle(closing)
        commits = [(each.number, each.commit(self._max_metadata_bytes)) for each in closing]
        for partition in closing:
            partition.forget()
            self.metrics.kafka_rebalances.add(1, kind)
            self.metrics.kafka_lag.remove(*self._labels(partition.number))
            self.metrics.kafka_uncommitted.remove(*self._labels(partition.number))
        if closing:
            _logger.info("Partitions were %s.", kind, extra={"partitions": [each.number for each in closing]})
        return [] if kind == "lost" else commits

    async def _settle(self, partitions: Sequence[ReadPartition]) -> None:
        """Wait until nothing of these is in flight."""
        deadline = self.clock.monotonic() + REVOKE_SECONDS
        if self._deadline is not None:
            deadline = min(deadline, self._deadline)
        for partition in partitions:
            while partition.in_flight and (left := deadline - self.clock.monotonic()) > 0:
                partition.settled.clear()
                await ends_within(left, partition.settled.wait(), self.clock)

    def _note_partition_count(self, count: int) -> None:
        if self._keys.partition_count not in (0, count):
            _logger.warning(
                "The number of partitions has changed: traces that may lie in two of them are interrupted.",
                extra={"topic": self.config.topic, "partitions": count},
            )
        self._keys.note_partition_count(count)

    def _note_statistics(self, partitions: Mapping[int, tuple[int, bool]]) -> None:
        """Of each partition of the topic: the offset behind its last record, and if its broker answers."""
        if partitions:
            self._note_partition_count(len(partitions))
        for number, partition in self._partitions.items():
            end, is_alive = partitions.get(number, (-1, False))
            if not is_alive:
                partition.intake.stand_still()
            if end >= 0:
                self.metrics.kafka_lag.set(max(end - partition.position, 0), *self._labels(number))

    def _labels(self, partition: int) -> tuple[str, ...]:
        """The labels of what is measured of a partition: those of log records name their topic."""
        return str(partition), *self._of_topic

    def _note_out_of_range(self, number: int) -> None:
        self.metrics.kafka_offsets_out_of_range.add(1)
        _logger.error(
            "Records were deleted from Kafka before they were read: what was in them is lost.",
            extra={"topic": self.config.topic, "partition": number},
        )
        if number in self._partitions:
            self._partitions[number].needs_horizon = True

    def _note_error(self, error: "KafkaError") -> None:
        self.metrics.kafka_errors.add(1, error.name())
        self._log.warning("kafka", "The Kafka client reports an error.", error=error.str())

    def _note_commit(self, error: "KafkaError | None", committed: Mapping[int, str | None]) -> None:
        """The broker has answered a commit with this metadata of partitions."""
        self.metrics.kafka_commits.add(1, "success" if error is None else "failure")
        if error is not None:
            self._note_error(error)
            if error.code() == error.OFFSET_METADATA_TOO_LARGE:  # this broker's offset.metadata.max.bytes
                self._max_metadata_bytes = max(self._max_metadata_bytes // 2, MIN_METADATA_BYTES)
        for number, metadata in committed.items():
            if (partition := self._partitions.get(number)) is None:
                continue
            if error is None:
                partition.note_committed(metadata)
            else:
                partition.committed = None  # so that it is committed again

    def _note_failure(self, failure: Exception) -> None:
        self.metrics.kafka_errors.add(1, type(failure).__name__)
        self._log.error("failed", "Reading from Kafka failed; it starts again.", error=str(failure))

    # On the thread.

    def _new_client(self) -> "Consumer":
        from confluent_kafka import Consumer

        config = self.config
        settings: dict[str, Any] = {
            **config.client_settings(),
            "group.id": config.group_id,
            "group.protocol": "classic",  # of KIP-848 a member that was killed keeps its name for 45 s
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(config.session_timeout * 1000),
            "heartbeat.interval.ms": int(min(config.session_timeout / 4, 3) * 1000),
            "max.poll.interval.ms": int(max(config.session_timeout, 300) * 1000),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            "topic.metadata.refresh.interval.ms": 1000,  # so soon is a new partition known
            "statistics.interval.ms": 1000,
            "queued.max.messages.kbytes": _PREFETCH_KIB,
            "receive.message.max.bytes": max(100_000_000, 2 * config.max_record_bytes),
            "stats_cb": self._on_statistics,
            "error_cb": lambda error: self._thread.call_soon(self._note_error, error),
            "on_commit": self._on_commit,
        }
        if config.group_instance_id is not None:
            settings["group.instance.id"] = config.group_instance_id
        return Consumer(settings)

    def _run(self) -> None:
        """Be a member of the group until the service stops; after any failure, start again."""
        client = self._client
        while not self._thread.is_stopping:
            try:
                client = client or self._new_client()
                self._read(client)
            except Exception as failure:
                self._thread.call_soon(self._note_failure, failure)
            finally:
                if client is not None:
                    self._leave(client)
                    client = None
            self._thread.pause(_RESTART_SECONDS)

    def _read(self, client: "Consumer") -> None:
        from confluent_kafka import KafkaException

        client.subscribe(
            [self.config.topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        while not self._thread.is_stopping:
            self._run_commands(client)
            if not self._room.acquire(timeout=self._poll_seconds):
                continue
            messages = client.consume(_BATCH_RECORDS, self._poll_seconds)
            for message in messages:
                error = message.error()
                if error is None or error.code() == error._PARTITION_EOF:
                    continue
                if error.fatal():
                    self._room.release()
                    raise KafkaException(error)
                if error.code() == error._AUTO_OFFSET_RESET:
                    self._restart_partition(client, message.partition() or 0)
                else:
                    self._thread.call_soon(self._note_error, error)
            self._thread.call_soon(self._arrive, messages)

    def _leave(self, client: "Consumer") -> None:
        """Leave the group, which revokes what is still assigned."""
        offset_client, self._offset_client = self._offset_client, None
        for leaving in (client, offset_client):
            try:
                if leaving is not None:
                    leaving.close()
            except Exception as failure:
                self._thread.call_soon(self._note_failure, failure)
        self._owned.clear()
        self._thread.call_and_wait(self._close(list(self._partitions), "lost"))

    def _run_commands(self, client: "Consumer") -> None:
        """Do what the loop has requested."""
        while not self._commands.empty():  # this thread alone takes any out
            self._commands.get()(client)

    def _on_assign(self, client: "Consumer", partitions: "list[TopicPartition]") -> None:
        """Determine where each partition is to be read from, and read it.

        In a callback no call of the client itself may wait: the next callback of the same poll would end the
        process. Offsets come from another client, which is no member.
        """
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        topic = self.config.topic
        if self._offset_client is None:
            settings = {"group.id": self.config.group_id, "enable.auto.commit": False}
            self._offset_client = Consumer({**self.config.client_settings(), **settings})
        offsets = self._offset_client
        count = len(offsets.list_topics(topic, _BROKER_SECONDS).topics[topic].partitions)
        assigned: list[_Assignment] = []
        for known in offsets.committed(partitions, _BROKER_SECONDS) if partitions else ():
            if known.error is not None:
                raise KafkaException(known.error)
            low, high = offsets.get_watermark_offsets(known, _BROKER_SECONDS)
            number, start = known.partition, known.offset
            if start < 0:
                start = low if self.config.initial_offset == "earliest" else high
                assigned.append(_Assignment(number, start, Progress(start), high))
                continue
            if not low <= start <= high:
                assigned.append(_Assignment(number, low, Progress(low), high, is_out_of_range=True))
                continue
            progress = read_progress(start, known.metadata)
            if progress.unix_milli is not None and self.config.lookback:
                since = progress.unix_milli - int(self.config.lookback * 1000)
                at = offsets.offsets_for_times(
                    [TopicPartition(topic, number, max(since, 0))], _BROKER_SECONDS
                )
                if at[0].error is None and at[0].offset >= 0:
                    start = max(low, min(start, at[0].offset))
            assigned.append(_Assignment(number, start, progress, high))
        self._thread.call_and_wait(self._open(assigned, count))
        self._owned.update(each.number for each in assigned)
        client.incremental_assign([TopicPartition(topic, each.number, each.start) for each in assigned])

    def _on_revoke(
        self, client: "Consumer", partitions: "list[TopicPartition]", kind: str = "revoked"
    ) -> None:
        """Give partitions away: not before what is in flight has arrived, and is committed."""
        numbers = [each.partition for each in partitions]
        commits = self._thread.call_and_wait(self._close(numbers, kind))
        self._send_commits(client, commits)  # the client gives nothing away before it is answered
        self._owned.difference_update(numbers)
        client.incremental_unassign(partitions)

    def _on_lost(self, client: "Consumer", partitions: "list[TopicPartition]") -> None:
        """Another member reads these partitions already."""
        self._on_revoke(client, partitions, "lost")

    def _restart_partition(self, client: "Consumer", number: int) -> None:
        """Continue with the first record that is there."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self.config.topic, number)
        low, _ = client.get_watermark_offsets(place, _BROKER_SECONDS)
        self._thread.call_soon(self._note_out_of_range, number)
        client.seek(TopicPartition(self.config.topic, number, low))

    def _send_commits(self, client: "Consumer", commits: Sequence[tuple[int, Commit]]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [
            TopicPartition(self.config.topic, number, commit.offset, commit.metadata)
            for number, commit in commits
            if number in self._owned
        ]
        if not offsets:
            return
        try:
            client.commit(offsets=offsets, asynchronous=True)
        except KafkaException as failure:
            self._on_commit(failure.args[0], offsets)

    def _on_commit(self, error: "KafkaError | None", offsets: "Sequence[TopicPartition]") -> None:
        committed = {each.partition: each.metadata for each in offsets}
        self._thread.call_soon(self._note_commit, error, committed)

    def _on_statistics(self, statistics: str) -> None:
        """Called every second."""
        known = orjson.loads(statistics)
        alive = {
            broker["nodeid"]
            for broker in known["brokers"].values()
            if broker["state"] == "UP" and 0 <= broker["rxidle"] < _SILENT_MICROSECONDS
        }
        partitions = known["topics"].get(self.config.topic, {}).get("partitions", {})
        stats = {
            int(number): (partition["hi_offset"], partition["leader"] in alive)
            for number, partition in partitions.items()
            if number != "-1"
        }
        self._thread.call_soon(self._note_statistics, stats)


def _partition_of(partitioner: str) -> Callable[[bytes, int], int] | None:
    import confluent_kafka

    return {
        "fnv1a": confluent_kafka.fnv1a,
        "murmur2": confluent_kafka.murmur2,
        "crc32": confluent_kafka.consistent,
    }.get(partitioner)


def _pausing(is_paused: bool) -> "Callable[[Consumer], None]":
    return lambda client: (client.pause if is_paused else client.resume)(client.assignment())
