"""Annotated spans as OTLP JSON lines in a file (`file`), as the Collector's file exporter writes them.

One ExportTraceServiceRequest a line; `tracegrade replay` reads them back. Log records go to a file of
their own.
"""

from collector.config_fields import FilePath
from collector.errors import PermanentExportError
from collector.exporters.exporter import ACCEPTED, ExportResponse, SpanExporterType
from collector.exporters.json_lines_file import JsonLinesWriter
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.otlp import logs_request_to_json, request_to_json
from collector.trace import Signal


class FileConfig(SpanExporterConfig):
    """`exporters.file`: spans as OTLP JSON lines."""

    path: FilePath
    """The file; lines are appended."""
    logs_path: FilePath | None = None
    """A file for log records, those received and verdicts if `results.emit` has `log`: one
    ExportLogsServiceRequest a line."""

    @property
    def accepts(self) -> tuple[Signal, ...]:
        """What goes to the exporter."""
        return ("traces",) if self.logs_path is None else ("traces", "logs")


class FileExporter:
    """Appends requests to a file. A full disk is something to wait for, not a reason to lose spans."""

    def __init__(self, name: str, config: FileConfig) -> None:
        self.name = name
        self.endpoints: dict[Signal, str] = {"traces": str(config.path)}
        self._files = {"traces": JsonLinesWriter(config.path, name, f"exporters.{name}.path")}
        if config.logs_path is not None:
            self.endpoints["logs"] = str(config.logs_path)
            self._files["logs"] = JsonLinesWriter(config.logs_path, name, f"exporters.{name}.logs_path")

    async def start(self) -> None:
        """Open the files."""
        for file in self._files.values():
            file.start()

    async def export(self, request: bytes, count: int, signal: Signal = "traces") -> ExportResponse:
        """Append one line; see `SpanExporter.export`."""
        if signal not in self._files:
            raise PermanentExportError(f"There is no file for {signal}.")
        to_json = request_to_json if signal == "traces" else logs_request_to_json
        await self._files[signal].append(lambda: to_json(request) + b"\n")
        return ACCEPTED

    async def shutdown(self, deadline: float) -> None:
        """Close the files behind what is being written."""
        for file in self._files.values():
            file.close()


COMPONENT = SpanExporterType(
    type_name="file", config_model=FileConfig, create=lambda name, config, _: FileExporter(name, config)
)
