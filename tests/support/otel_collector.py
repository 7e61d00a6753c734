"""The OpenTelemetry Collector as a process, built from its Go modules by `make collector-install`."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
import yaml

from processors.model import JsonObject

PATIENCE_SECONDS = 60.0
_PROGRAM = Path(__file__).parents[2] / ".collector" / "otelcol"
_NOT_BUILT = "the OpenTelemetry Collector is not built (make collector-install)"
REQUIRES_COLLECTOR = pytest.mark.skipif(not _PROGRAM.exists(), reason=_NOT_BUILT)
"""For tests that start something else first, which would be left running."""


class OtelCollector:
    """A Collector with the configuration `config`, ready between `async with` and its end.

    Tests skip, by name, where it is not built.

    Args:
        name: Of its files in `folder`.
        config: Its configuration; it must have an OTLP receiver at `endpoint`.
        endpoint: Host and port by which it is known to be ready.
        within: A command that runs it.
        environment: Variables beside those of the test.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        config: JsonObject,
        endpoint: str,
        *,
        within: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._config_path = folder / f"{name}.yaml"
        self._config_path.write_text(yaml.safe_dump(config))
        self._log_path = folder / f"{name}.log"
        self._within = within
        self._environment = {**os.environ, **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        if not _PROGRAM.exists():
            pytest.skip(_NOT_BUILT)
        with self._log_path.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._within, str(_PROGRAM), "--config", str(self._config_path)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        host, port = self.endpoint.rsplit(":", 1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                assert self._process.returncode is None, self.log()
                try:
                    _, writer = await asyncio.open_connection(host, int(port))
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    writer.close()
                    return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    def log(self) -> str:
        """What it has written."""
        return self._log_path.read_text(errors="replace")
