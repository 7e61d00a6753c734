"""Annotated spans as OTLP JSON lines in a file (`file`), as the Collector's file exporter writes them.

One ExportTraceServiceRequest a line; `tracegrade replay` reads them back.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from collector.errors import RetryableExportError, StartupError
from collector.exporters.exporter import ACCEPTED, ExporterContext, ExportResponse, SpanExporterType
from collector.exporters.json_lines_file import JsonLinesFile
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.otlp.json_codec import request_to_json


class FileConfig(SpanExporterConfig):
    """`exporters.file`: spans as OTLP JSON lines."""

    path: Path
    """The file; lines are appended."""


class FileExporter:
    """Appends requests to a file. A full disk is something to wait for, not a reason to lose spans."""

    def __init__(self, name: str, config: FileConfig) -> None:
        self.name = name
        self.endpoint = str(config.path)
        self._file = JsonLinesFile(config.path)
        self._thread: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Open the file."""
        try:
            self._file.open()
        except OSError as error:
            raise StartupError(
                f"exporters.{self.name}.path: {self.endpoint} cannot be written: {error.strerror or error}"
            ) from error
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"export-{self.name}")

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        """Append one line; see `SpanExporter.export`."""
        if self._thread is None:
            raise RetryableExportError("The exporter is not started.")
        await asyncio.get_running_loop().run_in_executor(self._thread, self._append, request)
        return ACCEPTED

    async def shutdown(self, deadline: float) -> None:
        """Close the file behind what is being written."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._file.close)
            thread.shutdown(wait=False)

    def _append(self, request: bytes) -> None:
        try:
            self._file.append(request_to_json(request) + b"\n")
        except OSError as error:
            raise RetryableExportError(error.strerror or str(error)) from error


def _create(name: str, config: FileConfig, context: ExporterContext) -> FileExporter:
    return FileExporter(name, config)


COMPONENT = SpanExporterType(type_name="file", config_model=FileConfig, create=_create)
