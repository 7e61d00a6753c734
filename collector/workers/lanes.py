"""Worker processes that are kept alive: started, given their order, replaced when they are of no more use."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from collector.clock import Clock, ends_within
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.workers.suspension import back_off
from collector.workers.worker_process import WorkerDied, WorkerProcess

_ResultT = TypeVar("_ResultT")


class WorkerLanes:
    """Keeps `size` processes alive and works with each; what they do is said by `_work_with`.

    Args:
        command: Starts a worker.
        size: How many there are.
        order: The first message to each; it answers when it is ready.
        load_seconds: How long that may take.
        max_reply_bytes: A longer answer is not read.
        metrics: Counts workers that did not start.
        clock: Time limits.
        log: Where failures are told.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        size: int,
        order: bytes,
        load_seconds: float,
        max_reply_bytes: int,
        metrics: Metrics,
        clock: Clock,
        log: RateLimitedLogger,
    ) -> None:
        self._command = command
        self._size = size
        self._order = order
        self._load_seconds = load_seconds
        self._max_reply_bytes = max_reply_bytes
        self._metrics = metrics
        self._clock = clock
        self._log = log
        self._lanes: list[asyncio.Task[None]] = []
        metrics.worker_failures.add(0, "start")

    def start(self, tasks: TaskOwner) -> None:
        """Start the workers; what they are to do waits until they are ready."""
        self._lanes = [
            tasks.create_task(self._serve(), name=f"worker {number}") for number in range(self._size)
        ]

    async def _end_workers(self) -> None:
        """End the workers; safe at any time."""
        for lane in self._lanes:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)

    async def _work_with(self, worker: WorkerProcess) -> None:
        """Work with one that is ready until it is of no more use."""
        raise NotImplementedError

    async def _serve(self) -> None:
        """Keep one worker alive and work with it."""
        failures = 0
        while True:
            worker = None
            try:
                worker = await WorkerProcess.start(self._command, self._max_reply_bytes)
                await within(self._load_seconds, worker.ask(self._order), self._clock)
                failures = 0
                await self._work_with(worker)
            except (OSError, WorkerDied):  # a TimeoutError is an OSError
                failures += 1
                self._metrics.worker_failures.add(1, "start")
                self._log.warning("start", "A worker process did not start; it is tried again.")
            finally:
                if worker is not None:
                    await asyncio.shield(worker.end())
            if failures:
                await self._clock.sleep(back_off(failures))


async def within(seconds: float, work: Coroutine[object, object, _ResultT], clock: Clock) -> _ResultT:
    """What `work` returns; it is cancelled and TimeoutError raised after `seconds`."""
    working = asyncio.ensure_future(work)
    try:
        if not await ends_within(seconds, working, clock):
            raise TimeoutError
        return working.result()
    finally:
        working.cancel()
