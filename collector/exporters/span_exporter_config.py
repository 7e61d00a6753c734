"""What every exporter of spans can be told beside its own keys: delivery, queue, retries."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from collector.config_fields import Duration
from collector.exporters.retry import RetryConfig

Signal: TypeAlias = Literal["traces", "logs"]
"""What OTLP can carry to a backend, as far as there is something to send."""

RESULT_QUEUES = 2
"""Queues of an exporter beside that of spans, one for each form of a result; each sends one request at a
time."""


class BatchConfig(BaseModel):
    """`sending_queue.batch`: when a request is full enough to leave.

    A request holds whole traces as long as they fit; a trace larger than a request is split.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    flush_timeout: Duration = 0.2
    """A request leaves after this time even if it is not full."""
    max_spans: int = Field(default=1000, ge=1)
    """Spans in a request, at most."""
    max_bytes: int = Field(default=4_000_000, ge=1)
    """Encoded bytes of a request, at most (a single larger span travels alone). gRPC servers refuse
    messages above 4 MiB unless they are told otherwise."""


class SendingQueueConfig(BaseModel):
    """`sending_queue`: how requests leave."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_consumers: int = Field(default=4, ge=1, le=64)
    """Requests on their way at the same time, those waiting for a retry included."""
    batch: BatchConfig = BatchConfig()


class SpanExporterConfig(BaseModel):
    """The keys that all exporters of spans share; their own configuration models derive from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    delivery: Literal["required", "best_effort"] = "required"
    """`required`: nothing is dropped for want of memory, senders wait. `best_effort`: when the memory
    limit is reached, the oldest spans of this queue are dropped."""
    sending_queue: SendingQueueConfig = SendingQueueConfig()
    retry_on_failure: RetryConfig = RetryConfig()

    @property
    def takes_spans(self) -> bool:
        """Whether spans go there."""
        return True

    @property
    def takes_log_records(self) -> bool:
        """Whether log records go there; then the exporter is a `LogExporter`."""
        return False

    def for_results(self) -> "SpanExporterConfig":
        """The settings of a queue of results: no sender waits for one, and one request leaves at a time."""
        queue = self.sending_queue.model_copy(update={"num_consumers": 1})
        return self.model_copy(update={"delivery": "best_effort", "sending_queue": queue})
