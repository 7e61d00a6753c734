"""Graded runs as JSON lines in a file (`results_file`), in the form that `replay` prints and reads."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from collector.clock import Clock, ends_within
from collector.config_fields import FilePath
from collector.errors import StartupError
from collector.exporters.exporter import ExporterContext, ResultExporterType
from collector.exporters.json_lines_file import JsonLinesFile
from collector.exporters.span_exporter_config import BackOff, RetryConfig
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import GradedTrace
from processors.annotation import format_run
from processors.model import GradedRun

_RUNS_PER_WRITE = 500

_Pending: TypeAlias = tuple[GradedRun, Callable[[], None] | None]
"""A run to be written, and what to call when all runs of its trace are."""

_logger = logging.getLogger(__name__)


class ResultsFileConfig(BaseModel):
    """`exporters.results_file`: one graded run a line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: FilePath
    """The file; lines are appended. The ending `.runs.jsonl` lets `replay` find it in a folder."""
    max_pending_runs: int = Field(default=10_000, ge=1)
    """Runs kept while the disk does not take them; beyond, the oldest are dropped and counted."""


class ResultsFileExporter:
    """Appends graded runs to a file, in order, off the event loop's thread."""

    def __init__(self, name: str, config: ResultsFileConfig, metrics: Metrics, clock: Clock) -> None:
        self.name = name
        self._path = config.path
        self._max_pending = config.max_pending_runs
        self._metrics = metrics
        self._clock = clock
        self._log = RateLimitedLogger(_logger, clock)
        self._file = JsonLinesFile(config.path)
        self._pending: deque[_Pending] = deque()
        self._writing: list[_Pending] = []
        self._arrived = asyncio.Event()
        self._is_closing = False
        self._thread: ThreadPoolExecutor | None = None
        self._writer: asyncio.Task[None] | None = None
        for reason in ("queue_full", "shutdown"):
            metrics.results_dropped.add(0, reason, name)

    async def start(self) -> None:
        """Open the file and start the writer."""
        try:
            self._file.open()
        except OSError as error:
            raise StartupError(
                f"exporters.{self.name}.path: {self._path} cannot be written: {error.strerror or error}"
            ) from error
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"export-{self.name}")
        self._writer = asyncio.create_task(self._write_pending(self._thread))

    def export_results(self, trace: GradedTrace, done: Callable[[], None] | None = None) -> None:
        """Queue the runs of a trace for writing; `done` goes with the last of them."""
        self._pending.extend((run, None) for run in trace.runs[:-1])
        self._pending.append((trace.runs[-1], done))
        excess = len(self._pending) - self._max_pending
        if excess > 0:
            for _ in range(excess):
                _, done = self._pending.popleft()
                if done is not None:
                    done()
            self._drop(excess, "queue_full")
        self._arrived.set()

    async def shutdown(self, deadline: float) -> None:
        """Write what is pending until `deadline`, then close the file."""
        self._is_closing = True
        self._arrived.set()
        writer, self._writer = self._writer, None
        if writer is not None:
            await ends_within(deadline - self._clock.monotonic(), writer, self._clock)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._file.close)
            thread.shutdown(wait=False)
        lost = len(self._pending) + len(self._writing)
        if lost:
            self._pending.clear()
            self._writing = []
            self._drop(lost, "shutdown")

    async def _write_pending(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        back_off = BackOff(RetryConfig(), Random())
        while True:
            while not self._pending:
                if self._is_closing:
                    return
                self._arrived.clear()
                await self._arrived.wait()
            count = min(len(self._pending), _RUNS_PER_WRITE)
            self._writing = [self._pending.popleft() for _ in range(count)]
            try:
                await loop.run_in_executor(thread, self._append, self._writing)
            except OSError as error:
                self._pending.extendleft(reversed(self._writing))
                self._writing = []
                self._log.warning(
                    "failing",
                    "Results cannot be written; they are kept and written later.",
                    exporter=self.name,
                    path=str(self._path),
                    error=error.strerror or str(error),
                    pending_runs=len(self._pending),
                )
                await self._clock.sleep(back_off.next_wait())
            else:
                written, self._writing = self._writing, []
                for _, done in written:
                    if done is not None:
                        done()
                back_off = BackOff(RetryConfig(), Random())

    def _append(self, pending: list[_Pending]) -> None:
        self._file.append(b"".join(format_run(run) + b"\n" for run, _ in pending))

    def _drop(self, count: int, reason: str) -> None:
        self._metrics.results_dropped.add(count, reason, self.name)
        self._log.warning(
            reason, "Results were dropped.", exporter=self.name, path=str(self._path), runs=count
        )


def _create(name: str, config: ResultsFileConfig, context: ExporterContext) -> ResultsFileExporter:
    return ResultsFileExporter(name, config, context.metrics, context.clock)


COMPONENT = ResultExporterType(type_name="results_file", config_model=ResultsFileConfig, create=_create)
