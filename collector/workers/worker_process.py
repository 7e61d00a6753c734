"""One worker process as the service sees it: started, asked, ended.

The process gets an empty environment, no descriptor but its pipes, and `/` as its working directory.
"""

import asyncio
import contextlib
import os
import signal
import sys
from typing import Any

import orjson

from collector.errors import TracegradeError
from collector.workers.protocol import LENGTH, MAX_REPLY_BYTES, frame

COMMAND = (sys.executable, "-I", "-X", "utf8", "-m", "collector.workers.worker")


class WorkerDied(TracegradeError):
    """The process ended, or said something that is no answer."""


class WorkerProcess:
    """A process that runs custom evaluators; to be ended with `end`, whatever happened before.

    None of the methods limits its own time. One that was cancelled leaves a process that is only good for
    being ended.
    """

    def __init__(self, process: asyncio.subprocess.Process, transport: asyncio.SubprocessTransport) -> None:
        self._process = process
        self._transport = transport

    @classmethod
    async def start(cls) -> "WorkerProcess":
        """Start a process; raises OSError where there can be none."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=MAX_REPLY_BYTES, loop=loop),
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            close_fds=True,
            start_new_session=True,  # what a terminal sends to the service is not for it
        )
        return cls(asyncio.subprocess.Process(transport, protocol, loop), transport)

    async def ask(self, message: bytes) -> dict[str, Any]:
        """Send a message and return the answer to it.

        Raises:
            WorkerDied: there is none.
        """
        questions, answers = self._process.stdin, self._process.stdout
        if questions is None or answers is None:
            raise WorkerDied("the worker has no pipes")
        try:
            questions.write(frame(message))
            await questions.drain()
            (length,) = LENGTH.unpack(await answers.readexactly(LENGTH.size))
            if length > MAX_REPLY_BYTES:
                raise WorkerDied(f"the answer has more than {MAX_REPLY_BYTES} bytes")
            answer = await answers.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            raise WorkerDied("the worker process ended") from None
        try:
            content = orjson.loads(answer)
        except orjson.JSONDecodeError:
            content = {"score": None}
        return content if isinstance(content, dict) else {"score": None}

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
