"""`tracegrade run` as a process of its own, as a user starts it."""

import asyncio
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import orjson
import yaml

from processors.model import JsonObject, JsonValue
from tests.support.service_in_loop import read_samples

PATIENCE_SECONDS = 60.0
_READY = re.compile(r"^tracegrade ready: (.*)$")


def deep_merge(base: JsonValue, over: JsonValue) -> JsonValue:
    """`base` with the keys of `over` put in, mapping by mapping."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: deep_merge(base.get(key), value) for key, value in over.items()}}
    return over


class ServiceProcess:
    """The service on free ports, with its verdicts and spans in files under `folder`.

    `settings` are merged into a configuration with short graces and without self-checks, whose spans would be
    counted; `criteria` is the text of a criteria file. `within` is a command that runs the service,
    `arguments` are more of its own.
    """

    def __init__(
        self,
        folder: Path,
        settings: JsonObject | None = None,
        criteria: str | None = None,
        *,
        within: Sequence[str] = (),
        arguments: Sequence[str] = (),
    ) -> None:
        self._within = within
        self._arguments = arguments
        self.folder = folder
        self.results_path = folder / "verdicts.runs.jsonl"
        self.spans_path = folder / "spans.jsonl"
        self.criteria_path = folder / "criteria.yaml"
        self.config_path = folder / "tracegrade.yaml"
        config: JsonValue = {
            "receivers": {
                "otlp": {
                    "protocols": {"grpc": {"endpoint": "127.0.0.1:0"}, "http": {"endpoint": "127.0.0.1:0"}}
                }
            },
            "processors": {
                "group_by_trace": {
                    "root_grace": "500ms",
                    "multi_service_grace": "500ms",
                    "incomplete_grace": "1s",
                    "idle_timeout": "2s",
                }
            },
            "exporters": {
                "results_file": {"path": "verdicts.runs.jsonl"},
                "file": {"path": "spans.jsonl", "sending_queue": {"batch": {"flush_timeout": "50ms"}}},
            },
            "service": {
                "telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"enabled": False}},
                "shutdown_timeout": "10s",
            },
        }
        if criteria is not None:
            self.criteria_path.write_text(criteria)
            config = deep_merge(config, {"processors": {"evaluation": {"criteria": ["criteria.yaml"]}}})
        self.config_path.write_text(yaml.safe_dump(deep_merge(config, settings or {})))
        self.log: list[str] = []
        self.endpoints: Mapping[str, str] = {}
        self._ready = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.wait()

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def start(self) -> None:
        """Start it, and return when it is ready."""
        await self.launch()
        assert self._reader is not None
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait(
            (ready, self._reader), timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        ready.cancel()
        assert self.endpoints, "".join(self.log)

    async def launch(self) -> None:
        """Start it, and do not wait for anything."""
        self._process = await asyncio.create_subprocess_exec(
            *(*self._within, sys.executable, "-m", "collector.cli", "run", "--config", str(self.config_path)),
            *self._arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self._reader = asyncio.create_task(self._read_log())

    async def stop(self) -> int:
        """Ask it to stop; its exit code."""
        self.signal(signal.SIGTERM)
        return await self.wait()

    async def wait(self) -> int:
        code = await asyncio.wait_for(self.process.wait(), PATIENCE_SECONDS)
        if self._reader is not None:
            await self._reader
        return code

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def results(self) -> list[JsonObject]:
        """The graded runs written so far."""
        return _json_lines(self.results_path)

    def exported_requests(self) -> list[JsonObject]:
        """The requests of the `file` exporter written so far."""
        return _json_lines(self.spans_path)

    async def metrics(self) -> dict[str, float]:
        """All samples of a scrape; keys as `name{label="value",...}` with sorted labels."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{self.endpoints['telemetry']}/metrics") as response,
        ):
            return read_samples(await response.text())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition` holds; fails with the log if it does not in time."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not condition():
                    assert self.process.returncode is None, "".join(self.log)
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError("".join(self.log[-30:])) from None

    async def _read_log(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        while line := (await stream.readline()).decode():
            self.log.append(line)
            ready = _READY.match(line)
            if ready:
                self.endpoints = dict(pair.split("=", 1) for pair in ready[1].split())
                self._ready.set()


def _json_lines(path: Path) -> list[JsonObject]:
    if not path.exists():
        return []
    return [
        orjson.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
    ]
