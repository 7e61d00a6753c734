"""Graded runs as JSON lines in a file (`results_file`), in the form that `replay` prints and reads."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from collector.config_fields import FilePath
from collector.errors import RetryableExportError
from collector.exporters.exporter import ExporterContext, ResultExporterType
from collector.exporters.json_lines_file import JsonLinesFile
from collector.exporters.run_writer import RunLine, RunWriter, RunWriterConfig


class ResultsFileConfig(RunWriterConfig):
    """`exporters.results_file`: one graded run a line."""

    path: FilePath
    """The file; lines are appended. The ending `.runs.jsonl` lets `replay` find it in a folder."""


class ResultsFileExporter(RunWriter):
    """Appends graded runs to a file, in order, off the event loop's thread."""

    def __init__(self, name: str, config: ResultsFileConfig, context: ExporterContext) -> None:
        super().__init__(name, str(config.path), config, context)
        self._file = JsonLinesFile(config.path)
        self._thread: ThreadPoolExecutor | None = None

    async def open(self) -> None:
        """See `RunWriter`."""
        self._file.open_for(f"exporters.{self.name}.path")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"export-{self.name}")

    async def write(self, lines: Sequence[RunLine]) -> int:
        """See `RunWriter`."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._append, lines)
        except OSError as error:
            raise RetryableExportError(error.strerror or str(error)) from error
        return 0

    async def close(self, deadline: float) -> None:
        """See `RunWriter`."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._file.close)
            thread.shutdown(wait=False)

    def _append(self, lines: Sequence[RunLine]) -> None:
        self._file.append(b"".join([line.text + b"\n" for line in lines]))


COMPONENT = ResultExporterType(
    type_name="results_file", config_model=ResultsFileConfig, create=ResultsFileExporter
)
