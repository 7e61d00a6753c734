"""Evaluation results as `gen_ai.evaluation.result` span events, appended to spans without decoding them.

The event and its `gen_ai.evaluation.*` attributes are those of the OpenTelemetry GenAI semantic conventions;
everything of our own stands under `tracegrade.`.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from processors.agent_run import AgentRun
from processors.evaluation_result import EvaluationResult, NotEvaluatedReason
from processors.protobuf_wire import encode_field
from processors.span import RawSpan, Span

EVENT_NAME = "gen_ai.evaluation.result"

_EVENT_NAME_BYTES = EVENT_NAME.encode()
_EVENT_NAME_FIELD = encode_field(0x12, _EVENT_NAME_BYTES)
_FIXED64 = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")


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
    parts = [
        b"\x09",
        _FIXED64.pack(time_unix_nano),
        _EVENT_NAME_FIELD,
        _constant_attributes(
            result.name,
            result.evaluator,
            result.evaluator_version,
            result.outcome.value,
            result.pass_threshold,
            result.criteria_hash,
            result.severity.value,
            run.finish_reason.value,
            instance,
        ),
    ]
    if result.score is not None:
        parts.append(_double_attribute("gen_ai.evaluation.score.value", result.score))
    if result.explanation:
        parts.append(_text_attribute("gen_ai.evaluation.explanation", result.explanation))
    if result.error_type is not None:
        parts.append(_text_attribute("error.type", result.error_type))
    if result.reason is not None:
        parts.append(_text_attribute("tracegrade.not_evaluated.reason", result.reason.value))
    if result.tool_call_id is not None:
        parts.append(_text_attribute("tracegrade.tool.call.id", result.tool_call_id))
    return encode_field(0x5A, b"".join(parts))


def count_results(spans: Iterable[RawSpan]) -> int:
    """How many evaluation events the spans already carry."""
    count = 0
    for _, payload, _ in spans:
        if _EVENT_NAME_BYTES in payload:
            count += sum(event.name == EVENT_NAME for event in Span(payload).events)
    return count


@lru_cache(maxsize=4096)
def _constant_attributes(
    name: str,
    evaluator: str,
    version: str,
    outcome: str,
    pass_threshold: float,
    criteria_hash: str,
    severity: str,
    finish_reason: str,
    instance: str,
) -> bytes:
    texts: Mapping[str, str] = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.label": outcome,
        "tracegrade.evaluator.id": evaluator,
        "tracegrade.evaluator.version": version,
        "tracegrade.criteria.hash": criteria_hash,
        "tracegrade.severity": severity,
        "tracegrade.finish_reason": finish_reason,
        "tracegrade.instance": instance,
    }
    return b"".join(_text_attribute(key, value) for key, value in texts.items()) + _double_attribute(
        "tracegrade.pass_threshold", pass_threshold
    )


def _text_attribute(key: str, value: str) -> bytes:
    encoded = value.encode("utf-8", "replace")
    return encode_field(0x1A, _key_field(key) + encode_field(0x12, encode_field(0x0A, encoded)))


def _double_attribute(key: str, value: float) -> bytes:
    return encode_field(0x1A, _key_field(key) + encode_field(0x12, b"\x21" + _DOUBLE.pack(value)))


@lru_cache(maxsize=64)
def _key_field(key: str) -> bytes:
    return encode_field(0x0A, key.encode())
