"""Queries a running service over HTTP, mostly its telemetry endpoint. Blocking."""

from collections import defaultdict
from collections.abc import Mapping
from http import HTTPStatus

import orjson
from prometheus_client.parser import text_string_to_metric_families

from collector.config_fields import parse_endpoint, reachable_address
from collector.tools.http_client import NoAnswerError, query
from processors.model import JsonObject

Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]
"""By name: labels and value of each series."""


class RunningService:
    """The service that listens on `endpoint`, as configuration writes it."""

    def __init__(self, endpoint: str) -> None:
        self.address = reachable_address(endpoint)
        self.port = parse_endpoint(endpoint)[1]

    def problems_with_readiness(self) -> str:
        """Which conditions of readiness do not hold, empty for none; raises `NoAnswerError`."""
        status, answer = query(self.address, "/readyz")
        return "" if status == HTTPStatus.OK else " ".join(answer.decode(errors="replace").split())

    def expect_probe(self) -> JsonObject:
        """Have it expect the traces of a probe; see `SelfCheck.expect_probe`. Raises `NoAnswerError`."""
        return self._self_check("POST")

    def probe_verdicts(self) -> JsonObject:
        """See `SelfCheck.probe_verdicts`; raises `NoAnswerError`."""
        return self._self_check("GET")

    def samples(self) -> Samples:
        """All series of a scrape; raises `NoAnswerError`."""
        _, answer = query(self.address, "/metrics")
        samples: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
        try:
            for family in text_string_to_metric_families(answer.decode(errors="replace")):
                for sample in family.samples:
                    samples[sample.name].append((sample.labels, sample.value))
        except ValueError as error:
            raise NoAnswerError(f"{self.address}/metrics: these are no metrics: {error}") from error
        return samples

    def _self_check(self, method: str) -> JsonObject:
        status, answer = query(self.address, "/self-check", method=method)
        try:
            content = orjson.loads(answer)
        except ValueError:
            content = None
        if status != HTTPStatus.OK or not isinstance(content, dict):
            raise NoAnswerError(
                f"{self.address}/self-check answered {status}: not tracegrade, or another version of it"
            )
        return content
