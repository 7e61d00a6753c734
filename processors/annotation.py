"""Evaluation results as `gen_ai.evaluation.result` span events, appended to spans without decoding them.

The event and its `gen_ai.evaluation.*` attributes are those of the OpenTelemetry GenAI semantic conventions;
everything of our own stands under `tracegrade.`.
"""

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

from processors.agent_run import AgentRun
from processors.evaluation_result import (
    EvaluationResult,
    NotEvaluatedReason,
    Outcome,
    Severity,
    Stage,
)
from processors.finish_reason import FinishReason
from processors.protobuf_wire import encode_field, encode_varint
from processors.span import RawSpan, Span

EVENT_NAME = "gen_ai.evaluation.result"

_EVENT_NAME_BYTES = EVENT_NAME.encode()
_EVENT_NAME_FIELD = encode_field(0x12, _EVENT_NAME_BYTES)
_FIXED64 = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")


_MUTED = encode_field(0x1A, encode_field(0x0A, b"tracegrade.muted") + encode_field(0x12, b"\x10\x01"))
"""The attribute `tracegrade.muted` with the value true."""


def makes_event(result: EvaluationResult) -> bool:
    """False for the one result that leaves no event: nothing applied to the run."""
    return result.reason is not NotEvaluatedReason.NO_CRITERIA


def append_results(
    spans: Sequence[RawSpan],
    graded: Iterable[tuple[AgentRun, Sequence[EvaluationResult]]],
    *,
    time_unix_nano: int,
    instance: str,
) -> Sequence[RawSpan]:
    """The spans with one event per result on the span that carries it; every other byte is unchanged.

    A verdict on a single call goes to that call's span, every other one to the run's carrier span. Where
    that span is not among `spans` the first span carries the event, so no verdict is lost.
    """
    events: dict[bytes, list[bytes]] = {}
    for run, results in graded:
        for result in results:
            if makes_event(result):
                carrier = result.tool_span_id or run.carrier_span_id or b""
                events.setdefault(carrier, []).append(evaluation_event(result, run, time_unix_nano, instance))
    if not events or not spans:
        return spans
    known = {span[0] for span in spans}
    first = spans[0][0]
    for carrier in [carrier for carrier in events if carrier not in known]:
        events.setdefault(first, []).extend(events.pop(carrier))
    annotated: list[RawSpan] = []
    for span in spans:
        appended = events.pop(span[0], None)
        annotated.append((span[0], span[1] + b"".join(appended), span[2]) if appended else span)
    return annotated


def evaluation_event(result: EvaluationResult, run: AgentRun, time_unix_nano: int, instance: str) -> bytes:
    """One result as the encoded `events` field of a Span message."""
    event = (
        b"\x09"
        + _FIXED64.pack(time_unix_nano)
        + _constant_fields(
            result.name,
            result.evaluator,
            result.evaluator_version,
            result.outcome,
            result.pass_threshold,
            result.criteria_hash,
            result.severity,
            result.stage,
            run.finish_reason,
            instance,
        )
    )
    if result.score is not None:
        event += _SCORE_VALUE + _DOUBLE.pack(result.score)
    if result.explanation:
        event += _text_attribute(_EXPLANATION, result.explanation)
    if result.error_type is not None:
        event += _text_attribute(_ERROR_TYPE, result.error_type)
    if result.reason is not None:
        event += _text_attribute(_REASON, result.reason.value)
    if result.muted_until_unix_nano:
        event += _MUTED
    if result.tool_call_id is not None:
        event += _text_attribute(_CALL_ID, result.tool_call_id)
    return encode_field(0x5A, event)


def count_results(spans: Iterable[RawSpan]) -> int:
    """How many evaluation events the spans already carry."""
    count = 0
    for _, payload, _ in spans:
        if _EVENT_NAME_BYTES in payload:
            count += sum(event.name == EVENT_NAME for event in Span(payload).events)
    return count


@lru_cache(maxsize=4096)
def _constant_fields(
    name: str,
    evaluator: str,
    version: str,
    outcome: Outcome,
    pass_threshold: float,
    criteria_hash: str,
    severity: Severity,
    stage: Stage,
    finish_reason: FinishReason,
    instance: str,
) -> bytes:
    """The name of the event and those of its attributes that are the same for many results."""
    texts = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.label": outcome.value,
        "tracegrade.evaluator.id": evaluator,
        "tracegrade.evaluator.version": version,
        "tracegrade.criteria.hash": criteria_hash,
        "tracegrade.severity": severity.value,
        "tracegrade.finish_reason": finish_reason.value,
        "tracegrade.instance": instance,
    }
    if stage is not Stage.LIVE:
        texts["tracegrade.stage"] = stage.value
    attributes = [_text_attribute(_key_field(key), value) for key, value in texts.items()]
    threshold = _double_attribute("tracegrade.pass_threshold") + _DOUBLE.pack(pass_threshold)
    return _EVENT_NAME_FIELD + b"".join(attributes) + threshold


def _text_attribute(key_field: bytes, value: str) -> bytes:
    encoded = value.encode("utf-8", "replace")
    return encode_field(0x1A, key_field + encode_field(0x12, encode_field(0x0A, encoded)))


def _double_attribute(key: str) -> bytes:
    """An attribute but for its value, the eight bytes to follow."""
    key_field = _key_field(key)
    # tag and length of the value, tag of its double, the double
    return b"\x1a" + encode_varint(len(key_field) + 11) + key_field + b"\x12\x09\x21"


def _key_field(key: str) -> bytes:
    return encode_field(0x0A, key.encode())


_SCORE_VALUE = _double_attribute("gen_ai.evaluation.score.value")
_EXPLANATION = _key_field("gen_ai.evaluation.explanation")
_ERROR_TYPE = _key_field("error.type")
_REASON = _key_field("tracegrade.not_evaluated.reason")
_CALL_ID = _key_field("tracegrade.tool.call.id")
