"""tRPC-Agent-Go: GenAI conventions, with tools offered and tools not found told in a way of its own."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.available_tools import read_tool_definitions
from processors.spans.span import Span

_EVENT_ID = "trpc.go.agent.event_id"
_DEFINITIONS = "gen_ai.request.tool.definitions"
_TOOL_NAME = "gen_ai.tool.name"
_NOT_FOUND = "<not found>"
_TOOL_SPAN = "execute_tool "


class _TrpcAgentGo:
    name: Final = "trpc_agent_go"
    rank: Final = 9
    keys: Final = (_EVENT_ID, _DEFINITIONS)
    frameworks: Final = (
        Framework(
            name="tRPC-Agent-Go",
            versions="1, its own spans or its Langfuse exporter (built from 1.11)",
            reads="`execute_tool` and `invoke_agent`; a result out of the response that it is written in; "
            "the name of a tool that does not exist from the span's; the `(merged tools)` span is left out",
            capture="nothing; `WithSpanAttributePolicy` can leave content out",
            unknown="parallel and cycle agents, for which it makes no span",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if _DEFINITIONS in attributes:
            return SpanRole.MODEL
        return SpanRole.TOOL if attributes.get(_TOOL_NAME) == _NOT_FOUND else None

    def tool(self, span: Span) -> ToolReading:
        is_named = span.name.startswith(_TOOL_SPAN)
        return ToolReading(name=span.name.removeprefix(_TOOL_SPAN) if is_named else "")

    def agent(self, span: Span) -> AgentReading:
        return AgentReading()

    def conversation(self, span: Span) -> Conversation:
        return Conversation().offering(lambda: read_tool_definitions(span.attributes.get(_DEFINITIONS)))


DIALECT = _TrpcAgentGo()
