"""Spring AI: observations of tool calls under `spring.ai.tool.*`."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.spans.span import Span

_TOOL_NAME = "spring.ai.tool.definition.name"
_KIND = "spring.ai.kind"
_CLIENT = "chat_client"
_SESSION = "spring.ai.chat.client.conversation.id"


class _SpringAi:
    name: Final = "spring_ai"
    rank: Final = 5
    keys: Final = (_TOOL_NAME, _KIND)
    frameworks: Final = (
        Framework(
            name="Spring AI",
            versions="1.0 and newer",
            reads="spans with `spring.ai.tool.definition.name` are calls, each `chat_client` span is a run, "
            "without one the local root; values from "
            "`spring.ai.tool.call.arguments` and `.result`",
            capture="`spring.ai.tools.observations.include-content=true`",
            unknown="the agent's name: the service's stands for it; input and answer, which are logged only; "
            "that a tool failed whose error became its result",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if _TOOL_NAME in attributes:
            return SpanRole.TOOL
        return SpanRole.AGENT if attributes.get(_KIND) == _CLIENT else SpanRole.OTHER

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        opened = first_result(attributes, ("spring.ai.tool.call.result",))
        return ToolReading(
            name=first_text(attributes, (_TOOL_NAME,)),
            call_id=first_text(attributes, ("spring.ai.tool.call.id",)),
            arguments=first_arguments(attributes, ("spring.ai.tool.call.arguments",)),
            result=opened.result,
            error=opened.error,
        )

    def agent(self, span: Span) -> AgentReading:
        return AgentReading(session=first_text(span.attributes, (_SESSION,)))

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _SpringAi()
