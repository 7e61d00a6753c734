"""Annotated spans as OTLP JSON lines in a file (`file`), as the Collector's file exporter writes them.

One ExportTraceServiceRequest a line; `tracegrade replay` reads them back. Log records go to a file of
their own.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from collector.config_fields import FilePath
from collector.errors import PermanentExportError, RetryableExportError
from collector.exporters.exporter import ACCEPTED, ExportResponse, SpanExporterType
from collector.exporters.json_lines_file import JsonLinesFile
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
        self._file = JsonLinesFile(config.path)
        self._logs_file = None if config.logs_path is None else JsonLinesFile(config.logs_path)
        self._thread: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Open the files."""
        self._file.open_for(f"exporters.{self.name}.path")
        if self._logs_file is not None:
            self._logs_file.open_for(f"exporters.{self.name}.logs_path")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"export-{self.name}")

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        """Append one line; see `SpanExporter.export`."""
        return await self._append_in_thread(self._file, request_to_json, request)

    async def export_logs(self, request: bytes, record_count: int) -> ExportResponse:
        """Append one line to the other file; see `LogExporter.export_logs`."""
        if self._logs_file is None:
            raise PermanentExportError("There is no file for log records.")
        return await self._append_in_thread(self._logs_file, logs_request_to_json, request)

    async def shutdown(self, deadline: float) -> None:
        """Close the files behind what is being written."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._file.close)
            if self._logs_file is not None:
                thread.submit(self._logs_file.close)
            thread.shutdown(wait=False)

    async def _append_in_thread(
        self, file: JsonLinesFile, to_json: Callable[[bytes], bytes], request: bytes
    ) -> ExportResponse:
        if self._thread is None:
            raise RetryableExportError("The exporter is not started.")
        await asyncio.get_running_loop().run_in_executor(self._thread, _append, file, to_json, request)
        return ACCEPTED


def _append(file: JsonLinesFile, to_json: Callable[[bytes], bytes], request: bytes) -> None:
    try:
        file.append(to_json(request) + b"\n")
    except OSError as error:
        raise RetryableExportError(error.strerror or str(error)) from error


COMPONENT = SpanExporterType(
    type_name="file", config_model=FileConfig, create=lambda name, config, _: FileExporter(name, config)
)
