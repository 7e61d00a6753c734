"""An Apache Kafka broker in KRaft mode as a process, out of its Maven packages (`make broker-install`)."""

import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from collector.otlp import join_spans, split_request
from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.backend_server import free_port
from tests.support.otlp_senders import TLS, Answer

ONE_BROKER = pytest.mark.xdist_group("broker")
"""For tests with a broker: they go to one process of the test run, so that one broker runs at a time."""

PATIENCE_SECONDS = 60.0
_JARS = Path(__file__).parents[2] / ".broker" / "jars"
_SIMPLE_LOG = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
_USER, _PASSWORD = "tracegrade", "correct horse"


class KafkaBroker:
    """One broker, ready between `with` and its end. Tests skip, by name, where it is not installed.

    Args:
        folder: For its data and its log.
        is_secure: Whether it asks for TLS and SCRAM; else it takes everybody.
        shipped: A file with its settings, `server.properties` of an example, which runs at places of its own.
        more: Settings beside those of every broker here.
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_secure: bool = False,
        shipped: Path | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.endpoint = f"localhost:{free_port()}"
        self._controller = f"127.0.0.1:{free_port()}"
        self._folder = folder
        self._is_secure = is_secure
        self._shipped = shipped
        self._more = more or {}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if not _JARS.is_dir():
            pytest.skip("the Kafka broker is not installed (make broker-install)")
        if shutil.which("java") is None:
            pytest.skip("java is not installed")
        settings = self._folder / "server.properties"
        settings.write_text("\n".join(f"{name}={value}" for name, value in self._settings().items()))
        scram = ["--add-scram", f"SCRAM-SHA-512=[name={_USER},password={_PASSWORD}]"]
        form = ["format", "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--config", str(settings)]
        if self._is_secure:
            form += scram
        subprocess.run(
            [*_java("-Xmx256m"), "kafka.tools.StorageTool", *form], check=True, capture_output=True
        )
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, for the first time or again, and wait until it answers."""
        with (self._folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_java("-Xmx512m"), "kafka.Kafka", str(self._folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            try:
                self.admin().list_topics(timeout=2)
                return
            except Exception:
                time.sleep(0.2)

    def kill(self) -> None:
        """kill -9; its data stay."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def log(self) -> str:
        return (self._folder / "broker.log").read_text()[-4000:]

    def client_settings(self) -> dict[str, str]:
        """What a client of librdkafka is told."""
        settings = {"bootstrap.servers": self.endpoint, "log_level": "0"}
        if self._is_secure:
            settings |= {
                "security.protocol": "sasl_ssl",
                "ssl.ca.location": str(TLS / "ca.pem"),
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": _USER,
                "sasl.password": _PASSWORD,
            }
        return settings

    def client_config(self) -> JsonObject:
        """What a configuration file says of it."""
        settings: JsonObject = {"brokers": [self.endpoint]}
        if self._is_secure:
            settings["tls"] = {"ca_file": str(TLS / "ca.pem")}
            settings["sasl"] = {"mechanism": "SCRAM-SHA-512", "username": _USER, "password": _PASSWORD}
        return settings

    def admin(self) -> AdminClient:
        return AdminClient(dict(self.client_settings()))

    def create_topic(self, partitions: int, **settings: str) -> str:
        """A topic of its own for a test; its name."""
        name = f"spans-{uuid.uuid4().hex[:8]}"
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin = self.admin()
        admin.create_topics([topic])[name].result(10)
        return name

    def run_topic_tool(self, *arguments: str) -> None:
        """`kafka-topics.sh` with these arguments."""
        tool = (*_java("-Xmx256m"), "org.apache.kafka.tools.TopicCommand", *arguments)
        done = subprocess.run(tool, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert 0 == done.returncode, done.stdout + done.stderr

    def add_partitions(self, topic: str, count: int) -> None:
        """Let the topic have `count` partitions."""
        admin = self.admin()
        admin.create_partitions([NewPartitions(topic, count)])[topic].result(10)

    def records(self, topic: str) -> list[tuple[bytes, bytes]]:
        """Key and value of all records that are there, in the order of their partitions."""
        reader = Consumer({**self.client_settings(), "group.id": "look", "enable.partition.eof": True})
        try:
            numbers = reader.list_topics(topic, 10).topics[topic].partitions
            left = set(numbers)
            reader.assign([TopicPartition(topic, number, 0) for number in numbers])
            found: list[Message] = []
            while left:
                message = reader.poll(PATIENCE_SECONDS)
                assert message is not None
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
        finally:
            reader.close()
        found.sort(key=lambda message: (message.partition(), message.offset()))
        return [(message.key() or b"", message.value() or b"") for message in found]

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Let records before these offsets be gone, as retention does."""
        places = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
        admin = self.admin()
        for future in admin.delete_records(places).values():
            future.result(10)

    def _settings(self) -> dict[str, str]:
        if self._shipped is not None:
            text = self._shipped.read_text().replace("/var/lib/kafka/data", str(self._folder / "data"))
            places = {"kafka:9092": self.endpoint, "://:9092": f"://{self.endpoint}"}
            for place, here in {**places, "localhost:9093": self._controller}.items():
                assert place in text
                text = text.replace(place, here)
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            return dict(line.split("=", 1) for line in lines)
        outside = "SASL_SSL" if self._is_secure else "PLAINTEXT"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"OUTSIDE://{self.endpoint},CONTROLLER://{self._controller}",
            "advertised.listeners": f"OUTSIDE://{self.endpoint}",
            "listener.security.protocol.map": f"OUTSIDE:{outside},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "OUTSIDE",
            "log.dirs": str(self._folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "log.cleaner.enable": "false",
            **self._more,
        }
        if self._is_secure:
            store = self._folder / "server-store.pem"
            store.write_text((TLS / "server.key").read_text() + (TLS / "server.pem").read_text())
            login = "org.apache.kafka.common.security.scram.ScramLoginModule"
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(store),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(TLS / "ca.pem"),
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "listener.name.outside.scram-sha-512.sasl.jaas.config": (
                    f'{login} required username="{_USER}" password="{_PASSWORD}";'
                ),
            }
        return settings


class KafkaSender:
    """Writes export requests as the OpenTelemetry Collector does: a record for each trace, keyed by its id.

    `written` maps each record's partition and offset to the trace and span ids in it.
    """

    def __init__(self, broker: KafkaBroker, topic: str, *, partitioner: str = "fnv1a_random") -> None:
        self.topic = topic
        self.written: dict[tuple[int, int], frozenset[tuple[bytes, bytes]]] = {}
        self._producer = Producer(
            {
                **broker.client_settings(),
                "partitioner": partitioner,
                "linger.ms": 5,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )

    async def send(self, body: bytes) -> Answer:
        for spans in split_request(body).traces.values():
            self.write_spans(spans)
        self._producer.poll(0)
        return Answer("OK", "OK")

    def write_spans(self, spans: Sequence[RawSpan], *, unix_milli: int = 0) -> None:
        """Write spans of one trace as a record."""
        request = join_spans(spans)
        (trace_id,) = split_request(request).traces
        ids = frozenset((trace_id, span[0]) for span in spans)
        self.write(request, trace_id.hex().encode(), ids=ids, unix_milli=unix_milli)

    def write(
        self,
        value: bytes | None,
        key: bytes | None,
        *,
        ids: frozenset[tuple[bytes, bytes]] = frozenset(),
        partition: int = -1,
        unix_milli: int = 0,
    ) -> None:
        """Write one record; `ids` are the spans in it."""

        def written(error: object, message: "object") -> None:
            assert error is None, error
            place = (message.partition(), message.offset())  # type: ignore[attr-defined]
            self.written[place] = ids

        while True:
            try:
                self._producer.produce(
                    self.topic, value, key, partition=partition, timestamp=unix_milli, on_delivery=written
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def flush(self) -> None:
        """Wait until the broker has everything."""
        assert 0 == self._producer.flush(PATIENCE_SECONDS)


def _java(memory: str) -> Sequence[str]:
    return ("java", memory, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", _SIMPLE_LOG, "-cp", f"{_JARS}/*")
