"""What exporters of graded runs share that write them somewhere: a bounded queue, retries, the books."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from collector.clock import Clock, ends_within
from collector.errors import RetryableExportError
from collector.exporters.span_exporter_config import BackOff, RetryConfig
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import GradedTrace
from processors.model import GradedRun

_RUNS_PER_WRITE = 500

_Pending: TypeAlias = tuple[GradedRun, Callable[[], None] | None]
"""A run to be written, and what to call when all runs of its trace are."""

_logger = logging.getLogger(__name__)


class RunWriterConfig(BaseModel):
    """The keys that all of them share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_pending_runs: int = Field(default=10_000, ge=1)
    """Runs kept while they cannot be written; beyond, the oldest are dropped and counted."""


class RunWriter(ABC):
    """Writes graded runs in order, in the background; what is particular to the place is `write`.

    Args:
        name: The id in the configuration.
        endpoint: Where the runs go, for logs.
        config: How many runs may wait.
        metrics: Counts what is dropped.
        clock: What waits are measured on.
    """

    def __init__(
        self, name: str, endpoint: str, config: RunWriterConfig, metrics: Metrics, clock: Clock
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self._max_pending = config.max_pending_runs
        self._metrics = metrics
        self._clock = clock
        self._log = RateLimitedLogger(_logger, clock)
        self._pending: deque[_Pending] = deque()
        self._writing: list[_Pending] = []
        self._arrived = asyncio.Event()
        self._is_closing = False
        self._writer: asyncio.Task[None] | None = None
        for reason in ("queue_full", "rejected", "shutdown"):
            metrics.results_dropped.add(0, reason, name)

    @abstractmethod
    async def open(self) -> None:
        """Open what is needed; raises `StartupError`."""

    @abstractmethod
    async def write(self, runs: Sequence[GradedRun]) -> int:
        """Write `runs`; how many of them will never be taken.

        Raises:
            RetryableExportError: they are not known to be written; they come again.
        """

    @abstractmethod
    async def close(self, deadline: float) -> None:
        """Close what is open; safe before `open` and twice."""

    async def start(self) -> None:
        """Open the place and start the writer."""
        await self.open()
        self._writer = asyncio.create_task(self._write_pending())

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
        """Write what is pending until `deadline`, then close."""
        self._is_closing = True
        self._arrived.set()
        writer, self._writer = self._writer, None
        if writer is not None:
            await ends_within(deadline - self._clock.monotonic(), writer, self._clock)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        await self.close(deadline)
        lost = len(self._pending) + len(self._writing)
        if lost:
            self._pending.clear()
            self._writing = []
            self._drop(lost, "shutdown")

    async def _write_pending(self) -> None:
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
                refused = await self.write([run for run, _ in self._writing])
            except RetryableExportError as error:
                self._pending.extendleft(reversed(self._writing))
                self._writing = []
                self._log.warning(
                    "failing",
                    "Results cannot be written; they are kept and written later.",
                    exporter=self.name,
                    endpoint=self.endpoint,
                    error=str(error),
                    pending_runs=len(self._pending),
                )
                await self._clock.sleep(back_off.next_wait())
            else:
                written, self._writing = self._writing, []
                for _, done in written:
                    if done is not None:
                        done()
                if refused:
                    self._drop(refused, "rejected")
                back_off = BackOff(RetryConfig(), Random())

    def _drop(self, count: int, reason: str) -> None:
        self._metrics.results_dropped.add(count, reason, self.name)
        self._log.warning(
            reason, "Results were dropped.", exporter=self.name, endpoint=self.endpoint, runs=count
        )
