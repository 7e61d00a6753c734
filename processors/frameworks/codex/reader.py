"""OpenAI Codex CLI: the spans of its own tracing, which name calls and tell no content."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_text
from processors.spans.span import Span

_PHASE = "codex.tool.phase"
_DISPATCH = "dispatch"
_EFFORT = "codex.turn.reasoning_effort"
_TURN = "session_task.turn"


class _Codex:
    name: Final = "codex"
    rank: Final = 5
    keys: Final = (_PHASE, _EFFORT)
    frameworks: Final = (
        Framework(
            name="OpenAI Codex CLI",
            versions="built from 0.169",
            reads="a turn (`session_task.turn`) is a run, spans with the `codex.tool.phase` `dispatch` "
            "are calls",
            capture="`trace_exporter` in `[otel]` of its configuration; nothing puts content into the spans",
            unknown="arguments, results, input and answer; that a call failed; the agent's name: the "
            "service's name stands in",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        if _PHASE in span.attributes:
            return SpanRole.TOOL if span.attributes.get(_PHASE) == _DISPATCH else SpanRole.OTHER
        return SpanRole.AGENT if span.name == _TURN else SpanRole.OTHER

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        return ToolReading(
            name=first_text(attributes, ("tool_name",)),
            call_id=first_text(attributes, ("call_id",)),
        )

    def agent(self, span: Span) -> AgentReading:
        return AgentReading(session=first_text(span.attributes, ("thread.id",)))

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _Codex()
