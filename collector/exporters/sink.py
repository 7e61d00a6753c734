"""The end of a sending queue: one signal of an exporter."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from collector.exporters.exporter import ExportResponse, LogExporter, SpanExporter
from collector.exporters.request import ExportRequest


@dataclass(frozen=True, slots=True)
class Sink:
    """Where the requests of a queue go. `send` is called and raises as `SpanExporter.export`."""

    name: str
    endpoint: str
    send: Callable[[ExportRequest], Awaitable[ExportResponse]]

    @property
    def where(self) -> dict[str, str]:
        """The fields that say in logs where requests go."""
        return {"exporter": self.name, "endpoint": self.endpoint}


def span_sink(exporter: SpanExporter) -> Sink:
    """The spans of an exporter, or its scores."""
    return Sink(
        exporter.name,
        exporter.endpoint,
        lambda request: exporter.export(request.encode(), request.span_count),
    )


def log_sink(exporter: SpanExporter) -> Sink:
    """The log records of an exporter; raises TypeError if it takes none."""
    if not isinstance(exporter, LogExporter):
        raise TypeError(f"{exporter.name} takes no log records")
    return Sink(
        exporter.name,
        exporter.logs_endpoint,
        lambda request: exporter.export_logs(request.encode(), request.span_count),
    )
