"""Verdicts as scores in Langfuse (`langfuse_scores`), through the batch ingestion of its public API.

A score is identified by its id, so a repeated one overwrites the first. Langfuse accepts scores of traces
that it does not know yet.
"""

import base64
import uuid
from collections.abc import Sequence

from pydantic import SecretStr, field_validator

from collector.errors import RetryableExportError
from collector.exporters.exporter import ExporterContext, SpanExporterType
from collector.exporters.otlp_client import one_line
from collector.exporters.score_exporter import Score, ScoreExporter, ScoreExporterConfig, Sent
from processors.model import JsonObject, JsonValue, json_text

_PATH = "/api/public/ingestion"
_SERVER_ERROR, _TOO_MANY = 500, 429


class LangfuseScoresConfig(ScoreExporterConfig):
    """`exporters.langfuse_scores`: a project of Langfuse that gets the spans as well."""

    public_key: SecretStr
    """The project's public key."""
    secret_key: SecretStr
    """The project's secret key."""

    @field_validator("public_key", "secret_key")
    @classmethod
    def _check_key(cls, key: SecretStr) -> SecretStr:
        text = key.get_secret_value()
        if not text or not text.isascii() or not text.isprintable():
            raise ValueError("expected a key of a Langfuse project, printable ASCII")
        return key


class LangfuseScores(ScoreExporter):
    """Sends all scores of a request at once; the answer states for each whether it was accepted."""

    probe = ("/api/public/projects", {})

    def __init__(self, name: str, config: LangfuseScoresConfig, context: ExporterContext) -> None:
        keys = f"{config.public_key.get_secret_value()}:{config.secret_key.get_secret_value()}"
        credentials = base64.b64encode(keys.encode()).decode()
        headers = {**config.headers, "Authorization": SecretStr(f"Basic {credentials}")}
        super().__init__(name, config.model_copy(update={"headers": headers}), context)

    async def send(self, scores: Sequence[Score]) -> Sent:
        """See `ScoreExporter`."""
        if not scores:
            return Sent()
        events: list[JsonValue] = [_event(score) for score in scores]
        listed = (await self.call("POST", _PATH, {"batch": events})).get("errors")
        errors = [error for error in listed if isinstance(error, dict)] if isinstance(listed, list) else []
        if not errors:
            return Sent()
        message = one_line(json_text(errors[0]))
        if any(_is_retryable(error.get("status")) for error in errors):
            raise RetryableExportError(message)  # for all of them: the id keeps each a single score
        return Sent((), len(errors), message)


def _is_retryable(status: JsonValue) -> bool:
    return isinstance(status, int) and (status >= _SERVER_ERROR or status == _TOO_MANY)


def _event(score: Score) -> JsonObject:
    # Langfuse overwrites a score of the same id only where its time is the same, too.
    at = score.run_end_time[: len("2026-01-31T08:00:00.000")] + "Z"
    body: JsonObject = {
        "id": score.id,
        "traceId": score.trace_id,
        "observationId": score.span_id,
        "name": score.name,
        "value": score.label if score.value is None else score.value,
        "dataType": "CATEGORICAL" if score.value is None else "NUMERIC",
        "comment": score.explanation,
        "metadata": {"tracegrade.outcome": score.label, **score.facts},
    }
    # Langfuse ignores an event that it knows: another grading is another event of the same score.
    event = uuid.uuid5(uuid.NAMESPACE_OID, f"{score.id}:{score.time_unix_nano}")
    return {"id": str(event), "type": "score-create", "timestamp": at, "body": body}


COMPONENT = SpanExporterType(
    kind="scores", type_name="langfuse_scores", config_model=LangfuseScoresConfig, create=LangfuseScores
)
