"""A server on 127.0.0.1 that takes JSON and answers as a test tells it."""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from types import TracebackType
from typing import Self

import orjson
from aiohttp import web

from collector.clock import ManualClock
from collector.exporters import ExporterContext, exporter_types
from collector.telemetry import Metrics
from processors.model import JsonObject


@dataclass(frozen=True)
class Call:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: JsonObject


class ScoreBackend:
    """Keeps every call; `answer` says with which status and body it is answered."""

    def __init__(self, answer: Callable[[Call], tuple[int, JsonObject]]) -> None:
        self.answer = answer
        self.calls: list[Call] = []
        self._runner: web.AppRunner | None = None

    @property
    def endpoint(self) -> str:
        assert self._runner is not None
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        call = Call(
            request.method, request.path_qs, dict(request.headers), orjson.loads(body) if body else {}
        )
        self.calls.append(call)
        status, answer = self.answer(call)
        return web.json_response(answer, status=status)


def takes_all(call: Call) -> tuple[int, JsonObject]:
    """What each of the servers answers when it takes everything and knew nothing before."""
    return (207, {"successes": [], "errors": []}) if "ingestion" in call.path else (200, {})


async def exported(kind: str, request: bytes, **settings: str) -> JsonObject:
    """What an exporter of scores sends of the log records in `request`: the last call's body."""
    component = exporter_types()[kind]
    assert component.kind == "scores"
    async with ScoreBackend(takes_all) as backend:
        config = component.config_model.model_validate({"endpoint": backend.endpoint, **settings})
        context = ExporterContext(clock=ManualClock(), metrics=Metrics(), console=StringIO())
        exporter = component.create(kind, config, context)
        await exporter.start()
        await exporter.export(request, 1)
        await exporter.shutdown(0)
    return backend.calls[-1].body
