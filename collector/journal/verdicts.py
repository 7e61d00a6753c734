"""How a trace was graded, so that it can be delivered after a restart as it was graded.

The runs are not written: rebuilding is deterministic, so the results and the time of grading are enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from collector.journal.records import DamagedRecord
from collector.trace import FinishedTrace, GradedTrace
from processors.model import (
    EvaluationResult,
    FinishReason,
    JsonObject,
    JsonValue,
    NotEvaluatedReason,
    Outcome,
    RunReference,
    Severity,
    Stage,
    decode_json,
    encode_json,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdicts:
    """Why and how a trace left the buffer, when and by whom it was graded, and the results of each run.

    There are none for a trace that could not be graded and left unchanged. Of a `quarantined` one nothing is
    rebuilt (`FinishedTrace`).
    """

    reason: FinishReason
    was_quiet: bool
    interrupted: bool
    backfill: bool
    quarantined: bool
    unix_nano: int
    instance: str
    results: Sequence[Sequence[EvaluationResult]]


def encode_verdicts(trace: FinishedTrace, graded: GradedTrace) -> bytes:
    """The content of the record: verdicts as they are, whatever of them may be shown.

    Without those that are not JSON, which no evaluator should give: after a restart such a trace has none.
    """
    runs = graded.graded_runs
    head: JsonObject = {
        "reason": trace.reason.value,
        "was_quiet": trace.was_quiet,
        "interrupted": trace.interrupted,
        "backfill": trace.backfill,
        "unix_nano": runs[0].graded_unix_nano if runs else 0,
        "instance": runs[0].instance if runs else "",
    }
    if graded.quarantined:
        head["quarantined"] = True
    try:
        return encode_json({**head, "runs": [[_written(result) for result in run.results] for run in runs]})
    except (TypeError, ValueError, RecursionError):
        return encode_json({**head, "runs": []})


def decode_verdicts(content: bytes) -> StoredVerdicts:
    """What `encode_verdicts` wrote.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    try:
        stored = decode_json(content)
        if not isinstance(stored, dict):
            raise TypeError("not an object")
        runs = _typed(stored["runs"], list)
        return StoredVerdicts(
            reason=FinishReason(_typed(stored["reason"], str)),
            was_quiet=_typed(stored["was_quiet"], bool),
            interrupted=_typed(stored["interrupted"], bool),
            backfill=_typed(stored["backfill"], bool),
            quarantined=_typed(stored.get("quarantined", False), bool),
            unix_nano=_typed(stored["unix_nano"], int),
            instance=_typed(stored["instance"], str),
            results=[[_read(_typed(result, dict)) for result in _typed(run, list)] for run in runs],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedRecord(f"a record of verdicts cannot be read: {error}") from error


def _written(result: EvaluationResult) -> JsonObject:
    written: JsonObject = {
        "name": result.name,
        "evaluator": result.evaluator,
        "version": result.evaluator_version,
        "outcome": result.outcome.value,
        "threshold": result.pass_threshold,
        "severity": result.severity.value,
        "criteria_hash": result.criteria_hash,
    }
    if result.score is not None:
        written["score"] = result.score
    if result.explanation:
        written["explanation"] = result.explanation
    if result.details:
        written["details"] = dict(result.details)
    if result.reason is not None:
        written["reason"] = result.reason.value
    if result.error_type is not None:
        written["error_type"] = result.error_type
    if result.stage is not Stage.LIVE:
        written["stage"] = result.stage.value
    if result.muted_until_unix_nano:
        written["muted_until"] = result.muted_until_unix_nano
    if result.tool_call_id is not None:
        written["tool_call_id"] = result.tool_call_id
    if result.tool_span_id is not None:
        written["tool_span_id"] = result.tool_span_id.hex()
    if result.conversation_runs:
        written["conversation_runs"] = [str(run) for run in result.conversation_runs]
    return written


def _read(written: Mapping[str, JsonValue]) -> EvaluationResult:
    reason = written.get("reason")
    span_id = written.get("tool_span_id")
    score = written.get("score")
    return EvaluationResult(
        name=_typed(written["name"], str),
        evaluator=_typed(written["evaluator"], str),
        evaluator_version=_typed(written["version"], str),
        outcome=Outcome(_typed(written["outcome"], str)),
        score=None if score is None else float(_typed(score, (int, float))),
        explanation=_typed(written.get("explanation", ""), str),
        details=_typed(written.get("details", {}), dict),
        reason=None if reason is None else NotEvaluatedReason(_typed(reason, str)),
        error_type=_optional_text(written.get("error_type")),
        pass_threshold=float(_typed(written["threshold"], (int, float))),
        severity=Severity(_typed(written["severity"], str)),
        criteria_hash=_typed(written["criteria_hash"], str),
        stage=Stage(_typed(written.get("stage", Stage.LIVE.value), str)),
        muted_until_unix_nano=_typed(written.get("muted_until", 0), int),
        tool_call_id=_optional_text(written.get("tool_call_id")),
        tool_span_id=None if span_id is None else bytes.fromhex(_typed(span_id, str)),
        conversation_runs=tuple(
            RunReference.parsed(_typed(run, str))
            for run in _typed(written.get("conversation_runs", []), list)
        ),
    )


def _optional_text(value: JsonValue) -> str | None:
    return None if value is None else _typed(value, str)


def _typed(value: JsonValue, expected: "type[T] | tuple[type[T], ...]") -> T:
    if not isinstance(value, expected):
        raise TypeError(f"expected {expected}, found {type(value).__name__}")
    return value
