"""OpenAI Codex CLI: spans name calls and hold no content, which is in log records."""

from collections.abc import Sequence
from dataclasses import replace

from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import Dialect, SpanRole
from processors.shapes.dialect_functions import Sign, agent_fields, by_signs, tool_fields
from processors.shapes.model_usage import usage_under
from processors.shapes.reported_runs import ReportedCall, ReportedRun, call_in, merged_calls
from processors.spans import LogRecord

_TURN = "session_task.turn"

DIALECT = Dialect(
    name="codex",
    rank=5,
    keys=("codex.tool.phase", "codex.turn.reasoning_effort"),
    role=by_signs(
        Sign(SpanRole.TOOL, values=(("codex.tool.phase", "dispatch"),)),
        Sign(SpanRole.OTHER, present=("codex.tool.phase",)),
        Sign(SpanRole.AGENT, names=(_TURN,)),
        Sign(SpanRole.OTHER),
    ),
    tool=tool_fields(name=("tool_name",), call_id=("call_id",), arguments=("arguments",), result=("output",)),
    agent=agent_fields(session=("thread.id",), input=("prompt",)),
    usage=usage_under(
        ("model",),
        ("codex.turn.token_usage.input_tokens",),
        ("codex.turn.token_usage.output_tokens",),
        ("codex.turn.token_usage.cached_input_tokens",),
    ),
    has_usage=lambda span: span.name == _TURN,
)


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """What is of a call goes to that with the record's id, a prompt to the turn that it began."""
    for record in reversed(records):  # the last decision about a call counts
        if record.name in ("codex.tool_result", "codex.tool_decision"):
            call = content.call(record.attributes.text("call_id") or "")
            if call is not None:
                content.offer(call, "arguments", record.attributes.text("arguments"))
                content.offer(call, "output", record.attributes.text("output"))
                content.offer_decision(call, record)
    for record in records:
        if record.name == "codex.user_prompt":
            span = content.span(record.message.span_id)
            turn = None if span is None else content.ancestor(span, SpanRole.AGENT)
            if turn is not None:
                content.offer(turn, "prompt", record.attributes.text("prompt"))


def _reported_run(records: Sequence[LogRecord]) -> ReportedRun | None:
    """Where no spans are sent: a conversation's first prompt and its calls; no turns, no answers."""
    run = ReportedRun(session=records[0].attributes.text("conversation.id") or "")
    reports: list[ReportedCall] = []
    for record in records:
        attributes = record.attributes
        if record.name == "codex.user_prompt":
            run.prompt = run.prompt or attributes.text("prompt")
            continue
        call = call_in(record, name="tool_name", call_id="call_id", arguments="arguments")
        reports.append(replace(call, result=attributes.text("output")))
    run.calls = merged_calls(reports)
    return run if reports and len(reports) < len(records) else None


RECORDS = ContentRecords(
    _join_records,
    frozenset({"codex.user_prompt", "codex.tool_decision", "codex.tool_result"}),
    session_key="conversation.id",
    run=_reported_run,
)
