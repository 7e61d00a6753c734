"""A real Arize Phoenix on free ports, and what it stores, read through its REST interface."""

from collections.abc import Iterable
from pathlib import Path

import aiohttp

from processors.model import JsonObject
from tests.support.backend_server import BackendServer, free_port
from tests.support.stored_span import StoredEvent, StoredSpan, wait_for_spans


class PhoenixServer(BackendServer):
    """Phoenix with a fresh SQLite database, which sends nothing to anybody."""

    def __init__(self, folder: Path) -> None:
        self.grpc_port = free_port()
        port = free_port()
        super().__init__(
            "phoenix",
            ["serve"],
            {
                "PHOENIX_WORKING_DIR": str(folder),
                "PHOENIX_HOST": "127.0.0.1",
                "PHOENIX_PORT": str(port),
                "PHOENIX_GRPC_PORT": str(self.grpc_port),
                "PHOENIX_TELEMETRY_ENABLED": "false",
                "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
                "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
            },
            folder,
            url=f"http://127.0.0.1:{port}",
            health_path="/healthz",
        )

    async def spans(self, project: str) -> list[StoredSpan]:
        """All spans of `project`; none where there is no such project yet."""
        rows = await self._rows(f"/v1/projects/{project}/spans", [])
        return [_stored_span(row) for row in rows]

    async def until_spans(self, project: str, count: int) -> list[StoredSpan]:
        """The spans of `project` once there are `count` of them."""
        return await wait_for_spans(lambda: self.spans(project), count, self.log_tail)

    async def annotations(self, project: str, span_ids: Iterable[str]) -> list[JsonObject]:
        """What Phoenix shows as annotations of these spans."""
        given = [("span_ids", span_id) for span_id in span_ids]
        return await self._rows(f"/v1/projects/{project}/span_annotations", given)

    async def _rows(self, path: str, parameters: list[tuple[str, str]]) -> list[JsonObject]:
        rows: list[JsonObject] = []
        cursor: list[tuple[str, str]] = []
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
            while True:
                query = [*parameters, ("limit", "100"), *cursor]
                async with session.get(self.url + path, params=query) as response:
                    if response.status == 404:
                        return []
                    assert 200 == response.status, await response.text()
                    answer = await response.json()
                rows += answer["data"]
                if not answer["next_cursor"]:
                    return rows
                cursor = [("cursor", answer["next_cursor"])]


def _stored_span(row: JsonObject) -> StoredSpan:
    context, attributes, events = row["context"], row["attributes"], row["events"]
    assert isinstance(context, dict)
    assert isinstance(attributes, dict)
    assert isinstance(events, list)
    stored_events = []
    for event in events:
        assert isinstance(event, dict)
        told = event["attributes"]
        assert isinstance(told, dict)
        stored_events.append(StoredEvent(str(event["name"]), told))
    return StoredSpan(
        str(context["trace_id"]),
        str(context["span_id"]),
        None if row["parent_id"] is None else str(row["parent_id"]),
        str(row["name"]),
        str(row["span_kind"]),
        attributes,
        stored_events,
    )
