"""A program that listens on a free port of its own choice and says in its log which one."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

PATIENCE_SECONDS = 90.0
_LISTENING = re.compile(r'msg="Listening on" address=(\S+)')


class ListeningProcess:
    """One of Prometheus' programs as a child process, ready between `async with` and its end.

    The log is kept in `log` and shown when a wait is in vain.
    """

    def __init__(self, program: str, arguments: Sequence[str], folder: Path) -> None:
        self._command = (program, *arguments)
        self._folder = folder
        self.log: list[str] = []
        self.address = ""
        """`host:port`, known once it is ready."""
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()
        self._session: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None, "not started"
        return self._session

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if error is not None:
            print(f"--- {self._command[0]}, last lines of its log ---\n{self.log_tail()}")

    async def start(self) -> None:
        """Return when it answers; fails with its log if it does not in time."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self._reader = asyncio.create_task(self._read_log(self._process))
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._listening.wait()
                while not await self._is_ready():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{self._command[0]} is not ready:\n{self.log_tail()}") from None

    async def stop(self) -> None:
        """End it; does nothing where it has ended."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        if self._reader is not None:
            await self._reader

    def log_tail(self) -> str:
        return "".join(self.log[-40:])

    async def _is_ready(self) -> bool:
        self.check_alive()
        try:
            async with self.session.get(f"{self.url}/-/ready") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    def check_alive(self) -> None:
        ended = self._process is None or self._process.returncode is not None
        assert not ended, f"{self._command[0]} has ended:\n{self.log_tail()}"

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := (await process.stderr.readline()).decode(errors="replace"):
            self.log.append(line)
            if found := _LISTENING.search(line):
                self.address = found[1]
                self._listening.set()
        self._listening.set()  # ended: whoever waits looks at the log
