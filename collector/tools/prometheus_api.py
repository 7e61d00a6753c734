"""Asks a Prometheus server, or what speaks its HTTP API, for an instant vector."""

import base64
import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

import orjson

from collector.errors import TracegradeError
from processors.model import JsonValue

TIMEOUT_SECONDS = 60.0
"""For connecting, and for each wait for more of the answer."""

MAX_ANSWER_BYTES = 64 << 20
"""More than any vector of scores has: a larger answer is not read."""

_NO_ANSWER = "this is not the answer of a Prometheus server"


class PrometheusError(TracegradeError):
    """A question got no usable answer; the message names the server, without credentials, and the cause."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an instant vector."""

    labels: Mapping[str, str]
    value: float


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
            parts = urlsplit(url)
            port = f":{parts.port}" if parts.port else ""
        except ValueError as error:
            raise PrometheusError(f"no URL of a Prometheus server: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PrometheusError(
                "no URL of a Prometheus server: expected http://host:port or https://host:port"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.shown_url = urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", ""))
        """The URL without credentials."""
        self._headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if parts.username is not None:
            credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()

    def query(self, expression: str, unix_seconds: float) -> list[Sample]:
        """The vector that `expression` gives at a moment.

        Raises:
            PrometheusError: the server cannot be reached, refuses the question, or answers something else.
        """
        body = urlencode({"query": expression, "time": f"{unix_seconds:.3f}"}).encode()
        answer = self._ask("query", body)
        try:
            return _vector(answer)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PrometheusError(f"{self.shown_url}: {_NO_ANSWER}") from error

    def by_evaluation(self, expression: str, unix_seconds: float) -> dict[tuple[str, str], float]:
        """As `query`, the values by the names of agent and evaluation."""
        return {
            (
                sample.labels.get("gen_ai_agent_name", ""),
                sample.labels.get("gen_ai_evaluation_name", ""),
            ): sample.value
            for sample in self.query(expression, unix_seconds)
        }

    def get(self, path: str) -> JsonValue:
        """The `data` of what it answers to `/api/v1/<path>`; raises as `query` does."""
        answer = self._ask(path, None)
        if not isinstance(answer, dict) or "data" not in answer:
            raise PrometheusError(f"{self.shown_url}: {_NO_ANSWER}")
        return answer["data"]

    def _ask(self, path: str, body: bytes | None) -> JsonValue:
        request = urllib.request.Request(f"{self.shown_url}/api/v1/{path}", body, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                answer = response.read(MAX_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise PrometheusError(f"{self.shown_url}: {_refusal(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise PrometheusError(f"{self.shown_url}: no answer: {reason}") from error
        if len(answer) > MAX_ANSWER_BYTES:
            raise PrometheusError(f"{self.shown_url}: the answer has more than {MAX_ANSWER_BYTES} bytes")
        try:
            told: JsonValue = orjson.loads(answer)
        except ValueError as error:
            raise PrometheusError(f"{self.shown_url}: {_NO_ANSWER}") from error
        return told


def _refusal(error: urllib.error.HTTPError) -> str:
    """What the server says of a question it does not answer: its own words, if it has any."""
    try:
        words = orjson.loads(error.read(1 << 16))["error"]
    except (OSError, ValueError, TypeError, KeyError, http.client.HTTPException):
        words = error.reason
    return f"status {error.code}: {words}"


def _vector(answer: Any) -> list[Sample]:
    """The samples in an answer; one that is no vector fails in one of the ways that `query` expects."""
    data = answer["data"]
    if data["resultType"] != "vector":
        raise ValueError
    samples = []
    for row in data["result"]:
        _, value = row["value"]
        samples.append(Sample({name: str(text) for name, text in row["metric"].items()}, float(value)))
    return samples
