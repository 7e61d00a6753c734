"""A member of a Kafka consumer group: the loop has a thread read some records, and admits them.

The client is called in the thread alone, one call after the other, and its callbacks run there; everything
else is done by the loop.

The group shares out the partitions of the topic with spans. Whoever has one reads the same partition of the
topic with log records, so that both signals of a trace are in one process; its offsets are committed by the
same member, so that no other one can have it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import orjson

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
from collector.receivers.kafka.partition import ReadPartition
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.work_thread import WorkThread

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

REVOKE_SECONDS = 5.0
"""How long deliveries in flight are waited for before a partition is given away."""

_BATCH_RECORDS = 500
_POLL_SECONDS = 0.1
_SHORT_POLL_SECONDS = 0.002
"""While each trace is announced before it is graded."""
_COMMIT_SECONDS = 1.0
"""Between two commits of the offsets of what was delivered."""
_TURN_SECONDS = 0.01
"""How long records are taken in before requests and finished traces get their turn."""
_PAUSE_SECONDS = 1.0
"""How long reading stops at least."""
_RECOMMIT_SECONDS = 3600.0
_LOOK_SECONDS = 10.0
"""How often it is looked which partitions the topic with log records has."""
_BROKER_SECONDS = 10.0
"""How long a broker may take to answer."""
_RESTART_SECONDS = 5.0
_SILENT_MICROSECONDS = 2_000_000
"""A broker answers every half second, even when it has nothing."""
_PREFETCH_KIB = 32 * 1024

_logger = logging.getLogger(__name__)

T = TypeVar("T")

Place: TypeAlias = tuple[str, int]
"""Of a partition: its topic and number."""


class _Assignment(NamedTuple):
    """A partition that is to be read from `start` on; what precedes `progress` was delivered."""

    place: Place
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

    def __post_init__(self) -> None:
        self._log = RateLimitedLogger(_logger, self.clock)
        self._keys = TrustedKeys(None, self.clock)
        self._partitions: dict[Place, ReadPartition] = {}
        self._paused: set[Place] = set()
        self._is_paused = False
        self._pause_ends = 0.0
        self._next_commit = 0.0
        self._next_recommit = 0.0
        self._max_metadata_bytes = MAX_METADATA_BYTES
        self._deadline: float | None = None
        self._turn = asyncio.Lock()
        self._serving, self._stopping = asyncio.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._thread = WorkThread("read from kafka")
        self._membership: asyncio.Task[None] | None = None
        self._client: Consumer | None = None
        self._offset_client: Consumer | None = None
        self._span_partitions = 0  # as the thread knows it
        self._next_look = 0.0
        self.metrics.kafka_records.start("admitted", "delivered_before", "malformed", "oversized")
        self.metrics.kafka_untrusted_keys.start("missing", "foreign")
        self.metrics.kafka_rebalances.start("assigned", "revoked", "lost")
        self.metrics.kafka_commits.start("success", "failure")
        for topic in self.config.topics.values():
            labels = self._labels_of(topic)
            partitions = partial(self._partitions_of, topic)
            self.metrics.kafka_partitions.read_from(partitions, "assigned", *labels)
            paused = partial(self._paused_partitions_of, topic)
            self.metrics.kafka_partitions.read_from(paused, "paused", *labels)

    @property
    def endpoint(self) -> str:
        """The brokers, as configured."""
        return ",".join(self.config.brokers)

    async def start(self, tasks: TaskOwner) -> None:
        """Create the client, whether or not any broker answers; raises `StartupError` if that fails."""
        self._loop = asyncio.get_running_loop()
        with startup_errors("receivers.kafka"):
            self._keys = TrustedKeys(_partition_of(self.config.partitioner), self.clock)
            self._client = self._new_client()
        self._thread.start()
        self._membership = tasks.create_task(self._take_part(), name="read from kafka")

    async def set_serving(self, is_serving: bool) -> None:
        """Join the group; leaving it is what `shutdown` does."""
        if is_serving:
            self._serving.set()

    async def shutdown(self, deadline: float) -> None:
        """Leave the group: what is held is read again by another member. Safe before `start` and twice."""
        self._deadline = deadline = min(deadline, self.clock.monotonic() + 2 * REVOKE_SECONDS)
        self._stopping.set()
        self._serving.set()
        membership, self._membership = self._membership, None
        if membership is not None:
            seconds = max(deadline - self.clock.monotonic(), 1.0)
            if not await ends_within(seconds, membership, self.clock):
                _logger.error("The Kafka group could not be left in time.")

    # On the loop.

    async def _take_part(self) -> None:
        """Be a member of the group until the service stops; after any failure of the client, join again."""
        from confluent_kafka import KafkaException

        await self._serving.wait()
        while not self._stopping.is_set():
            try:
                self._client = self._client or self._new_client()
                await self._read(self._client)
            except KafkaException as failure:
                self._note_failure(failure)
            await self._leave()
            await ends_within(_RESTART_SECONDS, self._stopping.wait(), self.clock)
        await self._leave()
        await self._thread.close()

    async def _leave(self) -> None:
        """Leave the group, which revokes what is still assigned."""
        for client in (self._client, self._offset_client):
            try:
                if client is not None:
                    await self._thread.run(client.close)
            except Exception as failure:
                self._note_failure(failure)
        self._client = self._offset_client = None
        await self._close(list(self._partitions), "lost")

    async def _read(self, client: "Consumer") -> None:
        run = self._thread.run
        await run(
            client.subscribe,
            [self.config.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=partial(self._on_revoke, kind="lost"),  # others read them already
        )
        while not self._stopping.is_set():
            for partition in self._partitions.values():
                partition.retry()
            await self._pause_or_resume(client)
            if commits := self._due_commits():
                await run(self._send_commits, client, commits)
            if self._is_look_due():
                await run(self._follow_log_records, client)
            is_doubtful = any(partition.is_doubtful for partition in self._partitions.values())
            seconds = _SHORT_POLL_SECONDS if is_doubtful else _POLL_SECONDS
            await self._take_in(client, await run(client.consume, _BATCH_RECORDS, seconds))

    async def _take_in(self, client: "Consumer", messages: "Sequence[Message]") -> None:
        """Take in what the thread has read, in short turns; raises KafkaException for a fatal error."""
        from confluent_kafka import KafkaException

        turn_ends = self.clock.monotonic() + _TURN_SECONDS
        for message in messages:
            error, place = message.error(), (message.topic() or "", message.partition() or 0)
            if error is None or error.code() == error._PARTITION_EOF:
                if place in self._partitions:  # else it was revoked meanwhile
                    self._partitions[place].take(message if error is None else None)
            elif error.fatal():
                raise KafkaException(error)
            elif error.code() == error._AUTO_OFFSET_RESET:
                await self._thread.run(self._restart_partition, client, place)
            else:
                self._note_error(error)
            if self.clock.monotonic() >= turn_ends:
                await self.clock.sleep(0)
                turn_ends = self.clock.monotonic() + _TURN_SECONDS
        if len(messages) < _BATCH_RECORDS:  # else more wait
            for partition in self._partitions.values():
                partition.caught_up()

    async def _pause_or_resume(self, client: "Consumer") -> None:
        """Read no further where log records are ahead of spans, or these of them; nowhere without room."""
        from confluent_kafka import TopicPartition

        now = self.clock.monotonic()
        if not self.consumer.has_room or any(
            each.waiting and not each.is_ahead for each in self._partitions.values()
        ):
            self._pause_ends = now + _PAUSE_SECONDS
            if not self._is_paused:
                for partition in self._partitions.values():
                    partition.intake.leave_end()
                self._log.warning("paused", "Exporters do not keep up: reading from Kafka is paused.")
        self._is_paused = now < self._pause_ends
        due = {place for place, each in self._partitions.items() if self._is_paused or each.is_ahead}
        for change, places in ((client.pause, due - self._paused), (client.resume, self._paused - due)):
            if places:
                await self._thread.run(change, [TopicPartition(*place) for place in places])
        self._paused = due

    def _commit_soon(self) -> None:
        self._next_commit = 0.0

    def _due_commits(self) -> list[tuple[Place, Commit]]:
        """What has changed and is to be committed now; of log records everything now and then.

        Brokers forget the offsets of a topic that the group has not subscribed to, a week after their commit.
        """
        now = self.clock.monotonic()
        if now < self._next_commit:
            return []
        self._next_commit = now + _COMMIT_SECONDS
        if now >= self._next_recommit:
            self._next_recommit = now + _RECOMMIT_SECONDS
            for (topic, _), partition in self._partitions.items():
                if topic == self.config.logs_topic:
                    partition.committed = None
        due: list[tuple[Place, Commit]] = []
        for place, partition in self._partitions.items():
            commit = partition.commit(self._max_metadata_bytes)
            if commit != partition.committed:
                partition.committed = commit
                due.append((place, commit))
        return due

    async def _open(self, assigned: Sequence[_Assignment], counts: Mapping[str, int]) -> None:
        """These partitions are read from now on, those with spans first; topics have so many in all."""
        spans_topic, logs_topic = self.config.topic, self.config.logs_topic
        self._note_partition_count(counts[spans_topic])
        if logs_topic is not None and counts[logs_topic] != counts[spans_topic]:
            self._log.error(
                "partitions",
                "Spans and log records are in different numbers of partitions: log records are forwarded and "
                "not graded with their traces.",
                spans=counts[spans_topic],
                log_records=counts[logs_topic],
            )
        for each in sorted(assigned, key=lambda each: each.place[0] == logs_topic):
            topic, number = each.place
            are_logs = topic == logs_topic
            is_joined = are_logs and counts[topic] == counts[spans_topic]
            partition = ReadPartition(
                number=number,
                progress=each.progress,
                consumer=self.consumer,
                partition_count=counts[topic],
                keys=self._keys,
                max_record_bytes=self.config.max_record_bytes,
                metrics=self.metrics,
                clock=self.clock,
                end=each.end,
                turn=self._turn,
                on_announcement=self._commit_soon,
                signal="logs" if are_logs else "traces",
                joined=self._partitions.get((spans_topic, number)) if is_joined else None,
            )
            self._partitions[each.place] = partition
            if each.is_out_of_range:
                self._note_out_of_range(each.place)
            self.metrics.kafka_rebalances.add(1, "assigned")
            labels = self._labels(each.place)
            self.metrics.kafka_lag.set(0, *labels)
            self.metrics.kafka_uncommitted.read_from(partition.uncommitted, *labels)
        self._commit_soon()  # so that others know who has them
        _logger.info("Partitions were assigned.", extra=_listed(each.place for each in assigned))

    async def _close(self, places: Sequence[Place], kind: str) -> list[tuple[Place, Commit]]:
        """These partitions are read by others from now on; what to commit for them, unless they are `lost`.

        Deliveries in flight are waited for, for 5 s at most. No trace is ended.
        """
        closing = {place: self._partitions.pop(place) for place in places if place in self._partitions}
        self._paused.difference_update(places)
        for partition in closing.values():
            partition.close()
        if kind != "lost":
            await self._settle(closing.values())
        commits = [(place, each.commit(self._max_metadata_bytes)) for place, each in closing.items()]
        for place, partition in closing.items():
            partition.forget()
            self.metrics.kafka_rebalances.add(1, kind)
            self.metrics.kafka_lag.remove(*self._labels(place))
            self.metrics.kafka_uncommitted.remove(*self._labels(place))
        if closing:
            _logger.info("Partitions were %s.", kind, extra=_listed(closing))
        return [] if kind == "lost" else commits

    async def _settle(self, partitions: Iterable[ReadPartition]) -> None:
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

    def _note_statistics(self, partitions: Mapping[Place, tuple[int, bool]]) -> None:
        """Of each partition: the offset behind its last record, and if its broker answers."""
        # While partitions are assigned, the client's statistics may lack some that it already has. A topic
        # never gets fewer; one that was made anew has its number from `_open`.
        count = max((number + 1 for topic, number in partitions if topic == self.config.topic), default=0)
        if count > self._keys.partition_count:
            self._note_partition_count(count)
        for place, partition in self._partitions.items():
            end, is_alive = partitions.get(place, (-1, False))
            if not is_alive:
                partition.intake.stand_still()
            if end >= 0:
                self.metrics.kafka_lag.set(max(end - partition.position, 0), *self._labels(place))

    def _labels(self, place: Place) -> tuple[str, ...]:
        """The labels of what is measured of a partition."""
        return str(place[1]), *self._labels_of(place[0])

    def _labels_of(self, topic: str) -> tuple[str, ...]:
        """Those of log records name their topic."""
        return () if topic == self.config.topic else (topic,)

    def _partitions_of(self, topic: str) -> int:
        return sum(place[0] == topic for place in self._partitions)

    def _paused_partitions_of(self, topic: str) -> int:
        return self._partitions_of(topic) if self._is_paused else 0

    def _note_out_of_range(self, place: Place) -> None:
        self.metrics.kafka_offsets_out_of_range.add(1)
        _logger.error(
            "Records were deleted from Kafka before they were read: what was in them is lost.",
            extra={"topic": place[0], "partition": place[1]},
        )
        if place in self._partitions:
            self._partitions[place].needs_horizon = True

    def _note_error(self, error: "KafkaError") -> None:
        self.metrics.kafka_errors.add(1, error.name())
        self._log.warning("kafka", "The Kafka client reports an error.", error=error.str())

    def _note_commit(self, error: "KafkaError | None", committed: "Sequence[TopicPartition]") -> None:
        """The broker has answered a commit."""
        self.metrics.kafka_commits.add(1, "success" if error is None else "failure")
        if error is not None:
            self._note_error(error)
            if error.code() == error.OFFSET_METADATA_TOO_LARGE:  # this broker's offset.metadata.max.bytes
                self._max_metadata_bytes = max(self._max_metadata_bytes // 2, MIN_METADATA_BYTES)
        for each in committed:
            if (partition := self._partitions.get((each.topic, each.partition))) is None:
                continue
            if error is None:
                partition.note_committed(each.metadata)
            else:
                partition.committed = None  # so that it is committed again

    def _note_failure(self, failure: Exception) -> None:
        self.metrics.kafka_errors.add(1, type(failure).__name__)
        self._log.error("failed", "Reading from Kafka failed; it starts again.", error=str(failure))

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
            "error_cb": lambda error: self._call_soon(self._note_error, error),
            "on_commit": lambda *answer: self._call_soon(self._note_commit, *answer),
        }
        if config.group_instance_id is not None:
            settings["group.instance.id"] = config.group_instance_id
        return Consumer(settings)

    # On the thread.

    def _call_soon(self, call: Callable[..., object], *arguments: object) -> None:
        """Let the loop call something, without waiting for it."""
        with suppress(RuntimeError):  # the loop is closed: nothing waits for it
            self._loop.call_soon_threadsafe(call, *arguments)

    def _call_and_wait(self, work: Coroutine[object, object, T]) -> T:
        """Let the loop do something; what it returns or raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _on_assign(self, client: "Consumer", partitions: "list[TopicPartition]") -> None:
        """Determine where each partition is to be read from, and read it.

        In a callback no call of the client itself may wait: the next callback of the same poll would end the
        process. Offsets come from another client, which is no member.
        """
        counts = self._partition_counts()
        self._span_partitions = counts[self.config.topic]
        numbers = {each.partition for each in partitions}
        self._assign(
            client,
            [
                *((self.config.topic, number) for number in sorted(numbers)),
                *self._log_partitions(counts, numbers),
            ],
            counts,
        )

    def _partition_counts(self) -> dict[str, int]:
        """How many partitions each topic has; 0 where that of log records is not there."""
        from confluent_kafka import Consumer

        if self._offset_client is None:
            settings = {"group.id": self.config.group_id, "enable.auto.commit": False}
            self._offset_client = Consumer({**self.config.client_settings(), **settings})
        return {
            topic: len(self._offset_client.list_topics(topic, _BROKER_SECONDS).topics[topic].partitions)
            for topic in self.config.topics.values()
        }

    def _log_partitions(self, counts: Mapping[str, int], numbers: Collection[int]) -> list[Place]:
        """What is read of the topic with log records by whoever has these partitions of that with spans.

        It is the partition of the same number; those beyond belong to the last.
        """
        topic = self.config.logs_topic
        if topic is None:
            return []
        last = counts[self.config.topic] - 1
        return [(topic, number) for number in range(counts[topic]) if min(number, last) in numbers]

    def _is_look_due(self) -> bool:
        now = self.clock.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + _LOOK_SECONDS
        return self.config.logs_topic is not None and bool(self._partitions)

    def _follow_log_records(self, client: "Consumer") -> None:
        """Read what was added to the topic with log records, and what is another member's no longer."""
        counts = self._partition_counts()
        numbers = {number for topic, number in self._partitions if topic == self.config.topic}
        due = set(self._log_partitions(counts, numbers))
        has = {place for place in self._partitions if place[0] == self.config.logs_topic}
        if has - due:
            self._unassign(client, sorted(has - due), "revoked")
        if due - has:
            self._assign(client, sorted(due - has), counts)

    def _assign(self, client: "Consumer", places: Sequence[Place], counts: Mapping[str, int]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        offsets = self._offset_client
        assert offsets is not None
        assigned: list[_Assignment] = []
        partitions = [TopicPartition(*place) for place in places]
        for known in offsets.committed(partitions, _BROKER_SECONDS) if partitions else ():
            if known.error is not None:
                raise KafkaException(known.error)
            low, high = offsets.get_watermark_offsets(known, _BROKER_SECONDS)
            place, start = (known.topic, known.partition), known.offset
            if start < 0:
                start = low if self.config.initial_offset == "earliest" else high
                assigned.append(_Assignment(place, start, Progress(start), high))
                continue
            if not low <= start <= high:
                assigned.append(_Assignment(place, low, Progress(low), high, is_out_of_range=True))
                continue
            progress = read_progress(start, known.metadata)
            # Of log records nothing is read again: what was delivered of a trace is known by its spans.
            lookback = self.config.lookback if known.topic == self.config.topic else 0.0
            if progress.unix_milli is not None and lookback:
                since = progress.unix_milli - int(lookback * 1000)
                at = offsets.offsets_for_times([TopicPartition(*place, max(since, 0))], _BROKER_SECONDS)
                if at[0].error is None and at[0].offset >= 0:
                    start = max(low, min(start, at[0].offset))
            assigned.append(_Assignment(place, start, progress, high))
        self._call_and_wait(self._open(assigned, counts))
        client.incremental_assign([TopicPartition(*each.place, each.start) for each in assigned])

    def _on_revoke(
        self, client: "Consumer", partitions: "list[TopicPartition]", kind: str = "revoked"
    ) -> None:
        """Give partitions away: not before what is in flight has arrived, and is committed."""
        numbers = {each.partition for each in partitions}
        last = self._span_partitions - 1
        logs = [place for place in self._partitions if place[0] == self.config.logs_topic]
        following = [place for place in logs if min(place[1], last) in numbers]
        self._unassign(client, [*((each.topic, each.partition) for each in partitions), *following], kind)

    def _unassign(self, client: "Consumer", places: Sequence[Place], kind: str) -> None:
        from confluent_kafka import TopicPartition

        commits = self._call_and_wait(self._close(places, kind))
        self._send_commits(client, commits)  # the client gives nothing away before it is answered
        client.incremental_unassign([TopicPartition(*place) for place in places])

    def _restart_partition(self, client: "Consumer", place: Place) -> None:
        """Continue with the first record that is there."""
        from confluent_kafka import TopicPartition

        low, _ = client.get_watermark_offsets(TopicPartition(*place), _BROKER_SECONDS)
        self._call_soon(self._note_out_of_range, place)
        client.seek(TopicPartition(*place, low))

    def _send_commits(self, client: "Consumer", commits: Sequence[tuple[Place, Commit]]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        if not commits:
            return
        offsets = [TopicPartition(*place, commit.offset, commit.metadata) for place, commit in commits]
        try:
            client.commit(offsets=offsets, asynchronous=True)
        except KafkaException as failure:
            self._call_soon(self._note_commit, failure.args[0], offsets)

    def _on_statistics(self, statistics: str) -> None:
        """Called every second."""
        known = orjson.loads(statistics)
        alive = {
            broker["nodeid"]
            for broker in known["brokers"].values()
            if broker["state"] == "UP" and 0 <= broker["rxidle"] < _SILENT_MICROSECONDS
        }
        stats = {
            (topic, int(number)): (partition["hi_offset"], partition["leader"] in alive)
            for topic in self.config.topics.values()
            for number, partition in known["topics"].get(topic, {}).get("partitions", {}).items()
            if number != "-1"
        }
        self._call_soon(self._note_statistics, stats)


def _partition_of(partitioner: str) -> Callable[[bytes, int], int] | None:
    import confluent_kafka

    return {
        "fnv1a": confluent_kafka.fnv1a,
        "murmur2": confluent_kafka.murmur2,
        "crc32": confluent_kafka.consistent,
    }.get(partitioner)


def _listed(places: Iterable[Place]) -> dict[str, list[str]]:
    return {"partitions": [f"{topic}/{number}" for topic, number in places]}
