"""A member of a Kafka consumer group: a thread that polls the client, and the loop that takes the records in.

The client is touched by the thread alone, everything else by the loop alone. While the loop is behind, the
thread reads no further; it goes on serving the group.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from collector.clock import Clock, ends_within
from collector.errors import StartupError
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

AnyT = TypeVar("AnyT")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Assigned:
    """A partition that is to be read from `start` on; what comes before `progress` was delivered."""

    number: int
    start: int
    progress: Progress
    end: int
    is_out_of_range: bool


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the client knows of a partition: the offset behind its last record, and if its broker talks."""

    end: int
    is_alive: bool


class KafkaReceiver:
    """Reads the partitions that the group gives to this process, and commits what was delivered.

    Args:
        config: What to read, and from where.
        consumer: Where the records go.
        metrics: Counts what happens.
        clock: Intervals and deadlines.
    """

    def __init__(
        self, config: KafkaReceiverConfig, consumer: RecordConsumer, metrics: Metrics, clock: Clock
    ) -> None:
        self.config = config
        self._consumer = consumer
        self._metrics = metrics
        self._clock = clock
        self._log = RateLimitedLogger(_logger, clock)
        self._keys = TrustedKeys(None, clock)
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
        self._loop: asyncio.AbstractEventLoop
        self._client: Consumer | None = None
        self._asker: Consumer | None = None
        self._owned: set[int] = set()  # what the thread has assigned
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._room = threading.Semaphore(_BATCHES_AHEAD)
        self._commands: SimpleQueue[Callable[[Consumer], None]] = SimpleQueue()
        for outcome in ("admitted", "delivered_before", "malformed", "oversized"):
            metrics.kafka_records.add(0, outcome)
        for reason in ("missing", "foreign"):
            metrics.kafka_untrusted_keys.add(0, reason)
        for kind in ("assigned", "revoked", "lost"):
            metrics.kafka_rebalances.add(0, kind)
        for outcome in ("success", "failure"):
            metrics.kafka_commits.add(0, outcome)
        metrics.kafka_partitions.read_from(lambda: len(self._partitions), "assigned")
        metrics.kafka_partitions.read_from(lambda: len(self._partitions) if self._is_paused else 0, "paused")

    @property
    def endpoint(self) -> str:
        """The brokers, as configured."""
        return ",".join(self.config.brokers)

    async def start(self, tasks: TaskOwner) -> None:
        """Make the client; that no broker answers is no reason not to start.

        Raises:
            StartupError: the client is not installed, or does not take its settings.
        """
        try:
            import confluent_kafka
        except ImportError as error:
            raise StartupError("receivers.kafka: needs the extra kafka: install tracegrade[kafka]") from error
        finders: Mapping[str, Callable[[bytes, int], int] | None] = {
            "fnv1a": confluent_kafka.fnv1a,
            "murmur2": confluent_kafka.murmur2,
            "crc32": confluent_kafka.consistent,
            "any": None,
        }
        self._keys = TrustedKeys(finders[self.config.partitioner], self._clock)
        self._loop = asyncio.get_running_loop()
        try:
            self._client = self._new_client()
        except confluent_kafka.KafkaException as error:
            raise StartupError(f"receivers.kafka: {error.args[0].str()}") from error
        tasks.create_task(self._take_in(), name="take in records")
        tasks.create_task(self._tick(), name="commit offsets")

    async def set_serving(self, is_serving: bool) -> None:
        """Join the group; leaving it is what `shutdown` does."""
        if is_serving and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="read from kafka", daemon=True)
            self._thread.start()

    async def shutdown(self, deadline: float) -> None:
        """Leave the group: what is held is read again by another member. Safe before `start` and twice."""
        self._deadline = deadline = min(deadline, self._clock.monotonic() + 2 * REVOKE_SECONDS)
        self._stopping.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            left = asyncio.to_thread(thread.join)
            if not await ends_within(max(deadline - self._clock.monotonic(), 1.0), left, self._clock):
                _logger.error("The Kafka group could not be left in time.")
        elif self._client is not None:
            self._client.close()
        self._client = None

    # On the loop.

    async def _take_in(self) -> None:
        """Take in what the thread has read, in short turns."""
        while True:
            self._arrived.clear()
            if not self._inbox:
                await self._arrived.wait()
            turn_ends = self._clock.monotonic() + _TURN_SECONDS
            messages = self._inbox.popleft()
            for message in messages:
                self._take(message)
                if self._clock.monotonic() >= turn_ends:
                    await self._clock.sleep(0)
                    turn_ends = self._clock.monotonic() + _TURN_SECONDS
            if len(messages) < _BATCH_RECORDS:  # else more wait
                for partition in self._partitions.values():
                    partition.hear()
            self._room.release()

    def _take(self, message: "Message") -> None:
        number = message.partition()
        partition = self._partitions.get(-1 if number is None else number)
        if partition is None:
            return  # it was given away meanwhile
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
        """What goes on between records: room is looked for, reading is paused and resumed, offsets go out."""
        while True:
            await self._clock.sleep(_TICK_SECONDS)
            for partition in self._partitions.values():
                partition.retry()
            self._pause_or_resume()
            is_doubtful = any(partition.is_doubtful for partition in self._partitions.values())
            self._poll_seconds = _SHORT_POLL_SECONDS if is_doubtful else _POLL_SECONDS
            now = self._clock.monotonic()
            if now >= self._next_commit:
                self._next_commit = now + _COMMIT_SECONDS
                self._commit()

    def _pause_or_resume(self) -> None:
        wants_pause = self._consumer.is_backed_up or any(each.waiting for each in self._partitions.values())
        now = self._clock.monotonic()
        if wants_pause:
            self._pause_ends = now + _PAUSE_SECONDS
        if wants_pause == self._is_paused or (not wants_pause and now < self._pause_ends):
            return
        self._is_paused = wants_pause
        if wants_pause:
            for partition in self._partitions.values():
                partition.pause()
            self._log.warning("paused", "Exporters do not keep up: nothing more is read from Kafka for now.")
        self._commands.put(_pausing(wants_pause))

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

    async def _open(self, assigned: Iterable[_Assigned], partition_count: int) -> None:
        """These partitions are read from now on."""
        self._note_partition_count(partition_count)
        for each in assigned:
            if each.is_out_of_range:
                self._note_out_of_range(each.number)
            partition = ReadPartition(
                each.number,
                each.progress,
                consumer=self._consumer,
                partition_count=partition_count,
                keys=self._keys,
                max_record_bytes=self.config.max_record_bytes,
                metrics=self._metrics,
                clock=self._clock,
                end=each.end,
                turn=self._turn,
                on_announcement=self._commit,
            )
            self._partitions[each.number] = partition
            self._metrics.kafka_rebalances.add(1, "assigned")
            label = str(each.number)
            self._metrics.kafka_lag.set(0, label)
            self._metrics.kafka_uncommitted.read_from(partition.uncommitted, label)
        if self._is_paused:
            self._commands.put(_pausing(True))
        self._next_commit = 0.0  # so that it is known soon who has them
        _logger.info("Partitions were assigned.", extra={"partitions": [each.number for each in assigned]})

    async def _close(self, numbers: Sequence[int], kind: str) -> list[tuple[int, Commit]]:
        """These partitions are read by others from now on; what to commit for them, unless they are `lost`.

        Deliveries in flight are waited for, for 5 s at most. No trace is ended.
        """
        closing = [self._partitions[number] for number in numbers if number in self._partitions]
        for partition in closing:
            del self._partitions[partition.number]
            partition.close()
        if kind != "lost":
            await self._settle(closing)
        commits: list[tuple[int, Commit]] = []
        for partition in closing:
            commits.append((partition.number, partition.commit(self._max_metadata_bytes)))
            partition.forget()
            self._metrics.kafka_rebalances.add(1, kind)
            self._metrics.kafka_lag.remove(str(partition.number))
            self._metrics.kafka_uncommitted.remove(str(partition.number))
        if closing:
            _logger.info("Partitions were %s.", kind, extra={"partitions": [each.number for each in closing]})
        return [] if kind == "lost" else commits

    async def _settle(self, partitions: Sequence[ReadPartition]) -> None:
        """Wait until nothing of these is in flight."""
        deadline = self._clock.monotonic() + REVOKE_SECONDS
        if self._deadline is not None:
            deadline = min(deadline, self._deadline)
        for partition in partitions:
            while partition.in_flight and (left := deadline - self._clock.monotonic()) > 0:
                partition.settled.clear()
                await ends_within(left, partition.settled.wait(), self._clock)

    def _note_partition_count(self, count: int) -> None:
        if self._keys.partition_count not in (0, count):
            _logger.warning(
                "The number of partitions has changed: traces that may lie in two of them are interrupted.",
                extra={"topic": self.config.topic, "partitions": count},
            )
        self._keys.note_partition_count(count)

    def _note_heard(self, partition_count: int, heard: Mapping[int, _Heard]) -> None:
        if partition_count:
            self._note_partition_count(partition_count)
        for number, partition in self._partitions.items():
            known = heard.get(number)
            if known is None or not known.is_alive:
                partition.stand_still()
            if known is not None and known.end >= 0:
                self._metrics.kafka_lag.set(max(known.end - partition.position, 0), str(number))

    def _note_out_of_range(self, number: int) -> None:
        self._metrics.kafka_offsets_out_of_range.add(1)
        _logger.error(
            "Records were gone from Kafka before they were read: their spans are lost.",
            extra={"topic": self.config.topic, "partition": number},
        )
        if number in self._partitions:
            self._partitions[number].note_gap()

    def _note_error(self, error: "KafkaError") -> None:
        self._metrics.kafka_errors.add(1, error.name())
        self._log.warning("kafka", "The Kafka client tells of an error.", error=error.str())

    def _note_commit(self, error: "KafkaError | None", told: Mapping[int, str | None]) -> None:
        """The broker has answered a commit with this metadata of partitions."""
        self._metrics.kafka_commits.add(1, "success" if error is None else "failure")
        if error is None:
            for number, metadata in told.items():
                if number in self._partitions:
                    self._partitions[number].note_committed(metadata)
            return
        self._note_error(error)
        if error.code() == error.OFFSET_METADATA_TOO_LARGE:  # this broker's offset.metadata.max.bytes
            self._max_metadata_bytes = max(self._max_metadata_bytes // 2, MIN_METADATA_BYTES)
        for number in told:
            if number in self._partitions:
                self._partitions[number].committed = None  # so that it is committed again

    def _note_failure(self, failure: Exception) -> None:
        self._metrics.kafka_errors.add(1, type(failure).__name__)
        self._log.error("failed", "Reading from Kafka failed; it begins again.", error=str(failure))

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
            "stats_cb": self._hear,
            "error_cb": lambda error: self._tell(self._note_error, error),
            "on_commit": self._note_commits,
        }
        if config.group_instance_id is not None:
            settings["group.instance.id"] = config.group_instance_id
        return Consumer(settings)

    def _run(self) -> None:
        """Be a member of the group until the service stops; whatever fails, begin again."""
        client = self._client
        while not self._stopping.is_set():
            try:
                client = client or self._new_client()
                self._read(client)
            except Exception as failure:
                self._tell(self._note_failure, failure)
            finally:
                if client is not None:
                    self._leave(client)
                    client = None
            self._stopping.wait(_RESTART_SECONDS)

    def _read(self, client: "Consumer") -> None:
        from confluent_kafka import KafkaException

        client.subscribe(
            [self.config.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        while not self._stopping.is_set():
            self._obey(client)
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
                    self._tell(self._note_error, error)
            self._tell(self._arrive, messages)

    def _leave(self, client: "Consumer") -> None:
        """Leave the group, which revokes what is still assigned."""
        asker, self._asker = self._asker, None
        for leaving in (client, asker):
            try:
                if leaving is not None:
                    leaving.close()
            except Exception as failure:
                self._tell(self._note_failure, failure)
        self._owned.clear()
        self._ask(self._close(list(self._partitions), "lost"))

    def _obey(self, client: "Consumer") -> None:
        """Do what the loop has asked for."""
        while True:
            try:
                command = self._commands.get_nowait()
            except Empty:
                return
            command(client)

    def _assigned(self, client: "Consumer", partitions: "list[TopicPartition]") -> None:
        """Find out where each partition is to be read from, and read it.

        In a callback nothing may be asked of the client itself that makes it wait: the next callback of the
        same poll would end the process. Another client, which is no member, is asked.
        """
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        topic = self.config.topic
        if self._asker is None:
            settings = {"group.id": self.config.group_id, "enable.auto.commit": False}
            self._asker = Consumer({**self.config.client_settings(), **settings})
        asker = self._asker
        count = len(asker.list_topics(topic, _BROKER_SECONDS).topics[topic].partitions)
        found: list[_Assigned] = []
        for known in asker.committed(partitions, _BROKER_SECONDS) if partitions else ():
            if known.error is not None:
                raise KafkaException(known.error)
            low, high = asker.get_watermark_offsets(known, _BROKER_SECONDS)
            number = known.partition
            if known.offset < 0:
                start = low if self.config.initial_offset == "earliest" else high
                found.append(_Assigned(number, start, Progress(start), high, False))
                continue
            progress = read_progress(known.offset, known.metadata)
            if not low <= known.offset <= high:
                found.append(_Assigned(number, low, Progress(low), high, True))
                continue
            start = known.offset
            if progress.unix_milli is not None and self.config.lookback:
                since = progress.unix_milli - int(self.config.lookback * 1000)
                at = asker.offsets_for_times([TopicPartition(topic, number, max(since, 0))], _BROKER_SECONDS)
                if at[0].error is None and at[0].offset >= 0:
                    start = max(low, min(start, at[0].offset))
            found.append(_Assigned(number, start, progress, high, False))
        self._ask(self._open(found, count))
        self._owned.update(each.number for each in found)
        client.incremental_assign([TopicPartition(topic, each.number, each.start) for each in found])

    def _revoked(self, client: "Consumer", partitions: "list[TopicPartition]") -> None:
        """Give partitions away: not before what is in flight has arrived, and is committed."""
        numbers = [each.partition for each in partitions]
        commits = self._ask(self._close(numbers, "revoked"))
        self._send_commits(client, commits)  # the client gives nothing away before it is answered
        self._owned.difference_update(numbers)
        client.incremental_unassign(partitions)

    def _lost(self, client: "Consumer", partitions: "list[TopicPartition]") -> None:
        """Somebody else reads these partitions already."""
        numbers = [each.partition for each in partitions]
        self._ask(self._close(numbers, "lost"))
        self._owned.difference_update(numbers)
        client.incremental_unassign(partitions)

    def _restart_partition(self, client: "Consumer", number: int) -> None:
        """Go on with the first record that is there."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self.config.topic, number)
        low, _ = client.get_watermark_offsets(place, _BROKER_SECONDS)
        self._tell(self._note_out_of_range, number)
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
            self._note_commits(failure.args[0], offsets)

    def _note_commits(self, error: "KafkaError | None", offsets: "Sequence[TopicPartition]") -> None:
        """The broker has answered a commit."""
        self._tell(self._note_commit, error, {each.partition: each.metadata for each in offsets})

    def _hear(self, statistics: str) -> None:
        """The client tells every second what it knows."""
        known = orjson.loads(statistics)
        alive = {
            broker["nodeid"]
            for broker in known["brokers"].values()
            if broker["state"] == "UP" and 0 <= broker["rxidle"] < _SILENT_MICROSECONDS
        }
        partitions = known["topics"].get(self.config.topic, {}).get("partitions", {})
        heard = {
            int(number): _Heard(about["hi_offset"], about["leader"] in alive)
            for number, about in partitions.items()
        }
        heard.pop(-1, None)
        self._tell(self._note_heard, len(heard), heard)

    def _tell(self, call: Callable[..., object], *arguments: object) -> None:
        """Let the loop call something, without waiting for it."""
        self._loop.call_soon_threadsafe(call, *arguments)

    def _ask(self, work: Coroutine[object, object, AnyT]) -> AnyT:
        """Let the loop do something, and wait for what comes of it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _pausing(is_paused: bool) -> "Callable[[Consumer], None]":
    return lambda client: (client.pause if is_paused else client.resume)(client.assignment())
