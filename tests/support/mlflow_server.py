"""A real MLflow tracking server on a free port, and what it stores, read through its REST interface."""

import base64
from pathlib import Path

import aiohttp

from processors.model import JsonObject, JsonValue
from tests.support.backend_server import BackendServer, free_port
from tests.support.stored_span import StoredEvent, StoredSpan, wait_for_spans


class MlflowServer(BackendServer):
    """MLflow with a fresh SQLite database, which sends nothing to anybody and runs no jobs."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        super().__init__(
            "mlflow",
            [
                "server",
                *("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
                *("--default-artifact-root", str(folder / "artifacts")),
                *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
            ],
            {
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "DO_NOT_TRACK": "true",
                "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            },
            folder,
            url=f"http://127.0.0.1:{port}",
            health_path="/health",
        )

    async def create_experiment(self, name: str) -> str:
        """The id of a new experiment."""
        answer = await self._call("POST", "/api/2.0/mlflow/experiments/create", {"name": name})
        return str(answer["experiment_id"])

    async def traces(self, experiment_id: str) -> list[JsonObject]:
        """The traces of an experiment, without their spans."""
        place: JsonObject = {
            "type": "MLFLOW_EXPERIMENT",
            "mlflow_experiment": {"experiment_id": experiment_id},
        }
        body: JsonObject = {"locations": [place], "max_results": 100}
        answer = await self._call("POST", "/api/3.0/mlflow/traces/search", body)
        return _objects(answer.get("traces", []))

    async def spans(self, experiment_id: str) -> list[StoredSpan]:
        """All spans of an experiment."""
        spans = []
        for trace in await self.traces(experiment_id):
            answer = await self._call("GET", f"/api/3.0/mlflow/traces/get?trace_id={trace['trace_id']}")
            found = answer["trace"]
            assert isinstance(found, dict)
            spans += [_stored_span(span) for span in _objects(found["spans"])]
        return spans

    async def assessments(self, trace_id: str) -> list[JsonObject]:
        """What MLflow shows as assessments of a trace, which it calls by an id of its own."""
        answer = await self._call("GET", f"/api/3.0/mlflow/traces/{trace_id}")
        trace = answer["trace"]
        assert isinstance(trace, dict)
        info = trace["trace_info"]
        assert isinstance(info, dict)
        return _objects(info.get("assessments", []))

    async def until_spans(self, experiment_id: str, count: int) -> list[StoredSpan]:
        """The spans of an experiment once there are `count` of them."""
        return await wait_for_spans(lambda: self.spans(experiment_id), count, self.log_tail)

    async def _call(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session,
            session.request(method, self.url + path, json=body) as response,
        ):
            assert 200 == response.status, await response.text()
            answer: JsonObject = await response.json()
            return answer


def _stored_span(span: JsonObject) -> StoredSpan:
    attributes = _attributes(span["attributes"])
    parent = str(span.get("parent_span_id", ""))
    return StoredSpan(
        _hex(str(span["trace_id"])),
        _hex(str(span["span_id"])),
        _hex(parent) if parent else None,
        str(span["name"]),
        str(attributes.get("mlflow.spanType")),
        attributes,
        [
            StoredEvent(str(event["name"]), _attributes(event.get("attributes", [])))
            for event in _objects(span.get("events", []))
        ],
    )


def _attributes(pairs: JsonValue) -> JsonObject:
    """Attributes with the value of each, texts and numbers; nested ones stay as they came."""
    values: JsonObject = {}
    for pair in _objects(pairs):
        value = pair["value"]
        assert isinstance(value, dict)
        values[str(pair["key"])] = next(iter(value.values()), None)
    return values


def _objects(value: JsonValue) -> list[JsonObject]:
    assert isinstance(value, list)
    found = []
    for item in value:
        assert isinstance(item, dict)
        found.append(item)
    return found


def _hex(text: str) -> str:
    """An id, which MLflow writes in base64."""
    return base64.b64decode(text).hex()
