"""Docker Agent, also known as cagent: `runtime.*` spans that name agents and tools, and hold no content."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_text
from processors.frameworks.shapes.placeholder_names import HANDOFF_TOOL_NAMES, HANDOFF_TOOL_PREFIXES
from processors.model.agent_run import CallCategory
from processors.spans.span import Span

_AGENT = "agent"
_TOOL_NAME = "tool.name"
_SESSION_SPAN = "runtime.session"
_TURN_SPAN = "runtime.stream"
_CALL_SPAN = "runtime.tool.call"
_PART_SPANS = "runtime.tool.handler"


class _DockerAgent:
    name: Final = "docker_agent"
    rank: Final = 20
    keys: Final = (_AGENT,)
    frameworks: Final = (
        Framework(
            name="Docker Agent (cagent)",
            versions="1, read from its source of March 2026",
            reads="`runtime.session` spans are runs, named by the `agent` of their `runtime.stream` spans: "
            "an agent to which another one hands over has a run of its own; `runtime.tool.call` spans "
            "are calls",
            capture="nothing can be: its spans hold no content",
            unknown="arguments, results, input and answer; that a tool answered with an error",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        if span.name == _SESSION_SPAN:
            return SpanRole.AGENT
        if span.name == _TURN_SPAN:
            return SpanRole.STEP
        is_call = span.name == _CALL_SPAN or span.name.startswith(_PART_SPANS)
        return SpanRole.TOOL if is_call and _TOOL_NAME in span.attributes else None

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        name = first_text(attributes, (_TOOL_NAME,))
        is_handoff = name in HANDOFF_TOOL_NAMES or name.startswith(HANDOFF_TOOL_PREFIXES)
        return ToolReading(
            name=name,
            call_id=first_text(attributes, ("tool.call_id",)),
            category=CallCategory.HANDOFF if is_handoff else CallCategory.FUNCTION,
            agent_name=first_text(attributes, (_AGENT,)),
            is_part=span.name != _CALL_SPAN,
        )

    def agent(self, span: Span) -> AgentReading:
        # A session keeps the name of the agent that it began with, whoever takes over.
        is_turn = span.name == _TURN_SPAN
        return AgentReading(
            name=first_text(span.attributes, (_AGENT,)) if is_turn else "",
            session=first_text(span.attributes, ("session.id",)),
        )

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _DockerAgent()
