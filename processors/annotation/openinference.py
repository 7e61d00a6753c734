"""Evaluation results as flat span attributes of OpenInference: `evaluations.<index>.evaluation.<field>`.

Names and fields are those of the OpenInference specification, "Annotations and Evaluations". The judge is
always `CODE`, and `identifier` is always ours: with it and the name a backend knows the same result again.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache

from processors.annotation.result_attributes import (
    SPAN_ATTRIBUTE,
    encode_double_attribute,
    encode_key,
    encode_text_attribute,
)
from processors.model import AgentRun, EvaluationResult, JsonObject, Scope, Stage
from processors.spans import Span

IDENTIFIER = "tracegrade"
ANNOTATOR_KIND = "CODE"

_COLLECTION = b"evaluations."
_INDEX = re.compile(r"evaluations\.([0-9]{1,9})\.evaluation\.")


def encode_annotations(results: Iterable[tuple[AgentRun, EvaluationResult]], first_index: int = 0) -> bytes:
    """The results as encoded `attributes` fields of a Span message, numbered from `first_index`."""
    parts: list[bytes] = []
    for index, (run, result) in enumerate(results, first_index):
        prefix = f"evaluations.{index}.evaluation."
        texts = {
            "name": result.name,
            "label": result.outcome.value,
            "explanation": result.explanation,
            "annotator_kind": ANNOTATOR_KIND,
            "identifier": IDENTIFIER,
            "metadata": json.dumps(_metadata(run, result), separators=(",", ":")),
        }
        parts += [
            encode_text_attribute(SPAN_ATTRIBUTE, _key(prefix + field), text)
            for field, text in texts.items()
            if text
        ]
        if result.score is not None:
            parts.append(encode_double_attribute(SPAN_ATTRIBUTE, _key(prefix + "score"), result.score))
    return b"".join(parts)


def first_free_index(payload: bytes) -> int:
    """The index after the evaluations that the Span message in `payload` already carries."""
    if _COLLECTION not in payload:
        return 0
    taken = [int(match[1]) for key in Span(payload).attributes if (match := _INDEX.match(key))]
    return max(taken, default=-1) + 1


def _metadata(run: AgentRun, result: EvaluationResult) -> JsonObject:
    metadata: JsonObject = {
        "evaluator": result.evaluator,
        "evaluator_version": result.evaluator_version,
        "pass_threshold": result.pass_threshold,
        "criteria_hash": result.criteria_hash,
        "severity": result.severity.value,
        "finish_reason": run.finish_reason.value,
    }
    known: JsonObject = {
        "not_evaluated_reason": result.reason,
        "error_type": result.error_type,
        "scope": None if result.scope is Scope.RUN else result.scope,
        "stage": None if result.stage is Stage.LIVE else result.stage,
        "muted": True if result.muted_until_unix_nano else None,
        "tool_call_id": result.tool_call_id,
    }
    return metadata | {key: value for key, value in known.items() if value is not None}


@lru_cache(maxsize=1024)
def _key(key: str) -> bytes:
    return encode_key(key)
