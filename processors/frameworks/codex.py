"""OpenAI Codex CLI: spans name calls and hold no content, which is in log records."""

from collections.abc import Sequence

from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import Dialect, SpanRole
from processors.shapes.dialect_functions import Sign, agent_fields, by_signs, tool_fields
from processors.spans import LogRecord

DIALECT = Dialect(
    name="codex",
    rank=5,
    keys=("codex.tool.phase", "codex.turn.reasoning_effort"),
    role=by_signs(
        Sign(SpanRole.TOOL, values=(("codex.tool.phase", "dispatch"),)),
        Sign(SpanRole.OTHER, present=("codex.tool.phase",)),
        Sign(SpanRole.AGENT, names=("session_task.turn",)),
        Sign(SpanRole.OTHER),
    ),
    tool=tool_fields(name=("tool_name",), call_id=("call_id",), arguments=("arguments",), result=("output",)),
    agent=agent_fields(session=("thread.id",), input=("prompt",)),
)


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """Arguments and result go to the call with the record's id, a prompt to the turn that it began."""
    for record in records:
        attributes = record.attributes
        if record.name == "codex.tool_result":
            call = content.call(attributes.text("call_id") or "")
            if call is not None:
                content.offer(call, "arguments", attributes.text("arguments"))
                content.offer(call, "output", attributes.text("output"))
        elif record.name == "codex.user_prompt":
            span = content.span(record.message.span_id)
            turn = None if span is None else content.ancestor(span, SpanRole.AGENT)
            if turn is not None:
                content.offer(turn, "prompt", attributes.text("prompt"))


RECORDS = ContentRecords(
    _join_records, frozenset({"codex.user_prompt", "codex.tool_decision", "codex.tool_result"})
)
