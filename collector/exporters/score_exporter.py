"""The exporter of scores: verdicts as values, and the wait for their spans.

It sends every verdict to where people already look at their traces. Each kind of server has a module, which
writes the requests in its words. Verdicts arrive as log records, whatever `results.emit`
names, so a score carries what these carry.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from pydantic import field_validator
from yarl import URL

from collector.config_fields import Duration
from collector.errors import RetryableExportError
from collector.exporters.exporter import ExporterContext, ExportResponse
from collector.exporters.http_client import HttpSender, is_usable_url, shown_url
from collector.exporters.otlp_client import ClientConfig
from collector.exporters.span_exporter_config import BatchConfig, RetryConfig, SendingQueueConfig
from collector.otlp import split_records
from collector.trace import Signal
from processors.model import JsonObject, JsonValue, json_text, json_value, parse_json, time_text
from processors.spans import Attributes, LogRecord

NAME: Final = "gen_ai.evaluation.name"
VALUE: Final = "gen_ai.evaluation.score.value"
LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"
RUN_END: Final = "tracegrade.run.end_time"
_OF_ID = (NAME, "gen_ai.agent.name", "tracegrade.tenant", "tracegrade.tool.call.id")
_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
_LOOK_AGAIN_SECONDS = 2.0
"""From a request whose spans were not all there to the next attempt."""

_QUEUE = SendingQueueConfig(
    batch=BatchConfig.model_validate({"flush_timeout": "1s", "max_spans": 200, "max_bytes": 1_000_000})
)


class ScoreExporterConfig(ClientConfig):
    """The keys that all exporters of scores share; their own configuration models derive from it.

    Scores are never waited for: where there is no memory for them the oldest are dropped and counted.
    """

    endpoint: str
    """Base URL of the server, as a browser opens it."""
    span_wait: Duration = 60.0
    """How long a score waits for its span to be there, where the server refuses scores of spans that it does
    not know; then it is dropped as `partial_success`."""
    sending_queue: SendingQueueConfig = _QUEUE
    """`max_spans` counts scores."""
    retry_on_failure: RetryConfig = RetryConfig()

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, text: str) -> str:
        if not is_usable_url(text):
            raise ValueError(f'expected a URL such as "https://backend.example", got {text!r}')
        return text


@dataclass(frozen=True, slots=True)
class Score:
    """One verdict. `value` is None where there is none: the run was not evaluated, or the evaluator failed.

    `id` identifies the verdict, not this report of it: trace, span, evaluation, agent, tenant and tool call
    determine it, so that grading again overwrites the score, on whichever instance.
    """

    id: str
    trace_id: str
    span_id: str
    name: str
    value: float | None
    label: str
    explanation: str
    time_unix_nano: int
    """When the verdict was reached."""
    run_end_time: str
    """When the run ended, as RFC 3339: the same whoever grades it. Where that is not known, when the verdict
    was reached."""
    facts: Mapping[str, JsonValue]
    """All other attributes of the log record, its time, and those of its resource under `resource`."""


def read_scores(request: bytes) -> list[Score]:
    """The verdicts in a serialised ExportLogsServiceRequest."""
    records = (LogRecord(payload, envelope) for _, payload, envelope in split_records(request).records)
    return [_score(record) for record in records]


def _score(record: LogRecord) -> Score:
    graded_time = time_text(record.unix_nano)
    facts = {**_values(record.attributes), "tracegrade.graded_time": graded_time}
    trace_id, span_id = record.message.trace_id.hex(), record.message.span_id.hex()
    identity: list[JsonValue] = [trace_id, span_id, *(str(facts.get(key, "")) for key in _OF_ID)]
    value = facts.pop(VALUE, None)
    ended = facts.get(RUN_END)
    resource = _values(record.envelope.resource_attributes)
    return Score(
        id=hashlib.sha256(json_text(identity).encode("utf-8", "surrogatepass")).hexdigest()[:32],
        trace_id=trace_id,
        span_id=span_id,
        name=str(facts.pop(NAME, "")),
        value=value if isinstance(value, float) else None,
        label=str(facts.pop(LABEL, "")),
        explanation=str(facts.pop(EXPLANATION, "")),
        time_unix_nano=record.unix_nano,
        run_end_time=ended if isinstance(ended, str) else graded_time,
        facts={**facts, **({"resource": resource} if resource else {})},
    )


def _values(attributes: Attributes) -> JsonObject:
    return {key: json_value(value) for key, value in attributes.items()}


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of scores: those whose span the server does not know, and how many it will never accept."""

    missing: Collection[str] = ()
    """The ids of scores to send again."""
    rejected: int = 0
    message: str = ""


class ScoreExporter(ABC):
    """Sends scores to one server; what is particular to that is `send` and `probe`.

    A score whose span is not there yet is sent again for `span_wait`, without those of its request that were
    accepted. A request that is dropped meanwhile, because the service stops, counts as dropped as a whole.
    """

    probe: ClassVar[tuple[str, Mapping[str, str]]]
    """Path and query of a request that needs the same credentials and changes nothing."""

    def __init__(self, name: str, config: ScoreExporterConfig, context: ExporterContext) -> None:
        self.name = name
        self._base = URL(config.endpoint)
        self.endpoints: dict[Signal, str] = {"logs": shown_url(self._base)}
        self._span_wait = config.span_wait
        self._clock = context.clock
        self._sender = HttpSender(
            name=name,
            config=config,
            headers={"Accept": "application/json"},
            clock=context.clock,
        )
        # Of requests that are sent again: the scores whose span is missing, and those that were accepted.
        self._missing_since: dict[tuple[str, int], float] = {}
        self._accepted: set[tuple[str, int]] = set()

    @abstractmethod
    async def send(self, scores: Sequence[Score]) -> Sent:
        """Send scores; raises `ExportError` where none, or an unknown part of them, was accepted."""

    async def start(self) -> None:
        """Read the TLS files and create the connection pool."""
        await self._sender.start(uses_tls=self._base.scheme == "https")

    async def check(self) -> None:
        """Send the server a request that changes nothing; raises `ExportError` as `call` does."""
        path, query = self.probe
        await self.call("GET", path, query=query)

    async def export(self, request: bytes, count: int, signal: Signal = "logs") -> ExportResponse:
        """Send the scores of one request; see `SpanExporter.export`."""
        scores = {(score.id, score.time_unix_nano): score for score in read_scores(request)}
        waiting = {key: score for key, score in scores.items() if key not in self._accepted}
        sent = await self.send(list(waiting.values()))
        now = self._clock.monotonic()
        given_up = 0
        is_early = False
        for key, score in waiting.items():
            if score.id not in sent.missing:
                self._accepted.add(key)
            elif now - self._missing_since.setdefault(key, now) < self._span_wait:
                is_early = True
            else:
                given_up += 1
        if is_early:
            raise RetryableExportError(
                f"{len(sent.missing)} scores are of spans that are not there yet.", _LOOK_AGAIN_SECONDS
            )
        for key in scores:
            self._accepted.discard(key)
            self._missing_since.pop(key, None)
        unknown = f"{given_up} scores are of spans that never arrived." if given_up else ""
        return ExportResponse(given_up + sent.rejected, unknown or sent.message)

    async def shutdown(self, deadline: float) -> None:
        """Close all connections."""
        await self._sender.close()

    async def call(
        self, method: str, path: str, body: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> JsonObject:
        """The server's answer to `body`; an answer that is no JSON object is an empty one.

        Raises:
            ExportError: the server did not accept it; `RefusedCallError` where it never will.
        """
        response, answer = await self._sender.send(
            method,
            self._base.with_path(self._base.path.rstrip("/") + path).with_query(query or {}),
            None if body is None else json_text(body).encode("utf-8", "replace"),
            {} if body is None else {"Content-Type": "application/json"},
        )
        if not 200 <= response.status < 300:
            text = answer[:65536].decode("utf-8", "replace")
            raise self._sender.refusal(response, _RETRYABLE, text, text)
        try:
            content = parse_json(answer.decode("utf-8", "replace"))
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}
