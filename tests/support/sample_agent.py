"""The sample agent that ships for a first look, as a process of its own, turned bad and good on demand."""

import asyncio
import os
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

PROGRAM = Path(__file__).parents[2] / "deploy" / "compose" / "sample_agent" / "sample_agent.py"
PATIENCE_SECONDS = 90.0
_READY = re.compile(r"^sample agent ready: control=(\S+)$", re.MULTILINE)


class SampleAgent:
    """Exports its traces to the OTLP/gRPC address `endpoint` between `async with` and its end."""

    NAME = "weather_agent"

    def __init__(self, endpoint: str, *, runs_per_second: float = 10.0, version: str = "1.0.0") -> None:
        self._endpoint = endpoint
        self._arguments = ("--runs-per-second", str(runs_per_second), "--version", version)
        self.control_url = ""
        self._log: list[str] = []
        self._ready = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(PROGRAM), "--control", "127.0.0.1:0", *self._arguments),
            env={**kept, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{self._endpoint}"},
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self._reader = asyncio.create_task(self._read_log(self._process))
        await asyncio.wait_for(self._ready.wait(), PATIENCE_SECONDS)
        assert self.control_url, "".join(self._log)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        await self._ended()

    async def stop(self) -> int:
        """Ask it to stop; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return await self._ended()

    async def turn(self, path: str) -> dict[str, float]:
        """Call its control port with POST, for example at `/bad?share=0.4`; the state it answers with."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.control_url}{path}") as response,
        ):
            assert response.status == 200, await response.text()
            state: dict[str, float] = await response.json()
        return state

    async def _ended(self) -> int:
        assert self._process is not None
        assert self._reader is not None
        code = await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)
        await self._reader
        return code

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := (await process.stderr.readline()).decode(errors="replace"):
            self._log.append(line)
            if found := _READY.search(line):
                self.control_url = f"http://{found[1]}"
                self._ready.set()
        self._ready.set()  # ended: whoever waits looks at the log
