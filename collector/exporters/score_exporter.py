"""What exporters of scores share: verdicts as values, their settings, HTTP, and the wait for spans.

Such an exporter sends every verdict to the place where people already look at their traces, in that place's
own words. It gets the log records of verdicts, whatever `results.emit` names, so it says what they say.
"""

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import aiohttp
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from pydantic import Field, field_validator
from yarl import URL

from collector.config_fields import Duration, PositiveDuration
from collector.errors import ContentRefusedError, ExportError, PermanentExportError, RetryableExportError
from collector.exporters.exporter import ExporterContext, ExportResponse
from collector.exporters.http_client import (
    is_usable_url,
    read_body,
    retry_after_seconds,
    shown_url,
    tls_context,
)
from collector.exporters.otlp_client import ClientTlsConfig, Headers, one_line, user_agent
from collector.exporters.span_exporter_config import (
    BatchConfig,
    RetryConfig,
    SendingQueueConfig,
)
from processors.documents import StrictModel
from processors.model import JsonObject, JsonValue, json_text, parse_json, time_text

NAME: Final = "gen_ai.evaluation.name"
VALUE: Final = "gen_ai.evaluation.score.value"
LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"
RUN_END: Final = "tracegrade.run.end_time"
_OF_ID = (NAME, "gen_ai.agent.name", "tracegrade.tenant", "tracegrade.tool.call.id")
_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONTENT = frozenset({400, 413, 422})
_LOOK_AGAIN_SECONDS = 2.0
"""From a request whose spans were not all there to the next attempt."""

_QUEUE = SendingQueueConfig(
    batch=BatchConfig.model_validate({"flush_timeout": "1s", "max_spans": 200, "max_bytes": 1_000_000})
)


class ScoreExporterConfig(StrictModel):
    """The keys that all exporters of scores share; their own configuration models derive from it.

    Scores are never waited for: where there is no memory for them the oldest are dropped and counted.
    """

    endpoint: str
    """Base URL of the server, as a browser opens it."""
    headers: Headers = Field(default_factory=dict)
    """Headers of every request."""
    tls: ClientTlsConfig = ClientTlsConfig()
    timeout: PositiveDuration = 10.0
    """For one attempt."""
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

    @property
    def takes_spans(self) -> bool:
        """Spans do not go there."""
        return False

    @property
    def takes_log_records(self) -> bool:
        """Scores are made of log records."""
        return True


@dataclass(frozen=True, slots=True)
class Score:
    """One verdict. `value` is None where there is none: the run was not evaluated, or the evaluator broke.

    `id` is that of the verdict, not of this telling of it: trace, span, evaluation, agent, tenant and tool
    call make it, so that grading again overwrites what was said before, whoever grades.
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
    """When the run ended that it is on, as RFC 3339: the same whoever grades it. Where that is not told, when
    the verdict was reached."""
    facts: Mapping[str, JsonValue]
    """All else that the log record says, by attribute, its time, and under `resource` whose it is."""


def read_scores(request: bytes) -> list[Score]:
    """The verdicts in a serialised ExportLogsServiceRequest."""
    scores: list[Score] = []
    for resource_logs in ExportLogsServiceRequest.FromString(request).resource_logs:
        resource = _attributes(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            scores += [_score(record, resource) for record in scope_logs.log_records]
    return scores


def _score(record: LogRecord, resource: JsonObject) -> Score:
    facts = {**_attributes(record.attributes), "tracegrade.graded_time": time_text(record.time_unix_nano)}
    trace_id, span_id = record.trace_id.hex(), record.span_id.hex()
    told: list[JsonValue] = [trace_id, span_id, *(str(facts.get(key, "")) for key in _OF_ID)]
    value = facts.pop(VALUE, None)
    ended = facts.get(RUN_END)
    return Score(
        id=hashlib.sha256(json_text(told).encode("utf-8", "surrogatepass")).hexdigest()[:32],
        trace_id=trace_id,
        span_id=span_id,
        name=str(facts.pop(NAME, "")),
        value=value if isinstance(value, float) else None,
        label=str(facts.pop(LABEL, "")),
        explanation=str(facts.pop(EXPLANATION, "")),
        time_unix_nano=record.time_unix_nano,
        run_end_time=ended if isinstance(ended, str) else time_text(record.time_unix_nano),
        facts={**facts, **({"resource": resource} if resource else {})},
    )


def _attributes(pairs: Collection[KeyValue]) -> JsonObject:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> JsonValue:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    told: JsonValue = (
        base64.b64encode(value.bytes_value).decode() if kind == "bytes_value" else getattr(value, kind)
    )
    return told


class ScoreExporter(ABC):
    """Sends scores to one server; what is particular to the server is `send`.

    A score whose span is not there yet is sent again for `span_wait`, without those of its request that were
    taken. A request that is dropped meanwhile, because the service stops, counts as dropped as a whole.
    """

    probe: ClassVar[tuple[str, Mapping[str, str]]]
    """Path and query of a question that needs the same credentials and changes nothing."""

    def __init__(self, name: str, config: ScoreExporterConfig, context: ExporterContext) -> None:
        self.name = name
        self._config = config
        self._base = URL(config.endpoint)
        self.endpoint = self.logs_endpoint = shown_url(self._base)
        self._clock = context.clock
        self._session: aiohttp.ClientSession | None = None
        self._missing_since: dict[tuple[str, int], float] = {}
        self._taken: set[tuple[str, int]] = set()

    @abstractmethod
    async def send(self, scores: Sequence[Score]) -> "Sent":
        """Send `scores`; raises `ExportError` where nothing of them, or nobody knows what, was taken."""

    async def start(self) -> None:
        """Read the TLS files and make the connection pool."""
        config = self._config
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=tls_context(config.tls, self.name) if self._base.scheme == "https" else True
            ),
            headers={
                "Accept": "application/json",
                "User-Agent": user_agent(),
                **{name: value.get_secret_value() for name, value in config.headers.items()},
            },
            timeout=aiohttp.ClientTimeout(total=config.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def check(self) -> None:
        """Ask the server something that changes nothing; raises `ExportError` as `call` does."""
        path, query = self.probe
        await self.call("GET", path, query=query)

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        """Send the scores of one request; see `SpanExporter.export`."""
        scores = read_scores(request)
        keys = [(score.id, score.time_unix_nano) for score in scores]
        waiting = [score for score, key in zip(scores, keys, strict=True) if key not in self._taken]
        sent = await self.send(waiting)
        now = self._clock.monotonic()
        given_up = 0
        is_early = False
        for score in waiting:
            key = (score.id, score.time_unix_nano)
            if score.id not in sent.missing:
                self._taken.add(key)
            elif now - self._missing_since.setdefault(key, now) < self._config.span_wait:
                is_early = True
            else:
                given_up += 1
        if is_early:
            raise RetryableExportError(
                f"{len(sent.missing)} scores are of spans that are not there yet.", _LOOK_AGAIN_SECONDS
            )
        for key in keys:
            self._taken.discard(key)
            self._missing_since.pop(key, None)
        unknown = f"{given_up} scores are of spans that never came." if given_up else ""
        return ExportResponse(given_up + sent.rejected, unknown or sent.message)

    async def export_logs(self, request: bytes, record_count: int) -> ExportResponse:
        """The same; see `LogExporter.export_logs`."""
        return await self.export(request, record_count)

    async def shutdown(self, deadline: float) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(
        self, method: str, path: str, body: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> JsonObject:
        """What the server answers to `body`, as JSON; an answer that is no object is an empty one.

        Raises:
            ExportError: it did not take it; `RefusedCall` where it answered that it will not.
        """
        session = self._session
        if session is None:
            raise RetryableExportError("The exporter is not started.")
        url = self._base.with_path(self._base.path.rstrip("/") + path).with_query(query or {})
        try:
            async with session.request(
                method,
                url,
                data=None if body is None else json_text(body).encode("utf-8", "replace"),
                headers={} if body is None else {"Content-Type": "application/json"},
                allow_redirects=False,
                server_hostname=self._config.tls.server_name_override,
            ) as response:
                answer = await read_body(response)
                if not 200 <= response.status < 300:
                    raise self._refusal(response, answer)
        except TimeoutError as error:
            raise RetryableExportError(f"No answer within {self._config.timeout:g} s.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RetryableExportError(one_line(f"{type(error).__name__}: {error}")) from error
        try:
            told = parse_json(answer.decode("utf-8", "replace"))
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}

    def _refusal(self, response: aiohttp.ClientResponse, body: bytes) -> ExportError:
        text = body[:65536].decode("utf-8", "replace")
        message = f"HTTP {response.status}: {one_line(text)}"
        if response.status in _RETRYABLE:
            return RetryableExportError(message, retry_after_seconds(response.headers, self._clock))
        if response.status in _CONTENT:
            return ContentRefusedError(message)
        return RefusedCallError(message, response.status, text)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of scores: those whose span the server does not know, and how many it will never take."""

    missing: Collection[str] = ()
    """The ids of scores to send again."""
    rejected: int = 0
    message: str = ""


class RefusedCallError(PermanentExportError):
    """The server answered that it will not take a request, with the whole `text` of its answer."""

    def __init__(self, message: str, status: int, text: str) -> None:
        super().__init__(message)
        self.status = status
        self.text = text
