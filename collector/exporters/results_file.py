"""Graded runs as JSON lines in a file (`results_file`), in the form that `replay` prints and reads."""

from collections.abc import Sequence

from collector.config_fields import FilePath
from collector.exporters.exporter import ExporterContext, ResultExporterType
from collector.exporters.json_lines_file import JsonLinesWriter
from collector.exporters.run_writer import RunWriter, RunWriterConfig
from processors.spans import RawSpan


class ResultsFileConfig(RunWriterConfig):
    """`exporters.results_file`: one graded run a line."""

    path: FilePath
    """The file; lines are appended. The ending `.runs.jsonl` lets `replay` find it in a folder."""


class ResultsFileExporter(RunWriter):
    """Appends graded runs to a file, in order, off the event loop's thread."""

    def __init__(self, name: str, config: ResultsFileConfig, context: ExporterContext) -> None:
        super().__init__(name, str(config.path), config, context)
        self._file = JsonLinesWriter(config.path, name, f"exporters.{name}.path")

    async def open(self) -> None:
        """See `RunWriter`."""
        self._file.start()

    async def write(self, lines: Sequence[RawSpan]) -> int:
        """See `RunWriter`."""
        await self._file.append(lambda: b"".join([text + b"\n" for _, text, _ in lines]))
        return 0

    async def close(self, deadline: float) -> None:
        """See `RunWriter`."""
        self._file.close()


COMPONENT = ResultExporterType(
    type_name="results_file", config_model=ResultsFileConfig, create=ResultsFileExporter
)
