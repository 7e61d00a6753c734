"""The settings that all exporters of spans share: delivery, queue, retries."""

from typing import Literal, Self

from pydantic import Field

from collector.config_fields import Duration, PositiveDuration
from collector.trace import Signal
from processors.documents import StrictModel


class RetryConfig(StrictModel):
    """`retry_on_failure` of an exporter; names and meaning are the Collector's."""

    initial_interval: PositiveDuration = 1.0
    """Wait after the first failure."""
    multiplier: float = Field(default=1.5, ge=1, le=10, allow_inf_nan=False)
    """Factor from one wait to the next."""
    randomization_factor: float = Field(default=0.5, ge=0, lt=1, allow_inf_nan=False)
    """Each wait is drawn between (1 - factor) and (1 + factor) times the interval."""
    max_interval: PositiveDuration = 30.0
    """Upper bound of the interval."""
    max_elapsed_time: Duration = 0.0
    """From the first attempt of a request until its spans are dropped; 0: never given up."""


OTHER_QUEUES = 2
"""Queues of an exporter in addition to those of received spans and log records, for log records and spans of
verdicts; each sends one request at a time."""


class BatchConfig(StrictModel):
    """`sending_queue.batch`: when a request is full enough to leave.

    A request holds whole traces as long as they fit; a trace larger than a request is split.
    """

    flush_timeout: Duration = 0.2
    """A request leaves after this time even if it is not full."""
    max_spans: int = Field(default=1000, ge=1)
    """Spans in a request, at most."""
    max_bytes: int = Field(default=4_000_000, ge=1)
    """Encoded bytes of a request, at most (a single larger span travels alone). gRPC servers refuse
    messages above 4 MiB unless they are configured otherwise."""


class SendingQueueConfig(StrictModel):
    """`sending_queue`: how requests leave."""

    num_consumers: int = Field(default=4, ge=1, le=64)
    """Requests on their way at the same time, those waiting for a retry included."""
    batch: BatchConfig = BatchConfig()

    def one_at_a_time(self) -> Self:
        """The same with one request under way at a time."""
        return self.model_copy(update={"num_consumers": 1})


class SpanExporterConfig(StrictModel):
    """The keys that all exporters of spans share; their own configuration models derive from it."""

    delivery: Literal["required", "best_effort"] = "required"
    """`required`: nothing is dropped for want of memory, senders wait. `best_effort`: when the memory
    limit is reached, the oldest spans of this queue are dropped."""
    sending_queue: SendingQueueConfig = SendingQueueConfig()
    retry_on_failure: RetryConfig = RetryConfig()

    @property
    def accepts(self) -> tuple[Signal, ...]:
        """What goes to the exporter."""
        return ("traces",)
