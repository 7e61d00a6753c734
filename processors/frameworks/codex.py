"""OpenAI Codex CLI: spans name calls and hold no content, which is in log records."""

from collections.abc import Sequence
from dataclasses import replace

from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import Dialect, SpanRole
from processors.shapes.dialect_functions import Sign, agent_fields, by_signs, tool_fields
from processors.shapes.model_usage import usage_under
from processors.shapes.reported_runs import ReportedCall, ReportedRun, call_in, merged_calls
from processors.spans import LogRecord

_TURN, _PROMPT, _SESSION = "session_task.turn", "codex.user_prompt", "conversation.id"

DIALECT = Dialect(
    name="codex",
    rank=5,
    keys=("codex.tool.phase", "codex.turn.reasoning_effort", _PROMPT),
    role=by_signs(
        Sign(SpanRole.TOOL, values=(("codex.tool.phase", "dispatch"),)),
        Sign(SpanRole.OTHER, present=("codex.tool.phase",)),
        Sign(SpanRole.AGENT, names=(_TURN,)),
        Sign(SpanRole.AGENT, present=(_PROMPT,)),
        Sign(SpanRole.OTHER),
    ),
    tool=tool_fields(name=("tool_name",), call_id=("call_id",), arguments=("arguments",), result=("output",)),
    agent=agent_fields(session=(_SESSION, "thread.id"), input=(_PROMPT,)),
    usage=usage_under(
        ("model",),
        ("codex.turn.token_usage.input_tokens",),
        ("codex.turn.token_usage.output_tokens",),
        ("codex.turn.token_usage.cached_input_tokens",),
    ),
    has_usage=lambda span: span.name == _TURN,
)


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """What is of a call goes to that with the record's id, a prompt to the turn that it began.

    Codex may exit before it has sent the span of its last turn: then what is left of the turn stands for it.
    """
    for record in reversed(records):  # the last decision about a call counts
        if record.name in ("codex.tool_result", "codex.tool_decision"):
            call = content.call(record.attributes.text("call_id") or "")
            if call is not None:
                content.offer(call, "arguments", record.attributes.text("arguments"))
                content.offer(call, "output", record.attributes.text("output"))
                content.offer_decision(call, record)
    has_turn = bool(content.with_role(SpanRole.AGENT))
    for record in records:
        if record.name == _PROMPT:
            span = content.span(record.message.span_id)
            turn = None if span is None else content.ancestor(span, SpanRole.AGENT)
            if span is not None and not has_turn:
                turn = content.top(span)
            if turn is not None:
                content.offer(turn, _PROMPT, record.attributes.text("prompt"))
                content.offer(turn, _SESSION, record.attributes.text(_SESSION))


def _reported_run(records: Sequence[LogRecord]) -> ReportedRun | None:
    """Where no spans are sent: a conversation's first prompt and its calls; no turns, no answers."""
    run = ReportedRun(session=records[0].attributes.text(_SESSION) or "")
    reports: list[ReportedCall] = []
    for record in records:
        attributes = record.attributes
        if record.name == _PROMPT:
            run.prompt = run.prompt or attributes.text("prompt")
            continue
        call = call_in(record, name="tool_name", call_id="call_id", arguments="arguments")
        reports.append(replace(call, result=attributes.text("output")))
    run.calls = merged_calls(reports)
    return run if reports and len(reports) < len(records) else None


RECORDS = ContentRecords(
    _join_records,
    frozenset({_PROMPT, "codex.tool_decision", "codex.tool_result"}),
    session_key=_SESSION,
    run=_reported_run,
)
