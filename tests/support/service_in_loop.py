"""The real service in this process, on a clock that moves only when a test says so."""

import asyncio
import io
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from collector.clock import ManualClock
from collector.configuration import parse_configuration
from collector.service import Service

_PATIENCE_SECONDS = 60.0


class ServiceInLoop:
    """Runs the service that `configuration` describes (ports 0) in the running loop."""

    def __init__(self, configuration: str, unix_nano: int) -> None:
        self.clock = ManualClock(unix_nano=unix_nano)
        self.console = io.StringIO()
        """What `debug` prints."""
        self.service = Service(
            parse_configuration(configuration, "test", {}),
            environment={},
            console=self.console,
            clock=self.clock,
        )
        self.endpoints: dict[str, str] = {}
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[str] = loop.create_future()
        self._serving = loop.create_task(self.service.run(ready.set_result))
        await asyncio.wait((ready, self._serving), return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()
        self.endpoints = dict(pair.split("=") for pair in ready.result().split())

    async def stop(self) -> None:
        """Ask it to stop, let time pass until it has, and raise what it died of."""
        self.service.request_stop()
        if self._serving is not None:
            while not self._serving.done():
                self.clock.advance(0.1)
                await asyncio.sleep(0.001)
            self._serving.result()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass as in a process that runs."""
        while seconds > 0:
            self.clock.advance(min(seconds, 0.5))
            seconds -= 0.5
            for _ in range(3):
                await asyncio.sleep(0)

    async def until(
        self, holds: Callable[[dict[str, float]], bool], *, step: float = 0.1
    ) -> dict[str, float]:
        """Let time pass, `step` seconds at once, until the samples of a scrape are so; those samples.

        Sockets, files and threads take time that no test clock moves, as much as the machine is busy: what
        depends on them is waited for here, never counted in `pass_time`.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not holds(samples := await self.metrics()):
            assert time.monotonic() < deadline, samples
            for _ in range(5):
                self.clock.advance(step)
                await asyncio.sleep(0.005)
        return samples

    async def metrics(self) -> dict[str, float]:
        """All samples of a scrape; keys as `name{label="value",...}` with sorted labels."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{self.endpoints['telemetry']}/metrics") as response,
        ):
            return read_samples(await response.text())


def read_samples(exposition: str) -> dict[str, float]:
    """The samples of a text exposition by `name{label="value",...}`, labels sorted."""
    samples: dict[str, float] = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            labels = ",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()))
            samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return samples
