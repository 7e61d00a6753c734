"""Docker Agent, also known as cagent: `runtime.*` spans that name agents and tools, and hold no content."""

from msgspec.structs import replace

from processors.shapes.attribute_reading import first_text
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import Sign, by_signs, tool_fields
from processors.shapes.known_names import handoff_or_function
from processors.spans import Span

_TURN_SPAN = "runtime.stream"
_CALL_SPAN = "runtime.tool.call"

_fields = tool_fields(
    name=("tool.name",), call_id=("tool.call_id",), agent_name=("agent",), category=handoff_or_function
)


def _tool(span: Span) -> ToolReading:
    return replace(_fields(span), is_part=span.name != _CALL_SPAN)


def _agent(span: Span) -> AgentReading:
    # A session keeps the name of the agent that it began with, even when another one takes over.
    is_turn = span.name == _TURN_SPAN
    return AgentReading(
        name=first_text(span.attributes, ("agent",)) if is_turn else "",
        session=first_text(span.attributes, ("session.id",)),
    )


DIALECT = Dialect(
    "docker_agent",
    ("agent",),
    role=by_signs(
        Sign(SpanRole.AGENT, names=("runtime.session",)),
        Sign(SpanRole.STEP, names=(_TURN_SPAN,)),
        Sign(SpanRole.TOOL, names=(_CALL_SPAN,), present=("tool.name",)),
        Sign(SpanRole.TOOL, prefixes=("runtime.tool.handler",), present=("tool.name",)),
    ),
    tool=_tool,
    agent=_agent,
    rank=20,
)
