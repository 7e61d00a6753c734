"""Spring AI: observations of tool calls under `spring.ai.tool.*`."""

from typing import Final

from processors.attribute_reading import first_arguments, first_result, first_text
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.span import Span

_TOOL_NAME = "spring.ai.tool.definition.name"
_KIND = "spring.ai.kind"


class _SpringAi:
    name: Final = "spring_ai"
    rank: Final = 5
    keys: Final = (_TOOL_NAME, _KIND)
    frameworks: Final = (
        Framework(
            name="Spring AI",
            versions="1.0 and newer",
            reads="spans with `spring.ai.tool.definition.name` are calls; values from "
            "`spring.ai.tool.call.arguments` and `.result`",
            capture="`spring.ai.tools.observations.include-content=true`",
            unknown="the agent: the local root stands for it, the service's name for its name",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        return SpanRole.TOOL if _TOOL_NAME in span.attributes else SpanRole.OTHER

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
        return AgentReading()

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _SpringAi()
