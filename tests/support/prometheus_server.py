"""A real Prometheus on a free port of 127.0.0.1, with its data in a folder of the test.

scraping = scrape_config("tracegrade", service.endpoints["telemetry"])
async with PrometheusServer(tmp_path, {"scrape_configs": [scraping]}, rule_files=[rules]) as prometheus:
    await prometheus.until("up == 1")
    series = await prometheus.query("gen_ai_evaluation_results_total")
"""

import asyncio
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from processors.model import JsonObject, JsonValue
from tests.support.listening_process import PATIENCE_SECONDS, ListeningProcess

PROGRAM = "prometheus"
"""For `@pytest.mark.requires_program`."""


@dataclass(frozen=True)
class Series:
    """One series of an answer: its labels, `__name__` included, and its points (unix seconds, value)."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]

    @property
    def value(self) -> float:
        """The last value."""
        return self.points[-1][1]


def scrape_config(job: str, *targets: str, interval: str = "500ms") -> JsonObject:
    """An entry of `scrape_configs` for the `host:port` addresses in `targets`."""
    return {
        "job_name": job,
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "static_configs": [{"targets": list(targets)}],
    }


class PrometheusServer(ListeningProcess):
    """Prometheus with the configuration `config`, in which `rule_files` are put in.

    Args:
        folder: Holds its configuration and data, below `prometheus/`.
        config: The configuration file, as a mapping; the evaluation interval is 500 ms if it says nothing.
        rule_files: Paths of rule files.
        blocks: Folders of finished blocks (as `promtool tsdb create-blocks-from` writes them) that are
            copied into the data before the start.
        options: More command line options.
    """

    def __init__(
        self,
        folder: Path,
        config: JsonObject,
        *,
        rule_files: Sequence[Path] = (),
        blocks: Sequence[Path] = (),
        options: Sequence[str] = (),
    ) -> None:
        home = folder / "prometheus"
        self.data_path = home / "data"
        self.data_path.mkdir(parents=True)
        for source in blocks:
            for block in source.iterdir():
                if (block / "meta.json").is_file():
                    shutil.copytree(block, self.data_path / block.name)
        given = config.get("global")
        settings: JsonObject = {"evaluation_interval": "500ms"}
        settings.update(given if isinstance(given, dict) else {})
        rules: list[JsonValue] = [str(path.resolve()) for path in rule_files]
        self.config_path = home / "prometheus.yaml"
        self.config_path.write_text(yaml.safe_dump({**config, "global": settings, "rule_files": rules}))
        super().__init__(
            PROGRAM,
            (
                f"--config.file={self.config_path}",
                f"--storage.tsdb.path={self.data_path}",
                "--storage.tsdb.retention.time=10y",
                "--web.listen-address=127.0.0.1:0",
                "--enable-feature=exemplar-storage",
                *options,
            ),
            home,
        )

    async def query(self, expression: str, at: float | None = None) -> list[Series]:
        """The instant vector (or scalar) of `expression`, now or at the unix time `at`."""
        parameters = {"query": expression} | ({} if at is None else {"time": repr(at)})
        return _series(await self.get("query", parameters))

    async def query_range(
        self, expression: str, *, start: float, end: float | None = None, step: float = 1.0
    ) -> list[Series]:
        """The matrix of `expression` from the unix time `start` to `end`, which is now by default."""
        parameters = {"query": expression, "start": repr(start), "step": repr(step)}
        return _series(
            await self.get("query_range", {**parameters, "end": repr(time.time() if end is None else end)})
        )

    async def series(self, *selectors: str) -> list[Mapping[str, str]]:
        """The labels of all series that match one of `selectors`, at any time."""
        found = await self.get("series", [("match[]", selector) for selector in selectors])
        assert isinstance(found, list)
        return [_labels(labels) for labels in found]

    async def label_values(self, label: str, *selectors: str) -> list[str]:
        """The values of `label`, sorted, in all series or in those that match."""
        values = await self.get(f"label/{label}/values", [("match[]", selector) for selector in selectors])
        assert isinstance(values, list)
        return [str(value) for value in values]

    async def until(
        self, expression: str, *, seconds: float = PATIENCE_SECONDS, every: float = 0.25
    ) -> list[Series]:
        """Ask again and again until `expression` gives something; that. Fails after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while not (found := await self.query(expression)):
                    self.check_alive()
                    await asyncio.sleep(every)
        except TimeoutError:
            raise AssertionError(f"nothing in {seconds:g} s for {expression}\n{self.log_tail()}") from None
        return found

    async def get(
        self, path: str, parameters: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    ) -> JsonValue:
        """The `data` of an answer of `/api/v1/<path>`; fails with the server's message."""
        async with self.session.get(f"{self.url}/api/v1/{path}", params=parameters) as response:
            answer: JsonObject = await response.json()
        assert answer["status"] == "success", f"{path}, {parameters}: {answer.get('error')}"
        return answer["data"]


def _series(data: JsonValue) -> list[Series]:
    assert isinstance(data, dict)
    result = data["result"]
    assert isinstance(result, list)
    if data["resultType"] in ("scalar", "string"):
        return [Series({}, [_point(result)])]
    found = []
    for row in result:
        assert isinstance(row, dict)
        points = row["values"] if "values" in row else [row["value"]]
        assert isinstance(points, list)
        found.append(Series(_labels(row["metric"]), [_point(point) for point in points]))
    return found


def _labels(value: JsonValue) -> Mapping[str, str]:
    assert isinstance(value, dict)
    return {name: str(text) for name, text in value.items()}


def _point(value: JsonValue) -> tuple[float, float]:
    assert isinstance(value, list)
    moment, text = value
    assert isinstance(moment, int | float)
    return float(moment), float(str(text))
