"""One worker process as the service sees it: started, asked, ended.

The process gets an empty environment, no descriptor but its pipes, and `/` as its working directory.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from collector.errors import TracegradeError
from collector.workers.protocol import LENGTH, MAX_REPLY_BYTES


def worker_command(module: str) -> Sequence[str]:
    """What starts the worker that `module` is."""
    return sys.executable, "-I", "-X", "utf8", "-m", module


COMMAND = worker_command("collector.workers.worker")


_READ_AHEAD_BYTES = 1 << 20


class WorkerDied(TracegradeError):
    """The process ended, or said something that is no answer."""


class WorkerProcess:
    """A process that works for the service; to be ended with `end`, whatever happened before.

    None of the methods limits its own time. One that was cancelled leaves a process that is only good for
    being ended.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        transport: asyncio.SubprocessTransport,
        max_reply_bytes: int,
    ) -> None:
        self._process = process
        self._transport = transport
        self._max_reply_bytes = max_reply_bytes

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
            start_new_session=True,  # what a terminal sends to the service is not for it
        )
        return cls(asyncio.subprocess.Process(transport, protocol, loop), transport, max_reply_bytes)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    async def ask(self, message: bytes) -> bytes:
        """Send a message and return the answer to it.

        Raises:
            WorkerDied: there is none.
        """
        self.send(message)
        return await self.receive()

    def send(self, message: bytes) -> None:
        """Send a message; it waits in memory until the worker reads it."""
        questions = self._process.stdin
        if questions is not None:
            questions.write(LENGTH.pack(len(message)))
            questions.write(message)

    async def receive(self) -> bytes:
        """The next answer; raises `WorkerDied` if none comes."""
        answers = self._process.stdout
        if answers is None:
            raise WorkerDied("the worker has no pipes")
        try:
            (length,) = LENGTH.unpack(await answers.readexactly(LENGTH.size))
            if length > self._max_reply_bytes:
                raise WorkerDied(f"the answer has more than {self._max_reply_bytes} bytes")
            return await answers.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            raise WorkerDied("the worker process ended") from None

    async def wait(self) -> None:
        """Return when the process has ended, by itself or by others."""
        await self._process.wait()

    async def end(self) -> None:
        """Kill the process, with what it started, and wait for its end.

        What it still says is thrown away: a pipe that nobody reads would never tell that it has ended, and
        a process of its own making may hold the other side open.
        """
        for descriptor in (0, 1):
            pipe = self._transport.get_pipe_transport(descriptor)
            if pipe is not None:
                pipe.close()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
