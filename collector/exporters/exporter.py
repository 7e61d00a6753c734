"""The contracts of exporters: what they promise, and what a module in this folder has to expose.

An exporter is one file here with a `COMPONENT`; it is discovered by the folder and registered nowhere.
Exporters of spans and of scores are behind a sending queue; exporters of results are called directly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TextIO, TypeVar

from pydantic import BaseModel

from collector.clock import Clock
from collector.memory_limiter import MemoryLimiter, MemoryLimiterConfig
from collector.telemetry import Metrics
from collector.trace import GradedTrace, Signal


@dataclass(frozen=True, slots=True)
class ExportResponse:
    """A backend's answer to a request that it accepted.

    `rejected_spans` (or log records) were in the request and will not be stored (OTLP "Partial Success");
    they must not be sent again. `message` is the backend's own text, with or without rejected spans.
    """

    rejected_spans: int = 0
    message: str = ""


ACCEPTED = ExportResponse()


class SpanExporter(Protocol):
    """Sends export requests to one backend. Retrying, batching and counting are the queue's."""

    @property
    def name(self) -> str:
        """The id in the configuration: `type` or `type/name`."""

    @property
    def endpoints(self) -> Mapping[Signal, str]:
        """Where each signal that it accepts goes, for logs; without credentials."""

    async def start(self) -> None:
        """Open what is needed; raises `StartupError`. A backend that is down is no reason to."""

    async def export(self, request: bytes, count: int, signal: Signal = "traces") -> ExportResponse:
        """Send one serialised OTLP export request with `count` spans or log records; may run concurrently.

        Raises:
            RetryableExportError: it may be accepted later.
            ContentRefusedError: it will not be accepted as it is, but parts of it may be.
            PermanentExportError: neither it nor a part of it will ever be accepted.
        """

    async def shutdown(self, deadline: float) -> None:
        """Close by `deadline` (on the clock's monotonic time); safe before start and twice."""


class ResultExporter(Protocol):
    """Takes graded runs: for people, files, dashboards. It can neither delay nor stop a trace."""

    @property
    def name(self) -> str:
        """The id in the configuration: `type` or `type/name`."""

    async def start(self) -> None:
        """Open what is needed; raises `StartupError`."""

    def export_results(self, trace: GradedTrace, done: Callable[[], None] | None = None) -> None:
        """Take the runs of a trace; returns at once and never raises.

        `done` is called when they are written or dropped, but not if a shutdown leaves them behind: the
        caller, who gave `done`, still has them.
        """

    async def shutdown(self, deadline: float) -> None:
        """Write what is pending by `deadline`; safe before start and twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterContext:
    """What the service lends to its exporters. `console` is where `debug` prints.

    `limiter` is the budget of what waits; without the service's an exporter has one of its own.
    """

    clock: Clock
    metrics: Metrics
    console: TextIO
    limiter: MemoryLimiter = field(default_factory=lambda: MemoryLimiter(MemoryLimiterConfig().limit_bytes))


ConfigT = TypeVar("ConfigT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanExporterType(Generic[ConfigT]):
    """An exporter of spans or of scores, as configuration sees it.

    `config_model` derives from `SpanExporterConfig` or `ScoreExporterConfig`. An exporter of scores gets
    requests with a log record for each verdict.
    """

    type_name: str
    config_model: type[ConfigT]
    create: Callable[[str, ConfigT, ExporterContext], SpanExporter]
    kind: Literal["spans", "scores"] = "spans"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultExporterType(Generic[ConfigT]):
    """An exporter of results, as configuration sees it."""

    type_name: str
    config_model: type[ConfigT]
    create: Callable[[str, ConfigT, ExporterContext], ResultExporter]
    kind: Literal["results"] = "results"
