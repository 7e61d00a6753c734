"""Verdicts as assessments of traces in MLflow (`mlflow_assessments`), through its REST interface.

MLflow gives assessments ids of its own and accepts one a request. Ours carry the verdict's id in their
metadata: those that a trace has already are overwritten.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from collector.errors import ContentRefusedError
from collector.exporters.exporter import SpanExporterType
from collector.exporters.http_client import RefusedCallError
from collector.exporters.score_exporter import Score, ScoreExporter, ScoreExporterConfig, Sent
from processors.model import JsonObject, JsonValue, json_text, time_text

_TRACES = "/api/3.0/mlflow/traces/tr-"
_ID: Final = "tracegrade.verdict.id"
_OUTCOME: Final = "tracegrade.outcome"
_AT_A_TIME = 4
"""Traces whose assessments are written side by side."""


class MlflowAssessmentsConfig(ScoreExporterConfig):
    """`exporters.mlflow_assessments`: an MLflow tracking server that gets the spans as well."""


class MlflowAssessments(ScoreExporter):
    """Sends the scores, several traces at a time."""

    probe = ("/api/2.0/mlflow/experiments/search", {"max_results": "1"})

    async def send(self, scores: Sequence[Score]) -> Sent:
        """See `ScoreExporter`."""
        by_trace: dict[str, list[Score]] = {}
        for score in scores:
            by_trace.setdefault(score.trace_id, []).append(score)
        room = asyncio.Semaphore(_AT_A_TIME)

        async def assess(trace_id: str) -> Sent:
            async with room:
                return await self._assess(trace_id, by_trace[trace_id])

        # Where one fails all are sent again: what was written is overwritten.
        sent: list[Sent] = []
        for outcome in await asyncio.gather(*map(assess, by_trace), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            sent.append(outcome)
        return Sent(
            [missing for part in sent for missing in part.missing],
            sum(part.rejected for part in sent),
            next((part.message for part in sent if part.message), ""),
        )

    async def _assess(self, trace_id: str, scores: Sequence[Score]) -> Sent:
        """Read what assessments a trace has, then add or change those of the verdicts.

        Of a trace that MLflow does not know, all spans are missing.
        """
        path = _TRACES + trace_id
        try:
            existing = _existing(await self.call("GET", path))
        except RefusedCallError as refusal:
            if refusal.status == 404 and "RESOURCE_DOES_NOT_EXIST" in refusal.text:
                return Sent([score.id for score in scores])
            raise
        rejected = 0
        message = ""
        for score in scores:
            known = existing.get(score.id)
            assessment = _assessment(score, trace_id)
            try:
                if known is None:
                    await self.call("POST", f"{path}/assessments", {"assessment": assessment})
                else:
                    assessment["metadata"] = {
                        **dict.fromkeys(_member(known, "metadata"), ""),
                        **_facts(score),
                    }
                    change: JsonObject = {
                        "assessment": assessment,
                        "update_mask": "feedback,rationale,metadata",
                    }
                    await self.call("PATCH", f"{path}/assessments/{known['assessment_id']}", change)
            except ContentRefusedError as refusal:
                rejected += 1
                message = str(refusal)
        return Sent((), rejected, message)


def _existing(answer: JsonObject) -> dict[str, JsonObject]:
    """The assessments of a trace that tracegrade wrote, by the verdict's id."""
    listed = _member(_member(answer, "trace"), "trace_info").get("assessments")
    return {
        verdict: assessment
        for assessment in (listed if isinstance(listed, list) else ())
        if isinstance(assessment, dict)
        and isinstance(verdict := _member(assessment, "metadata").get(_ID), str)
    }


def _member(content: JsonObject, key: str) -> JsonObject:
    member = content.get(key)
    return member if isinstance(member, dict) else {}


def _assessment(score: Score, trace_id: str) -> JsonObject:
    feedback: JsonObject = {"value": score.value}
    if score.value is None:  # how MLflow represents that there is no value, and why
        feedback = {"error": {"error_code": score.label.upper(), "error_message": score.explanation}}
    return {
        "assessment_name": score.name,
        "trace_id": f"tr-{trace_id}",
        "span_id": score.span_id,
        "source": {"source_type": "CODE", "source_id": "tracegrade"},
        "create_time": time_text(score.time_unix_nano),
        "feedback": feedback,
        "rationale": score.explanation,
        "metadata": _facts(score),
    }


def _facts(score: Score) -> dict[str, JsonValue]:
    """The facts in MLflow's form: texts only."""
    facts = {_ID: score.id, _OUTCOME: score.label, **score.facts}
    return {key: fact if isinstance(fact, str) else json_text(fact) for key, fact in facts.items()}


COMPONENT = SpanExporterType(
    kind="scores",
    type_name="mlflow_assessments",
    config_model=MlflowAssessmentsConfig,
    create=MlflowAssessments,
)
