"""Members of a consumer group on a real broker, and a watcher that no commit passes an undelivered span."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

import orjson
from confluent_kafka import Consumer, KafkaException, TopicPartition

from collector.otlp import split_request
from collector.receivers.kafka.offsets import read_progress
from processors.model import JsonObject
from tests.support.balanced_replicas import CRITERIA, Outcomes, Sending, Traffic, outcomes_of
from tests.support.kafka_broker import KafkaBroker, KafkaSender
from tests.support.service_process import ServiceProcess, deep_merge

GROUP = "graders"
RATE = 15
"""Traces a second."""
SESSION_SECONDS = 6.0
_WATCH_SECONDS = 0.3

SpanKey: TypeAlias = tuple[bytes, bytes]
"""Trace and span id."""


class KafkaGroup:
    """A topic of its own, whoever writes to it, and the services that read it.

    Args:
        folder: For files of all services.
        broker: Where the topic is.
        partitions: How many the topic has.
        settings: For every service, beside those of the receiver.
        forwards_spans: Whether the services do; else a span is delivered when its trace has a verdict.
        elsewhere: The spans that have arrived where they must as well, apart from the files.
        reads_topic: Whether others than `sender` write, so that what is written is to be read from the topic.
    """

    def __init__(
        self,
        folder: Path,
        broker: KafkaBroker,
        *,
        partitions: int = 6,
        settings: JsonObject | None = None,
        forwards_spans: bool = True,
        elsewhere: Callable[[], Collection[SpanKey]] | None = None,
        reads_topic: bool = False,
    ) -> None:
        self.broker = broker
        self.topic = broker.create_topic(partitions)
        self.sender = KafkaSender(broker, self.topic)
        self.members: dict[str, ServiceProcess] = {}
        self.passed: list[str] = []
        """Commits past a span that no sink had."""
        self._folder = folder
        self._partitions = partitions
        self._settings = settings or {}
        self._forwards_spans = forwards_spans
        self._elsewhere = elsewhere
        self._services: list[ServiceProcess] = []
        self._read: dict[Path, int] = {}
        self._in_background: dict[Path, Path] = {}
        self._in_place = Lock()
        """Held while files are moved, or read by the watcher."""
        self._delivered: set[SpanKey] = set()
        self._judged: set[bytes] = set()
        self._checked: set[tuple[int, int]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._observer = Consumer(
            {**broker.client_settings(), "group.id": GROUP, "enable.auto.commit": False}
        )
        self._reader: Consumer | None = None
        if reads_topic:
            self._reader = Consumer({**broker.client_settings(), "group.id": "look"})
            self._reader.assign([TopicPartition(self.topic, number, 0) for number in range(partitions)])

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._watching is not None
        watching = self._watching
        if not watching.done():
            watching.cancel()
        (end,) = await asyncio.gather(watching, return_exceptions=True)
        for member in self.members.values():
            if member.process.returncode is None:
                member.signal(signal.SIGCONT)
                member.process.kill()
            await member.wait()
        for client in (self._observer, self._reader):
            if client is not None:
                client.close()
        if error is None and not isinstance(end, asyncio.CancelledError):
            raise AssertionError("the watcher has not watched to the end") from end

    def add_partitions(self, count: int) -> None:
        """Let the topic have `count` partitions."""
        self.broker.add_partitions(self.topic, count)
        self._partitions = count

    async def start(self, name: str, settings: JsonObject | None = None) -> ServiceProcess:
        """Start a member, or start it again."""
        folder = self._folder / f"{name}-{len(self._services)}"
        folder.mkdir()
        kafka: JsonObject = {
            **self.broker.client_config(),
            "topic": self.topic,
            "group_id": GROUP,
            "session_timeout": f"{SESSION_SECONDS:g}s",
        }
        own: JsonObject = {"receivers": {"kafka": kafka}}
        for more in (self._settings, settings or {}):
            own = cast(JsonObject, deep_merge(own, more))
        member = ServiceProcess(folder, own, CRITERIA)
        await member.start()
        self.members[name] = member
        self._services.append(member)
        return member

    async def kill(self, name: str) -> None:
        """kill -9."""
        member = self.members.pop(name)
        member.signal(signal.SIGKILL)
        await member.wait()

    async def stop(self, name: str) -> None:
        """SIGTERM; it must end well."""
        code = await self.members.pop(name).stop()
        assert 0 == code

    @contextmanager
    def no_results(self, name: str) -> Iterator[None]:
        """No verdict of the member can be written meanwhile; the watcher still finds those that were."""
        path = self.members[name].results_path
        with self._in_place:
            self._in_background[path] = path.rename(path.with_name("earlier"))
            path.mkdir()
        try:
            yield
        finally:
            with self._in_place:
                path.rmdir()
                self._in_background.pop(path).rename(path)

    async def until_assigned(self, *names: str) -> None:
        """Wait until these members read all partitions, and each of them some."""
        async with asyncio.timeout(60):
            while True:
                for name in names:
                    member = self.members[name]
                    assert member.process.returncode is None, "".join(member.log)
                shares = [
                    (await self.members[name].metrics())['tracegrade_kafka_partitions{state="assigned"}']
                    for name in names
                ]
                if sum(shares) == self._partitions and all(shares):
                    return
                await asyncio.sleep(0.1)

    async def until_committed(self, patience: float = 60.0) -> None:
        """Wait until all that was written is delivered and committed."""
        self.sender.flush()
        places = [TopicPartition(self.topic, number) for number in range(self._partitions)]
        ends = [await asyncio.to_thread(self._observer.get_watermark_offsets, place, 10) for place in places]
        async with asyncio.timeout(patience):
            while True:
                committed = await asyncio.to_thread(self._committed)
                if all(committed[number][0] >= end for number, (_, end) in enumerate(ends) if end):
                    return
                await asyncio.sleep(0.1)

    async def until_noted(self, partition: int, size: int) -> None:
        """Wait until what is committed of the partition has metadata of at least so many bytes."""
        async with asyncio.timeout(60):
            while len((await asyncio.to_thread(self._committed))[partition][1] or "") < size:
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def under_load(
        self, traffic: Traffic, rate: float = RATE, senders: Sequence[Sending] = ()
    ) -> AsyncIterator[None]:
        """Traffic until the end, to the topic or to `senders`; then all of it is graded and committed."""
        over = asyncio.Event()
        sending = asyncio.create_task(traffic.send(senders or [self.sender, self.sender], rate, over))
        try:
            yield
        finally:
            over.set()
            await sending
        await self.until_committed()

    def check(self, traffic: Traffic, *, undecided: int) -> Outcomes:
        """No verdict is another than that of the whole trace, and no span was lost or committed too early."""
        outcomes = self.outcomes(traffic)
        print(f"{outcomes.traces} traces, {len(outcomes.undecided)} undecided")
        assert [] == outcomes.flips
        if self._forwards_spans:
            print(f"{self.deliveries() - sum(map(len, traffic.sent.values()))} spans sent again")
            assert {} == outcomes.undelivered
        assert [] == self.passed
        assert undecided >= len(outcomes.undecided)
        return outcomes

    async def metric(self, name: str) -> float:
        """The sum of a metric over the members that run."""
        return sum([(await member.metrics()).get(name, 0.0) for member in self.members.values()])

    def outcomes(self, traffic: Traffic) -> Outcomes:
        """What became of the traces."""
        return outcomes_of(traffic, self._services)

    def errors(self) -> list[tuple[str, str]]:
        """The verdicts that are errors: the agent, and what went wrong."""
        return [
            (run["agent"]["name"], verdict["error_type"])
            for service in self._services
            for run in cast("list[Any]", service.results())
            for verdict in run["evaluations"]
            if verdict["outcome"] == "error"
        ]

    def deliveries(self) -> int:
        """How many spans left, each as often as it did."""
        return sum(len(spans) for spans in map(_spans, self._services))

    async def _watch(self) -> None:
        while True:
            await asyncio.to_thread(self._check_in_place)
            await asyncio.sleep(_WATCH_SECONDS)

    def _check_in_place(self) -> None:
        with self._in_place:
            self._check()

    def _check(self) -> None:
        try:
            committed = self._committed()
        except KafkaException:
            return  # no broker runs
        for service in list(self._services):
            if self._forwards_spans:
                for request in self._new_lines(service.spans_path):
                    self._delivered.update(_key(span) for span in _spans_of(request))
            else:
                runs = self._new_lines(service.results_path)
                self._judged.update(bytes.fromhex(cast("Any", run)["trace_id"]) for run in runs)
        if self._reader is not None:
            for message in self._reader.consume(10_000, 0.1):
                assert message.error() is None, message.error()
                place = (message.partition() or 0, message.offset() or 0)
                traces = split_request(message.value() or b"").traces
                self.sender.written[place] = frozenset(
                    (trace_id, span[0]) for trace_id, spans in traces.items() for span in spans
                )
        arrived = None if self._elsewhere is None else self._elsewhere()
        for (partition, offset), ids in list(self.sender.written.items()):
            if (partition, offset) in self._checked:
                continue
            position, metadata = committed.get(partition, (-1, None))
            if position >= 0 and read_progress(position, metadata).is_done(offset):
                if self._forwards_spans:
                    missing = ids - self._delivered
                else:
                    missing = frozenset(each for each in ids if each[0] not in self._judged)
                if arrived is not None:
                    missing |= ids.difference(arrived)
                self._checked.add((partition, offset))
                if missing:
                    self.passed.append(f"{partition}/{offset} of {position}: {len(missing)} spans")

    def _committed(self) -> dict[int, tuple[int, str | None]]:
        places = [TopicPartition(self.topic, number) for number in range(self._partitions)]
        found = self._observer.committed(places, 10)
        return {place.partition: (place.offset, place.metadata) for place in found}

    def _new_lines(self, path: Path) -> list[object]:
        """What was written since the last call."""
        found: list[object] = []
        place = self._in_background.get(path, path)
        if place.is_file():
            with place.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    found.append(orjson.loads(line))
        return found


def _key(span: Any) -> SpanKey:
    return bytes.fromhex(span["traceId"]), bytes.fromhex(span["spanId"])


def _spans(service: ServiceProcess) -> list[Any]:
    return [span for request in service.exported_requests() for span in _spans_of(request)]


def _spans_of(request: object) -> list[Any]:
    return [
        span
        for resource in cast("Any", request)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
