"""Worker processes as the service sees them: started, sent messages, terminated, replaced.

A process gets an empty environment, no descriptor but its pipes, and `/` as its working directory.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from collector.clock import Clock, ends_within
from collector.errors import TracegradeError
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.workers.protocol import LENGTH, MAX_REPLY_BYTES


def worker_command(module: str) -> Sequence[str]:
    """What starts the worker that `module` is."""
    return sys.executable, "-I", "-X", "utf8", "-m", module


COMMAND = worker_command("collector.workers.worker")

_READ_AHEAD_BYTES = 1 << 20
_MAX_BACK_OFF_SECONDS = 60.0
_ResultT = TypeVar("_ResultT")


class WorkerDied(TracegradeError):
    """The process ended, or sent something that is not an answer."""


@dataclass(eq=False)
class WorkerProcess:
    """A worker process, to be ended with `end` whatever happened before.

    No method limits its own time. After one was cancelled, `end` is the only thing left to do.
    """

    process: asyncio.subprocess.Process
    transport: asyncio.SubprocessTransport
    max_reply_bytes: int

    @classmethod
    async def start(
        cls, command: Sequence[str] = COMMAND, max_reply_bytes: int = MAX_REPLY_BYTES
    ) -> "WorkerProcess":
        """Start a process; raises OSError where there can be none."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=_READ_AHEAD_BYTES, loop=loop),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            close_fds=True,
            start_new_session=True,  # signals from a terminal to the service are not for it
        )
        return cls(asyncio.subprocess.Process(transport, protocol, loop), transport, max_reply_bytes)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    async def request(self, message: bytes) -> bytes:
        """Send a message and return the answer to it; raises `WorkerDied`."""
        self.send(message)
        return await self.receive()

    def send(self, message: bytes) -> None:
        """Send a message; it waits in memory until the worker reads it.

        Raises `WorkerDied` if the process is known to have ended; another end is noticed by `receive`.
        """
        questions = self.process.stdin
        if questions is None or questions.is_closing():  # uvloop would raise RuntimeError on writing
            raise WorkerDied("the worker process ended")
        questions.writelines((LENGTH.pack(len(message)), message))

    async def receive(self) -> bytes:
        """The next answer; raises `WorkerDied` if none comes."""
        answers = self.process.stdout
        if answers is None:
            raise WorkerDied("the worker has no pipes")
        try:
            (length,) = LENGTH.unpack(await answers.readexactly(LENGTH.size))
            if length > self.max_reply_bytes:
                raise WorkerDied(f"the answer has more than {self.max_reply_bytes} bytes")
            return await answers.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            raise WorkerDied("the worker process ended") from None

    async def wait(self) -> None:
        """Return when the process has ended, for whatever reason."""
        await self.process.wait()

    async def end(self) -> None:
        """Kill the process, with what it started, and wait for its end.

        Its remaining output is discarded: the end of an unread pipe is never noticed, and a child of the
        process may hold the other side open.
        """
        for descriptor in (0, 1):
            pipe = self.transport.get_pipe_transport(descriptor)
            if pipe is not None:
                pipe.close()
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()


class WorkerLanes:
    """Keeps `size` processes alive and works with each; subclasses define what is `ClassVar` here.

    `order` is the first message to each process, which it answers when it is ready.
    """

    command: ClassVar[Sequence[str]]
    load_seconds: ClassVar[float]
    """How long a process may take to be ready."""
    max_reply_bytes: ClassVar[int]
    """A longer answer is not read."""
    failures: ClassVar[Sequence[str]]
    """For which reasons work with a process fails, as they are counted."""

    def __init__(self, size: int, order: bytes, metrics: Metrics, clock: Clock) -> None:
        self._size = size
        self._order = order
        self._metrics = metrics
        self._clock = clock
        self._log = RateLimitedLogger(logging.getLogger(type(self).__module__), clock)
        self._lanes: list[asyncio.Task[None]] = []
        self._unsettled: set[asyncio.Future[Any]] = set()
        self._is_closed = False
        metrics.worker_failures.start("start", *self.failures)

    def start(self, tasks: TaskOwner) -> None:
        """Start the workers; work waits until they are ready."""
        self._lanes = [
            tasks.create_task(self._serve(), name=f"worker {number}") for number in range(self._size)
        ]

    def close(self) -> None:
        """Take on nothing more: all that is unsettled ends at once, as `_end_early` has it."""
        self._is_closed = True
        for future in self._unsettled:
            if not future.done():
                self._end_early(future)

    async def shutdown(self) -> None:
        """Close, and end the workers; safe at any time."""
        self.close()
        for lane in self._lanes:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)

    def _end_early(self, future: asyncio.Future[Any]) -> None:
        """Settle what no worker has settled before this was closed."""
        raise NotImplementedError

    async def _work_with(self, worker: WorkerProcess) -> None:
        """Work with a ready worker for as long as it is usable."""
        raise NotImplementedError

    async def _serve(self) -> None:
        """Keep one worker alive and work with it."""
        failures = 0
        while True:
            worker = None
            try:
                worker = await WorkerProcess.start(self.command, self.max_reply_bytes)
                await within(self.load_seconds, worker.request(self._order), self._clock)
                failures = 0
                await self._work_with(worker)
            except (OSError, WorkerDied):  # a TimeoutError is an OSError
                failures += 1
                self._metrics.worker_failures.add(1, "start")
                self._log.warning("start", "A worker process failed to start and will be retried.")
            finally:
                if worker is not None:
                    await asyncio.shield(worker.end())
            if failures:
                await self._clock.sleep(back_off(failures))


async def within(seconds: float, work: Awaitable[_ResultT], clock: Clock) -> _ResultT:
    """The result of `work`, which is cancelled after `seconds`; raises TimeoutError then."""
    working = asyncio.ensure_future(work)
    try:
        if not await ends_within(seconds, working, clock):
            raise TimeoutError
        return working.result()
    finally:
        working.cancel()


async def unless_ended(work: Awaitable[_ResultT], ended: asyncio.Future[None]) -> _ResultT:
    """The result of `work`, which is cancelled if a process has `ended` before; raises `WorkerDied` then."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait((working, ended), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise WorkerDied("the worker process ended")
        return working.result()
    finally:
        working.cancel()


def back_off(failures: int) -> float:
    """Seconds to wait after that many failures in a row, the first included: 1, 2, 4, to 60."""
    return min(_MAX_BACK_OFF_SECONDS, 2.0 ** min(failures - 1, 10))
