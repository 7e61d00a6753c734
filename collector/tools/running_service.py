"""What a service that runs answers over HTTP, its telemetry endpoint above all. Blocking."""

import http.client
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping

import orjson
from prometheus_client.parser import text_string_to_metric_families

from collector.config_fields import parse_endpoint, reachable_address
from collector.errors import TracegradeError
from processors.model import JsonObject

TIMEOUT_SECONDS = 5.0
_MAX_BYTES = 256 << 20

Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]
"""By name: labels and value of each series."""


class NoAnswerError(TracegradeError):
    """There was no usable answer; the message says why."""


def ask(
    address: str,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> tuple[int, bytes]:
    """Status and body of the answer of `address`, a `host:port`; raises `NoAnswerError`.

    Asked directly, whatever proxy the environment names for other traffic.
    """
    url = f"http://{address}{path}"
    request = urllib.request.Request(url, method=method, headers=dict(headers or {}))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_seconds) as response:
            return response.status, response.read(_MAX_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_MAX_BYTES)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise NoAnswerError(f"no answer from {url}: {reason}") from error


class RunningService:
    """Asks what listens on `endpoint`, as configuration writes it."""

    def __init__(self, endpoint: str) -> None:
        self.address = reachable_address(endpoint)
        self.port = parse_endpoint(endpoint)[1]

    def problems_with_readiness(self) -> str:
        """Which conditions of readiness do not hold, empty for none; raises `NoAnswerError`."""
        status, answer = ask(self.address, "/readyz")
        return "" if status == http.HTTPStatus.OK else " ".join(answer.decode(errors="replace").split())

    def expect_probe(self) -> JsonObject:
        """Have it expect the traces of a probe; see `SelfCheck.expect_probe`. Raises `NoAnswerError`."""
        return self._object("POST")

    def probe_verdicts(self) -> JsonObject:
        """See `SelfCheck.probe_verdicts`; raises `NoAnswerError`."""
        return self._object("GET")

    def samples(self) -> Samples:
        """All series of a scrape; raises `NoAnswerError`."""
        _, answer = ask(self.address, "/metrics")
        found: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
        try:
            for name, labels, value in _samples(answer.decode(errors="replace")):
                found[name].append((labels, value))
        except ValueError as error:
            raise NoAnswerError(f"{self.address}/metrics: these are no metrics: {error}") from error
        return found

    def _object(self, method: str) -> JsonObject:
        status, answer = ask(self.address, "/self-check", method=method)
        try:
            told = orjson.loads(answer)
        except ValueError:
            told = None
        if status != http.HTTPStatus.OK or not isinstance(told, dict):
            raise NoAnswerError(
                f"{self.address}/self-check answered {status}: this is no tracegrade, or one of another "
                "version"
            )
        return told


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value
