"""Queries a Prometheus server, or a server with its HTTP API."""

import base64
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import orjson
from yarl import URL

from collector.errors import TracegradeError
from collector.tools.http_client import NoAnswerError, send_request

TIMEOUT_SECONDS = 60.0
MAX_ANSWER_BYTES = 64 << 20
"""More than any vector of scores has."""

_NOT_PROMETHEUS = "this is not the answer of a Prometheus server"


class PrometheusError(TracegradeError):
    """A query got no usable answer; the message names the server, without credentials, and the cause."""


class PrometheusApi:
    """The server at `url`, for example `http://prometheus:9090` or `https://user:secret@host/prefix`.

    A user name and password in the URL are sent as basic credentials and are never printed.
    """

    def __init__(self, url: str) -> None:
        """Take the address apart; nothing is sent yet.

        Raises:
            PrometheusError: `url` is no http or https URL.
        """
        try:
            parts = URL(url)
        except ValueError as error:
            raise PrometheusError(f"no URL of a Prometheus server: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.host:
            raise PrometheusError(
                "no URL of a Prometheus server: expected http://host:port or https://host:port"
            )
        self.shown_url = str(parts.with_user(None).with_query(None).with_fragment(None)).rstrip("/")
        """The URL without credentials."""
        self._headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if parts.user is not None:
            credentials = f"{parts.user}:{parts.password or ''}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()

    def by_evaluation(self, expression: str, unix_seconds: float) -> dict[tuple[str, str], float]:
        """The vector that `expression` gives at a moment, its values by the names of agent and evaluation.

        Raises:
            PrometheusError: the server cannot be reached, refuses the query, or answers something else.
        """
        body = urlencode({"query": expression, "time": f"{unix_seconds:.3f}"}).encode()
        data = self._data("query", body)
        try:
            if data["resultType"] != "vector":
                raise ValueError
            return {_evaluation(row["metric"]): float(row["value"][1]) for row in data["result"]}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PrometheusError(f"{self.shown_url}: {_NOT_PROMETHEUS}") from error

    def get(self, path: str, key: str) -> list[Any]:
        """The list `key` of what it answers to `/api/v1/<path>`; raises as `by_evaluation` does."""
        items = self._data(path).get(key)
        if not isinstance(items, list):
            raise PrometheusError(f"{self.shown_url}: {_NOT_PROMETHEUS}")
        return items

    def _data(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        try:
            status, answer = send_request(
                f"{self.shown_url}/api/v1/{path}",
                body,
                headers=self._headers,
                timeout_seconds=TIMEOUT_SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
                uses_proxy=True,
            )
        except NoAnswerError as error:
            raise PrometheusError(f"{self.shown_url}: no answer: {error}") from error
        try:
            content = orjson.loads(answer)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            content = {}
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise PrometheusError(f"{self.shown_url}: status {status}: {content.get('error', 'no reason')}")
        data = content.get("data")
        if not isinstance(data, dict):
            raise PrometheusError(f"{self.shown_url}: {_NOT_PROMETHEUS}")
        return data


def _evaluation(labels: dict[str, str]) -> tuple[str, str]:
    return str(labels.get("gen_ai_agent_name", "")), str(labels.get("gen_ai_evaluation_name", ""))
