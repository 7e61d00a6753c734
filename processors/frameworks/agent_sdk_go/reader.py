"""Agent SDK for Go (Ingenimax): Langfuse attributes, with agents and failures told in another way."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_text
from processors.model.agent_run import ToolError
from processors.spans.span import Span

_AGENT = "langfuse.observation.metadata.agent_name"
_ERROR = "tool.error"
_RESULT = "tool.result"
_RUN_SPANS = frozenset({"agent.Run", "agent.RunStream"})


class _AgentSdkGo:
    name: Final = "agent_sdk_go"
    rank: Final = 20
    keys: Final = (_AGENT, _ERROR)
    frameworks: Final = (
        Framework(
            name="Agent SDK for Go (Ingenimax)",
            versions="0.2, its Langfuse tracer, read from its source of June 2026",
            reads="`agent.Run` spans are runs, named by the agent's name in their metadata; spans with "
            "`tool.name` are calls, which failed where they have a `tool.error`",
            capture="nothing",
            unknown="call ids; that an agent ran as a tool of another; calls with its plain OpenTelemetry "
            "tracer, which makes no span for a call",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if span.name in _RUN_SPANS and _AGENT in attributes:
            return SpanRole.AGENT
        return SpanRole.TOOL if _ERROR in attributes and _RESULT in attributes else None

    def tool(self, span: Span) -> ToolReading:
        return ToolReading(error=ToolError(type="", message=first_text(span.attributes, (_ERROR,))))

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            name=first_text(attributes, (_AGENT,)),
            session=first_text(attributes, ("langfuse.session.id",)),
        )

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _AgentSdkGo()
