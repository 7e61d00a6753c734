"""A real Alertmanager on a free port of 127.0.0.1, with a shipped configuration that calls a test's webhook.

config = calling_webhook(yaml.safe_load(shipped.read_text()), receiver.url)
async with AlertmanagerServer(tmp_path, config) as alertmanager:
    firing = await alertmanager.alerts()
"""

from pathlib import Path

import yaml

from processors.model import JsonObject, JsonValue
from tests.support.listening_process import ListeningProcess

PROGRAM = "prometheus-alertmanager"
"""For `@pytest.mark.requires_program`."""

_TIMES: JsonObject = {"group_wait": "200ms", "group_interval": "500ms", "repeat_interval": "1h"}


def calling_webhook(config: JsonObject, url: str) -> JsonObject:
    """`config` with every receiver calling `<url>/<its name>`, resolved alerts included, without waits.

    Routes, grouping and inhibition stay. Settings of mail and chat services go, with their secrets.
    """
    receivers = config["receivers"]
    route = config["route"]
    assert isinstance(receivers, list)
    assert isinstance(route, dict)
    called: list[JsonValue] = []
    for receiver in receivers:
        assert isinstance(receiver, dict)
        hook: JsonValue = {"url": f"{url}/{receiver['name']}", "send_resolved": True}
        called.append({"name": receiver["name"], "webhook_configs": [hook]})
    kept = {key: value for key, value in config.items() if key not in ("global", "templates")}
    return {**kept, "receivers": called, "route": _without_waits(route)}


def _without_waits(route: JsonObject) -> JsonObject:
    """`route` and those below it with short times."""
    times: JsonObject = {key: value for key, value in _TIMES.items() if key in route}
    routes = route.get("routes")
    below: list[JsonValue] = (
        [_without_waits(child) for child in routes if isinstance(child, dict)]
        if isinstance(routes, list)
        else []
    )
    return {**route, **times, **({"routes": below} if below else {})}


class AlertmanagerServer(ListeningProcess):
    """Alertmanager with the configuration `config`; its files are in `folder`, below `alertmanager/`."""

    def __init__(self, folder: Path, config: JsonObject) -> None:
        home = folder / "alertmanager"
        home.mkdir()
        self.config_path = home / "alertmanager.yaml"
        self.config_path.write_text(yaml.safe_dump(config))
        super().__init__(
            PROGRAM,
            (
                f"--config.file={self.config_path}",
                f"--storage.path={home / 'data'}",
                "--web.listen-address=127.0.0.1:0",
                "--cluster.listen-address=",
            ),
            home,
        )

    async def alerts(self) -> list[JsonObject]:
        """The alerts it holds, inhibited and silenced ones included, as its API prints them."""
        async with self.session.get(f"{self.url}/api/v2/alerts") as response:
            assert response.status == 200, await response.text()
            found: list[JsonObject] = await response.json()
        return found
