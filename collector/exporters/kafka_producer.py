"""Writing records to Kafka until the brokers have them, and the settings for that."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field

from collector.clock import ends_within
from collector.config_fields import PositiveDuration
from collector.errors import ContentRefusedError, ExportError, RetryableExportError
from collector.exporters.exporter import ExporterContext
from collector.exporters.otlp_client import one_line
from collector.kafka_connection import KafkaConnectionConfig, startup_errors
from collector.telemetry import RateLimitedLogger
from collector.work_thread import WorkThread

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

RECORD_OVERHEAD_BYTES = 1024
"""What a record may have in addition to its value: key, framing, and that of the batch around it."""

_POLL_SECONDS = 0.1
_LINGER_MILLISECONDS = 5
_PARTITIONERS = {"fnv1a": "fnv1a_random", "murmur2": "murmur2_random", "crc32": "consistent_random"}
_REFUSED = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_MSG", "_INVALID_ARG")
"""Errors that are about the records; all others may pass."""

_logger = logging.getLogger(__name__)

KafkaRecord: TypeAlias = tuple[bytes | None, bytes]
"""Key and value; without a key a record may be in any partition."""

_Answer: TypeAlias = asyncio.Future["KafkaError | None"]


class KafkaProducerConfig(KafkaConnectionConfig):
    """The keys that all exporters to Kafka share."""

    partitioner: Literal["fnv1a", "murmur2", "crc32"] = Field(
        default="fnv1a",
        description="How the partition of a key is determined: fnv1a as the OpenTelemetry Collector does, "
        "murmur2 as Java clients, crc32 as librdkafka.",
    )
    max_message_bytes: int = Field(
        default=1_000_000,
        ge=10_000,
        le=512 * 1024 * 1024,
        description="Maximum size of a record; not more than the topic's max.message.bytes.",
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    timeout: PositiveDuration = Field(
        default=10.0,
        description="How long an attempt waits for the brokers before it counts as failed. The records stay "
        "in the client meanwhile and are not written twice.",
    )


@dataclass(eq=False)
class KafkaProducer:
    """An idempotent producer: what is sent is written once, in order for each key.

    A record that was not answered in time is still under way: sending it again waits for that one, and no
    second is written. After a restart of this process, or an error after which the client must be created
    again, a record may be written twice.
    """

    name: str
    """The exporter's id in the configuration."""
    config: KafkaProducerConfig
    context: ExporterContext
    max_unanswered_bytes: int
    """What the client may hold."""

    def __post_init__(self) -> None:
        self._log = RateLimitedLogger(_logger, self.context.clock)
        self._client: _Client | None = None
        self._sent_before: dict[tuple[str, KafkaRecord], _Answer] = {}
        """Records of attempts that failed as a whole, which were written themselves or still may be."""
        self._sent_before_bytes = 0

    @property
    def endpoint(self) -> str:
        """The brokers and the topic, for logs."""
        return f"{','.join(self.config.brokers)}/{self.config.topic}"

    @property
    def max_value_bytes(self) -> int:
        """The longest value that fits in a record."""
        return self.config.max_message_bytes - RECORD_OVERHEAD_BYTES

    async def start(self) -> None:
        """Create the client, whether or not any broker answers; raises `StartupError` if that fails."""
        with startup_errors(f"exporters.{self.name}"):
            self._client = self._new_client()

    async def send(self, records: Sequence[KafkaRecord], topic: str = "") -> None:
        """Return once the topic, by default that of the configuration, has all of `records`.

        May run concurrently.

        Raises:
            RetryableExportError: some of them are not known to be there; send the same again.
            ContentRefusedError: some of them will never be accepted.
        """
        if self._client is None:
            raise RetryableExportError("The exporter is not started.")
        if self._client.is_broken:
            self._client.stop()
            self._forget()
            self._client = self._new_client()
        topic = topic or self.config.topic
        answers: list[_Answer] = []
        try:
            for record in records:
                answers.append(self._answer_of(topic, record) or self._client.produce(topic, record))
            if answers:
                await asyncio.wait(answers, timeout=self.config.timeout)
            failure: ExportError | None = _failure(answers, self.config.timeout)
        except BufferError:
            failure = RetryableExportError("Too much waits for brokers.")
        except asyncio.CancelledError:
            self._remember(topic, records, answers)
            raise
        if failure is not None:
            self._remember(topic, records, answers)
            raise failure

    async def close(self, deadline: float) -> None:
        """Give up what is not answered; safe before `start` and twice."""
        client, self._client = self._client, None
        self._forget()
        if client is not None:
            seconds = max(deadline - self.context.clock.monotonic(), 1.0)
            await ends_within(seconds, client.stop(), self.context.clock)

    def _answer_of(self, topic: str, record: KafkaRecord) -> _Answer | None:
        """The answer to `record` that an attempt before waits for, no longer remembered."""
        answer = self._sent_before.pop((topic, record), None)
        if answer is not None:
            self._sent_before_bytes -= len(record[1])
        return answer

    def _remember(self, topic: str, records: Sequence[KafkaRecord], answers: Sequence[_Answer]) -> None:
        """Note what need not be sent again with the others, as far as there is room."""
        for record, answer in zip(records, answers, strict=False):
            is_refused = answer.done() and answer.result() is not None
            if not is_refused and (topic, record) not in self._sent_before:
                self._sent_before[topic, record] = answer
                self._sent_before_bytes += len(record[1])
        while self._sent_before_bytes > self.max_unanswered_bytes:
            self._answer_of(*next(iter(self._sent_before)))

    def _forget(self) -> None:
        self._sent_before.clear()
        self._sent_before_bytes = 0

    def _new_client(self) -> "_Client":
        config = self.config
        settings: dict[str, str | int | float | bool] = {
            **config.client_settings(),
            "enable.idempotence": True,
            "partitioner": _PARTITIONERS[config.partitioner],
            "compression.type": config.compression,
            "message.max.bytes": config.max_message_bytes,
            "message.timeout.ms": 0,  # the queue before the exporter decides when to give up
            "linger.ms": _LINGER_MILLISECONDS,
            "queue.buffering.max.kbytes": max(self.max_unanswered_bytes // 1024, 1),
            "queue.buffering.max.messages": 1_000_000,
            "allow.auto.create.topics": False,
            "topic.metadata.refresh.interval.ms": 60_000,
            "log_level": 0,  # errors arrive by the callback
        }
        return _Client(settings, self._note_error, name=f"write to {self.name}")

    def _note_error(self, error: "KafkaError") -> None:
        self.context.metrics.kafka_errors.add(1, error.name())
        message = "The Kafka client reports an error."
        self._log.warning("kafka", message, exporter=self.name, error=one_line(error.str()))


class _Client:
    """librdkafka's producer, used on the event loop, and polled for outcomes in a thread."""

    def __init__(
        self,
        settings: Mapping[str, str | int | float | bool],
        note_error: "Callable[[KafkaError], None]",
        *,
        name: str,
    ) -> None:
        from confluent_kafka import Producer

        self.is_broken = False
        """Whether it accepts nothing any more."""
        self._note_error = note_error
        self._reports: list[tuple[_Answer, KafkaError | None]] = []
        self._errors: list[KafkaError] = []
        self._producer = Producer({**settings, "error_cb": self._errors.append})
        self._is_stopping = False
        self._thread = WorkThread(name)
        self._thread.start()
        self._polling = asyncio.get_running_loop().create_task(self._poll(), name=name)

    def stop(self) -> asyncio.Task[None]:
        """Give up what is not answered; done when the thread has ended."""
        self._is_stopping = True
        return self._polling

    def produce(self, topic: str, record: KafkaRecord) -> _Answer:
        """Write a record; what the future holds is why it was not accepted, None if it was.

        Raises:
            BufferError: it holds too much already.
        """
        from confluent_kafka import KafkaException

        answer: _Answer = asyncio.get_running_loop().create_future()
        try:
            self._producer.produce(topic, record[1], record[0], on_delivery=partial(self._report, answer))
        except KafkaException as failure:
            self._settle([(answer, failure.args[0])])
        return answer

    def _settle(self, reports: "Sequence[tuple[_Answer, KafkaError | None]]") -> None:
        for answer, error in reports:
            if not answer.done():
                answer.set_result(error)
            self._check(error)

    async def _poll(self) -> None:
        while not self._is_stopping:
            await self._thread.run(self._producer.poll, _POLL_SECONDS)
            reports, self._reports = self._reports, []
            errors = self._errors[:]
            self._errors.clear()
            self._settle(reports)
            for error in errors:
                self._check(error)
                self._note_error(error)
        await self._thread.close(self._producer.purge)

    def _check(self, error: "KafkaError | None") -> None:
        if error is not None and (error.fatal() or error.code() == error._FATAL):
            self.is_broken = True

    def _report(self, answer: _Answer, error: "KafkaError | None", message: "Message") -> None:
        """Called in the thread."""
        self._reports.append((answer, error))


def _failure(answers: Sequence[_Answer], seconds: float) -> RetryableExportError | ContentRefusedError | None:
    """What to raise of these, if anything; a refusal waits until all others are answered."""
    errors = [error for answer in answers if answer.done() and (error := answer.result()) is not None]
    for error in errors:
        if error.name() not in _REFUSED:
            return RetryableExportError(one_line(error.str()))
    if not all(answer.done() for answer in answers):
        return RetryableExportError(f"No answer within {seconds:g} s.")
    return ContentRefusedError(one_line(errors[0].str())) if errors else None
