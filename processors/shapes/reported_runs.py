"""Runs that log records alone report: what they hold, and the spans that stand for them.

Some programs send no spans, and name no trace in their records. Those of one prompt then make a run. It is
written as spans of the GenAI conventions, so that it is rebuilt as any other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from processors.model import JsonValue, json_text
from processors.shapes.decisions import DECISION, DECISION_SOURCE, CallDecision, reported_decision
from processors.shapes.model_usage import USAGE_KEYS
from processors.spans import LogRecord, RawSpan

INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"

_NANO_PER_MILLI = 1_000_000
_WHOLE_NUMBER = re.compile("[0-9]{1,12}")
"""Durations are numbers or their text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCall:
    """A tool call that one record reports when it has ended; what is None or empty is unknown."""

    record: LogRecord
    name: str
    call_id: str = ""
    arguments: str | None = None
    result: str | None = None
    error: str | None = None
    """Why it failed; empty where only that it did is known."""
    error_type: str = ""
    decision: CallDecision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTurn:
    """A request to a model that one record reports when it has ended."""

    record: LogRecord
    model: str
    """Its tokens are in the record, in attributes that spans have as well."""
    given: Sequence[JsonValue] = ()
    answered: Sequence[JsonValue] = ()
    """Messages."""


@dataclass(slots=True, kw_only=True)
class ReportedRun:
    """What the records of one prompt report."""

    session: str
    prompt: str | None = None
    answer: str | None = None
    calls: list[ReportedCall] = field(default_factory=list)
    turns: list[ReportedTurn] = field(default_factory=list)
    is_over: bool = False
    """Whether the last record shows that no other can follow."""


def has_failed(record: LogRecord) -> bool:
    """Whether a record reports that something did not succeed; some write that as a text."""
    return record.attributes.get("success") in (False, "false")


def decision_in(record: LogRecord) -> CallDecision | None:
    """What a record reports to have been decided about a call."""
    return reported_decision(record.attributes.get("decision"), record.attributes.get("source"))


def call_in(record: LogRecord, *, name: str, call_id: str, arguments: str) -> ReportedCall:
    """The call in a record that has these attributes; coding agents agree on those of how it ended."""
    attributes = record.attributes
    return ReportedCall(
        record=record,
        name=attributes.text(name) or "",
        call_id=attributes.text(call_id) or "",
        arguments=attributes.text(arguments),
        error=(attributes.text("error") or "") if has_failed(record) else None,
        error_type=attributes.text("error_type") or "",
        decision=decision_in(record),
    )


def merged_calls(reports: Iterable[ReportedCall]) -> list[ReportedCall]:
    """Each call once: what the report of its end leaves out is taken from that of the decision about it."""
    calls: dict[str, ReportedCall] = {}
    for place, call in enumerate(reports):
        call_id = call.call_id or f"#{place}"
        known = calls.get(call_id, call)
        calls[call_id] = replace(
            call,
            arguments=call.arguments or known.arguments,
            result=known.result if call.result is None else call.result,
            error=known.error if call.error is None else call.error,
            decision=call.decision or known.decision,
        )
    return [*calls.values()]


def turn_in(
    record: LogRecord, given: Sequence[JsonValue] = (), answered: Sequence[JsonValue] = ()
) -> ReportedTurn:
    """The request to a model in a record."""
    model = record.attributes.text("model") or ""
    return ReportedTurn(record=record, model=model, given=given, answered=answered)


def derived_id(*parts: str) -> bytes:
    """The trace id for a run that these texts identify."""
    return sha256("\0".join(parts).encode()).digest()[:16]


def spans_of(run: ReportedRun, records: Sequence[LogRecord], trace_id: bytes) -> list[RawSpan]:
    """The run as spans of a trace with this id: the agent's, and one for each call and turn."""
    envelope = records[0].envelope
    times = [record.unix_nano for record in records]
    root = _span(trace_id, b"run", "invoke_agent", min(times), max(times))
    _set(root, {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": run.session})
    if run.prompt is not None:
        _set(root, {INPUT_MESSAGES: [{"role": "user", "content": run.prompt}]})
    if run.answer is not None:
        _set(root, {OUTPUT_MESSAGES: [{"role": "assistant", "content": run.answer}]})
    spans = [root]
    for call in run.calls:
        span = _below(root, call.record, f"execute_tool {call.name}")
        _set(span, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name})
        _set(span, {"gen_ai.tool.call.id": call.call_id, "error.type": call.error_type})
        _set(span, {"gen_ai.tool.call.arguments": call.arguments, "gen_ai.tool.call.result": call.result})
        if call.decision is not None:
            _set(span, {DECISION: call.decision.decision.value, DECISION_SOURCE: call.decision.source})
        if call.error is not None:
            span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=call.error))
        spans.append(span)
    for turn in run.turns:
        span = _below(root, turn.record, f"chat {turn.model}")
        _set(span, {"gen_ai.operation.name": "chat", "gen_ai.request.model": turn.model})
        reported = turn.record.attributes
        used = {key: reported.get(key) for key in reported if key in USAGE_KEYS}
        _set(span, {key: value for key, value in used.items() if isinstance(value, int)})
        _set(span, {INPUT_MESSAGES: [*turn.given], OUTPUT_MESSAGES: [*turn.answered]})
        spans.append(span)
    return [(span.span_id, span.SerializeToString(), envelope) for span in spans]


def _below(root: Span, record: LogRecord, name: str) -> Span:
    end = record.unix_nano
    milliseconds = str(record.attributes.get("duration_ms"))
    duration = int(milliseconds) * _NANO_PER_MILLI if _WHOLE_NUMBER.fullmatch(milliseconds) else 0
    span = _span(root.trace_id, record.raw, name, max(end - duration, 0), end)
    span.parent_span_id = root.span_id
    return span


def _span(trace_id: bytes, identity: bytes, name: str, start: int, end: int) -> Span:
    return Span(
        trace_id=trace_id,
        span_id=sha256(trace_id + identity).digest()[:8],
        name=name,
        start_time_unix_nano=start,
        end_time_unix_nano=end,
    )


def _set(span: Span, attributes: Mapping[str, JsonValue]) -> None:
    """Add those attributes that are not empty."""
    for key, value in attributes.items():
        if isinstance(value, int):
            span.attributes.append(KeyValue(key=key, value=AnyValue(int_value=value)))
        elif value is not None and value not in ("", []):
            text = value if isinstance(value, str) else json_text(value)
            span.attributes.append(KeyValue(key=key, value=AnyValue(string_value=text)))
