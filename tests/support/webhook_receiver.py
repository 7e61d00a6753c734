"""What an alert finally calls: an HTTP server on 127.0.0.1 that keeps Alertmanager's notifications."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

from processors.model import JsonObject, JsonValue

PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Alert:
    """One alert of a notification, and the name of the receiver that was notified."""

    receiver: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.labels["alertname"]


class WebhookReceiver:
    """Serves between `async with` and its end; `alerts` holds every alert of every call, in order."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []
        self.url = ""
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_post("/{receiver}", self._notify)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(
        self, name: str, status: str, *, seconds: float = PATIENCE_SECONDS, **labels: str
    ) -> Alert:
        """The first alert of this name and status with `labels`, waiting for it.

        Fails after `seconds`, with what came instead.
        """
        try:
            async with asyncio.timeout(seconds):
                while True:
                    for alert in self.alerts:
                        if (alert.name, alert.status) == (
                            name,
                            status,
                        ) and labels.items() <= alert.labels.items():
                            return alert
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            came = [(alert.status, dict(alert.labels)) for alert in self.alerts]
            raise AssertionError(f"not in {seconds:g} s: {name} {status} {labels}; came: {came}") from None

    async def _notify(self, request: web.Request) -> web.Response:
        notification: JsonObject = await request.json()
        alerts = notification["alerts"]
        assert isinstance(alerts, list)
        self.alerts += [_alert(request.match_info["receiver"], alert) for alert in alerts]
        self._changed.set()
        return web.Response()


def _alert(receiver: str, alert: JsonValue) -> Alert:
    assert isinstance(alert, dict)
    return Alert(receiver, str(alert["status"]), _texts(alert["labels"]), _texts(alert["annotations"]))


def _texts(value: JsonValue) -> Mapping[str, str]:
    assert isinstance(value, dict)
    return {name: str(text) for name, text in value.items()}
