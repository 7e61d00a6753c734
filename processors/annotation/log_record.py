"""Evaluation results as OTLP log records: the event `gen_ai.evaluation.result` in the logs data model.

A record belongs to the span that it judges: it carries that span's trace and span id and travels under its
resource and scope. It has what the span event of the same result has, and whose run it is, since a reader of
logs has no span next to them.
"""

import struct
from collections.abc import Iterable, Sequence

from processors.annotation.result_attributes import (
    EVENT_NAME,
    LOG_ATTRIBUTE,
    encode_key,
    encode_result_attributes,
    encode_run_attributes,
    encode_text_attribute,
)
from processors.annotation.span_event import GradedRuns, results_by_carrier
from processors.model import AgentRun, EvaluationResult, Outcome, time_text
from processors.spans import LogRecord, RawRecord, RawSpan, encode_field

_FIXED64 = struct.Struct("<Q")

_INFO, _WARN, _ERROR = (
    b"\x10" + bytes((number,)) + encode_field(0x1A, text)
    for number, text in ((9, b"INFO"), (13, b"WARN"), (17, b"ERROR"))
)
_SEVERITY = {
    Outcome.PASS: _INFO,
    Outcome.FAIL: _WARN,
    Outcome.ERROR: _ERROR,
    Outcome.NOT_EVALUATED: _INFO,
}
"""`severity_number` and `severity_text` by outcome: what a reader of logs filters by."""

_END_TIME = encode_key("tracegrade.run.end_time")
_EVENT_NAME_FIELD = encode_field(0x62, EVENT_NAME.encode())
_EARLY_NAME_FIELD = encode_field(0x62, b"tracegrade.evaluation.early_failure")


def result_records(
    spans: Sequence[RawSpan], graded: GradedRuns, *, time_unix_nano: int, instance: str
) -> list[RawSpan]:
    """One log record for each result, in the order of the spans that carry them.

    Each is (id of the span, bytes of the LogRecord message, envelope of the span). The envelope's bytes
    serve as well: ResourceLogs and ScopeLogs number their fields as ResourceSpans and ScopeSpans do.
    """
    carried = results_by_carrier(spans, graded)
    if not carried:
        return []
    records: list[RawSpan] = []
    whose = {id(run): encode_run_attributes(run, LOG_ATTRIBUTE) + _end_of(run) for run, _ in graded}
    for span_id, _, envelope in spans:
        for run, result in carried.pop(span_id, ()):
            attributes = whose[id(run)] + encode_result_attributes(result, run, instance, LOG_ATTRIBUTE)
            record = _log_record(attributes, result.outcome, run.trace_id, span_id, time_unix_nano)
            records.append((span_id, record, envelope))
    return records


def early_failure_record(
    spans: Sequence[RawSpan], run: AgentRun, result: EvaluationResult, *, time_unix_nano: int, instance: str
) -> list[RawSpan]:
    """A failure of a run that goes on, as a log record of another name: the result itself is still to come.

    It is on the span that stands for the run so far, one of `spans`, in the form of `result_records`.
    """
    texts = {
        "gen_ai.evaluation.name": result.name,
        "gen_ai.evaluation.explanation": result.explanation,
        "tracegrade.evaluator.id": result.evaluator,
        "tracegrade.criteria.hash": result.criteria_hash,
        "tracegrade.severity": result.severity.value,
        "tracegrade.instance": instance,
        "tracegrade.tenant": run.tenant,
    }
    attributes = encode_run_attributes(run, LOG_ATTRIBUTE) + b"".join(
        encode_text_attribute(LOG_ATTRIBUTE, encode_key(key), text) for key, text in texts.items() if text
    )
    return [
        (
            span_id,
            _log_record(attributes, result.outcome, run.trace_id, span_id, time_unix_nano, _EARLY_NAME_FIELD),
            envelope,
        )
        for span_id, _, envelope in spans
        if span_id == run.carrier_span_id
    ]


def count_result_records(records: Iterable[RawRecord]) -> int:
    """How many of the log records are evaluation results, whoever made them: content that is never graded."""
    name = EVENT_NAME.encode()
    return sum(name in payload and LogRecord(payload).name == EVENT_NAME for _, payload, _ in records)


def _end_of(run: AgentRun) -> bytes:
    """When the run ended, which unlike the time of the verdict does not depend on who grades it."""
    if not run.end_unix_nano:
        return b""
    return encode_text_attribute(LOG_ATTRIBUTE, _END_TIME, time_text(run.end_unix_nano))


def _log_record(
    attributes: bytes,
    outcome: Outcome,
    trace_id: bytes,
    span_id: bytes,
    time_unix_nano: int,
    event_name: bytes = _EVENT_NAME_FIELD,
) -> bytes:
    time = _FIXED64.pack(time_unix_nano)
    return b"".join(
        (
            b"\x09",
            time,
            _SEVERITY[outcome],
            attributes,
            encode_field(0x4A, trace_id),
            encode_field(0x52, span_id),
            b"\x59",
            time,
            event_name,
        )
    )
