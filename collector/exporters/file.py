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


class FileConfig(SpanExporterConfig):
    """`exporters.file`: spans as OTLP JSON lines."""

    path: FilePath
    """The file; lines are appended."""
    logs_path: FilePath | None = None
    """A file for log records, if `results.emit` makes any: one ExportLogsServiceRequest a line."""

    @property
    def takes_log_records(self) -> bool:
        """Whether log records go there."""
        return self.logs_path is not None


class FileExporter:
    """Appends requests to a file. A full disk is something to wait for, not a reason to lose spans."""

    def __init__(self, name: str, config: FileConfig) -> None:
        self.name = name
        self.endpoint = str(config.path)
        self.logs_endpoint = str(config.logs_path or "")
        self._file = JsonLinesWriter(config.path, name, f"exporters.{name}.path")
        self._logs_file = None
        if config.logs_path is not None:
            self._logs_file = JsonLinesWriter(config.logs_path, name, f"exporters.{name}.logs_path")

    async def start(self) -> None:
        """Open the files."""
        self._file.start()
        if self._logs_file is not None:
            self._logs_file.start()

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        """Append one line; see `SpanExporter.export`."""
        await self._file.append(lambda: request_to_json(request) + b"\n")
        return ACCEPTED

    async def export_logs(self, request: bytes, record_count: int) -> ExportResponse:
        """Append one line to the other file; see `LogExporter.export_logs`."""
        if self._logs_file is None:
            raise PermanentExportError("There is no file for log records.")
        await self._logs_file.append(lambda: logs_request_to_json(request) + b"\n")
        return ACCEPTED

    async def shutdown(self, deadline: float) -> None:
        """Close the files behind what is being written."""
        self._file.close()
        if self._logs_file is not None:
            self._logs_file.close()


COMPONENT = SpanExporterType(
    type_name="file", config_model=FileConfig, create=lambda name, config, _: FileExporter(name, config)
)
