"""Verdicts as assessments of traces in MLflow (`mlflow_assessments`), through its REST interface.

MLflow gives assessments ids of its own and takes one a request. Ours bear the verdict's id in their metadata:
those that a trace has already are written over.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from collector.errors import ContentRefusedError
from collector.exporters.exporter import SpanExporterType
from collector.exporters.score_exporter import (
    RefusedCallError,
    Score,
    ScoreExporter,
    ScoreExporterConfig,
    Sent,
)
from processors.model import JsonObject, JsonValue, json_text, time_text

_TRACES = "/api/3.0/mlflow/traces/tr-"
_ID: Final = "tracegrade.verdict.id"
_OUTCOME: Final = "tracegrade.outcome"
_AT_A_TIME = 4
"""Traces whose assessments are written side by side."""


class MlflowAssessmentsConfig(ScoreExporterConfig):
    """`exporters.mlflow_assessments`: an MLflow tracking server that gets the spans as well."""


class MlflowAssessmentsExporter(ScoreExporter):
    """Reads what assessments a trace has, then adds or changes those of the verdicts."""

    probe = ("/api/2.0/mlflow/experiments/search", {"max_results": "1"})

    async def send(self, scores: Sequence[Score]) -> Sent:
        """See `ScoreExporter.send`; a trace that MLflow does not know has no span that it does."""
        by_trace: dict[str, list[Score]] = {}
        for score in scores:
            by_trace.setdefault(score.trace_id, []).append(score)
        room = asyncio.Semaphore(_AT_A_TIME)

        async def assess(trace_id: str) -> Sent:
            async with room:
                return await self._assess(trace_id, by_trace[trace_id])

        outcomes = await asyncio.gather(*map(assess, by_trace), return_exceptions=True)
        sent: list[Sent] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome  # all of them are sent again: what was written is written over
            sent.append(outcome)
        return Sent(
            [missing for part in sent for missing in part.missing],
            sum(part.rejected for part in sent),
            next((part.message for part in sent if part.message), ""),
        )

    async def _assess(self, trace_id: str, scores: Sequence[Score]) -> Sent:
        path = _TRACES + trace_id
        try:
            there = _ours(await self.call("GET", path))
        except RefusedCallError as refusal:
            if refusal.status == 404 and "RESOURCE_DOES_NOT_EXIST" in refusal.text:
                return Sent([score.id for score in scores])
            raise
        rejected = 0
        message = ""
        for score in scores:
            known = there.get(score.id)
            assessment = _assessment(score, trace_id)
            try:
                if known is None:
                    await self.call("POST", f"{path}/assessments", {"assessment": assessment})
                else:
                    assessment["metadata"] = {**dict.fromkeys(_metadata(known), ""), **_facts(score)}
                    change: JsonObject = {
                        "assessment": assessment,
                        "update_mask": "feedback,rationale,metadata",
                    }
                    await self.call("PATCH", f"{path}/assessments/{known['assessment_id']}", change)
            except ContentRefusedError as refusal:
                rejected += 1
                message = str(refusal)
        return Sent((), rejected, message)


def _ours(answer: JsonObject) -> Mapping[str, JsonObject]:
    """The assessments of a trace that are verdicts of ours, by their id."""
    return {
        verdict: assessment
        for assessment in _assessments(answer)
        if isinstance(verdict := _metadata(assessment).get(_ID), str)
    }


def _assessments(answer: JsonObject) -> Iterable[JsonObject]:
    trace = answer.get("trace")
    info = trace.get("trace_info") if isinstance(trace, dict) else None
    listed = info.get("assessments") if isinstance(info, dict) else None
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _metadata(assessment: JsonObject) -> JsonObject:
    metadata = assessment.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _assessment(score: Score, trace_id: str) -> JsonObject:
    feedback: JsonObject = {"value": score.value}
    if score.value is None:  # MLflow's way to say that there is no value, and why
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
    """The facts as MLflow takes them: texts only."""
    told = {_ID: score.id, _OUTCOME: score.label, **score.facts}
    return {key: fact if isinstance(fact, str) else json_text(fact) for key, fact in told.items()}


COMPONENT = SpanExporterType(
    kind="scores",
    type_name="mlflow_assessments",
    config_model=MlflowAssessmentsConfig,
    create=MlflowAssessmentsExporter,
)
