"""Members of a consumer group on a real broker, and a watcher that no commit passes an undelivered span."""

import asyncio
import signal
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import orjson
from confluent_kafka import Consumer, TopicPartition

from collector.receivers.kafka.offsets import read_progress
from processors.model.json_values import JsonObject
from tests.support.balanced_replicas import CRITERIA, Outcomes, Traffic, outcomes_of
from tests.support.kafka_broker import KafkaBroker, KafkaSender
from tests.support.service_process import ServiceProcess, deep_merge

GROUP = "graders"
SESSION_SECONDS = 6.0
_WATCH_SECONDS = 0.3


class KafkaGroup:
    """A topic of its own, whoever writes to it, and the services that read it.

    Args:
        folder: For files of all services.
        broker: Where the topic is.
        partitions: How many the topic has.
        settings: For every service, beside those of the receiver.
    """

    def __init__(
        self, folder: Path, broker: KafkaBroker, *, partitions: int = 6, settings: JsonObject | None = None
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
        self._services: list[ServiceProcess] = []
        self._read: dict[Path, int] = {}
        self._delivered: set[tuple[bytes, bytes]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._observer = Consumer(
            {**broker.client_settings(), "group.id": GROUP, "enable.auto.commit": False}
        )

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._watching is not None
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        for member in self.members.values():
            if member.process.returncode is None:
                member.signal(signal.SIGCONT)
                member.process.kill()
            await member.wait()
        self._observer.close()

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

    async def until_committed(self) -> None:
        """Wait until all that was written is delivered and committed."""
        self.sender.flush()
        ends: dict[int, int] = {}
        for partition, offset in self.sender.written:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        async with asyncio.timeout(60):
            while True:
                committed = await asyncio.to_thread(self._committed)
                if all(committed[partition][0] >= end for partition, end in ends.items()):
                    return
                await asyncio.sleep(0.1)

    async def metric(self, name: str) -> float:
        """The sum of a metric over the members that run."""
        return sum([(await member.metrics()).get(name, 0.0) for member in self.members.values()])

    def outcomes(self, traffic: Traffic) -> Outcomes:
        """What became of the traces."""
        return outcomes_of(traffic, self._services)

    def deliveries(self) -> int:
        """How many spans left, each as often as it did."""
        return sum(len(spans) for spans in map(_spans, self._services))

    async def _watch(self) -> None:
        while True:
            await asyncio.to_thread(self._check)
            await asyncio.sleep(_WATCH_SECONDS)

    def _check(self) -> None:
        committed = self._committed()
        for service in list(self._services):
            self._read_new(service.spans_path)
        for (partition, offset), ids in list(self.sender.written.items()):
            position, metadata = committed[partition]
            if position >= 0 and read_progress(position, metadata).is_done(offset):
                missing = ids - self._delivered
                if missing:
                    self.passed.append(f"{partition}/{offset} of {position}: {len(missing)} spans")

    def _committed(self) -> dict[int, tuple[int, str | None]]:
        places = [TopicPartition(self.topic, number) for number in range(self._partitions)]
        found = self._observer.committed(places, 10)
        return {place.partition: (place.offset, place.metadata) for place in found}

    def _read_new(self, path: Path) -> None:
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read[path] = self._read.get(path, 0) + len(line)
                for span in _spans_of(orjson.loads(line)):
                    self._delivered.add((bytes.fromhex(span["traceId"]), bytes.fromhex(span["spanId"])))


def _spans(service: ServiceProcess) -> list[Any]:
    return [span for request in service.exported_requests() for span in _spans_of(request)]


def _spans_of(request: object) -> list[Any]:
    return [
        span
        for resource in cast("Any", request)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
