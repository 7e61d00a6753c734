"""The end of a sending queue: one signal of an exporter."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from collector.exporters.exporter import ExportResponse, SpanExporter
from collector.exporters.request import ExportRequest
from collector.trace import Signal


@dataclass(frozen=True, slots=True)
class Sink:
    """Where the requests of a queue go. `send` is called and raises as `SpanExporter.export`."""

    name: str
    endpoint: str
    send: Callable[[ExportRequest], Awaitable[ExportResponse]]

    @property
    def where(self) -> dict[str, str]:
        """The fields of a log record that identify the sink."""
        return {"exporter": self.name, "endpoint": self.endpoint}


def exporter_sink(exporter: SpanExporter, signal: Signal = "traces") -> Sink:
    """One signal of an exporter; raises TypeError if it does not accept that."""
    if signal not in exporter.endpoints:
        raise TypeError(f"{exporter.name} accepts no {signal}")

    async def send(request: ExportRequest) -> ExportResponse:
        return await exporter.export(request.encode(), request.span_count, signal)

    return Sink(exporter.name, exporter.endpoints[signal], send)
