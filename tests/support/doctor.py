"""`tracegrade doctor` on a configuration file, and the service that runs with it, both in this process."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from collector.clock import SystemClock
from collector.configuration import load_configuration
from collector.service import Service
from collector.tools.doctor import Hop, Sender, State, examine
from collector.tools.prometheus_api import PrometheusApi
from processors.model import JsonObject
from tests.support.backend_server import free_port
from tests.support.service_process import deep_merge


class ShiftedClock(SystemClock):
    """The machine's clock, if it were set wrong."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead_nano = int(ahead_seconds * 1e9)

    def unix_nano(self) -> int:
        return super().unix_nano() + self._ahead_nano


class SetUp:
    """A configuration file in `folder` with ports that are known before the service runs.

    Without `listeners` there is one for gRPC; with `settings` the rest is as they say.
    """

    def __init__(self, folder: Path, settings: JsonObject | None = None, **listeners: JsonObject) -> None:
        self.ports = {name: free_port() for name in listeners or {"grpc": {}}}
        base: JsonObject = {
            "receivers": {
                "otlp": {
                    "protocols": {
                        name: {"endpoint": f"127.0.0.1:{port}", **listeners.get(name, {})}
                        for name, port in self.ports.items()
                    }
                }
            },
            "processors": {"group_by_trace": {"root_grace": "100ms", "max_lateness": "1000000h"}},
            "exporters": {"results_file": {"path": "verdicts.runs.jsonl"}},
            "service": {
                "telemetry": {"endpoint": f"127.0.0.1:{free_port()}", "self_check": {"enabled": False}},
                "shutdown_timeout": "2s",
            },
        }
        self.path = folder / "tracegrade.yaml"
        self.path.write_text(yaml.safe_dump(deep_merge(base, settings or {})))
        self.config = load_configuration(self.path, {})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Service]:
        """The service with this configuration."""
        service = Service(self.config, environment={}, console=io.StringIO())
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(service.run(ready.set_result))
        await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
        try:
            if ready.done():
                yield service
        finally:
            service.request_stop()
            await serving

    async def diagnose(
        self, sender: Sender | None = None, *, prometheus: str | None = None, ahead_seconds: float = 0.0
    ) -> dict[str, Hop]:
        """The hops by name."""
        hops = await examine(
            self.config,
            clock=ShiftedClock(ahead_seconds),
            sender=sender or Sender(),
            prometheus=None if prometheus is None else PrometheusApi(prometheus),
        )
        found = {hop.where: hop for hop in hops}
        assert len(found) == len(hops)
        return found


def broken(hops: dict[str, Hop]) -> list[str]:
    """Those that do not work, without those behind them."""
    return [where for where, hop in hops.items() if hop.state is State.BROKEN]
