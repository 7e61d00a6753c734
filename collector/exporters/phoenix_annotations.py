"""Verdicts as annotations of spans in Arize Phoenix (`phoenix_annotations`), through its REST interface.

An annotation is identified by name, span and `identifier`, so a repeated one overwrites the first.
"""

import re
from collections.abc import Sequence

from collector.exporters.exporter import SpanExporterType
from collector.exporters.http_client import RefusedCallError
from collector.exporters.score_exporter import Score, ScoreExporter, ScoreExporterConfig, Sent
from processors.model import JsonObject, JsonValue

_PATH = "/v1/span_annotations"
_SPAN_ID = re.compile(r"\b[0-9a-f]{16}\b")
_RESERVED_NAME = "note"
"""Phoenix reserves it for what people write."""


class PhoenixAnnotationsConfig(ScoreExporterConfig):
    """`exporters.phoenix_annotations`: an Arize Phoenix that gets the spans as well."""


class PhoenixAnnotations(ScoreExporter):
    """Annotates in one request all spans that are there: Phoenix names those that are not."""

    probe = ("/v1/projects", {"limit": "1"})

    async def send(self, scores: Sequence[Score]) -> Sent:
        """See `ScoreExporter`."""
        missing: list[str] = []
        while scores:
            annotations: list[JsonValue] = [_annotation(score) for score in scores]
            try:
                await self.call("POST", _PATH, {"data": annotations}, {"sync": "true"})
                break
            except RefusedCallError as refusal:
                unknown = set(_SPAN_ID.findall(refusal.text)) if refusal.status == 404 else set()
                not_there = [score.id for score in scores if score.span_id in unknown]
                if not not_there:
                    raise
                missing += not_there
                scores = [score for score in scores if score.span_id not in unknown]
        return Sent(missing)


def _annotation(score: Score) -> JsonObject:
    return {
        "span_id": score.span_id,
        "name": f"{score.name}_" if score.name == _RESERVED_NAME else score.name,
        "annotator_kind": "CODE",
        "identifier": f"tracegrade:{score.id}",
        "result": {"score": score.value, "label": score.label, "explanation": score.explanation},
        "metadata": dict(score.facts),
    }


COMPONENT = SpanExporterType(
    kind="scores",
    type_name="phoenix_annotations",
    config_model=PhoenixAnnotationsConfig,
    create=PhoenixAnnotations,
)
