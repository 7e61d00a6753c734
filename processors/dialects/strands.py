"""Strands Agents: GenAI conventions whose values are content blocks, in events or in attributes."""

from typing import Final

from processors.agent_run import ToolError
from processors.attribute_reading import first_result, first_text
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.messages import last_text, read_messages
from processors.result_envelope import BLOCKS
from processors.span import Span
from processors.values import text_value

_STATUS = "gen_ai.tool.status"
_STARTED = "gen_ai.event.start_time"
_DETAILS_EVENT = "gen_ai.client.inference.operation.details"
_OUTPUT = "gen_ai.output.messages"


class _Strands:
    name: Final = "strands"
    rank: Final = 8
    keys: Final = (_STATUS, _STARTED)
    frameworks: Final = (
        Framework(
            name="Strands Agents",
            versions="1 (built from 1.62), default and `gen_ai_latest_experimental`",
            reads="`execute_tool` spans are calls, `invoke_agent` spans are runs; values from the events "
            "`gen_ai.tool.message` and `gen_ai.choice`, or from attributes with the experimental conventions",
            capture="nothing",
            unknown="the session, unless the application passes `session.id` as a trace attribute",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if _STATUS in attributes:
            return SpanRole.TOOL
        return SpanRole.AGENT if attributes.get("gen_ai.operation.name") == "invoke_agent" else None

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        failed = attributes.get(_STATUS) == "error"
        return ToolReading(
            result=first_result(attributes, ("gen_ai.tool.call.result",), BLOCKS).result,
            error=ToolError(type="", message="") if failed else None,
        )

    def agent(self, span: Span) -> AgentReading:
        return AgentReading(
            session=first_text(span.attributes, ("session.id",)),
            output=text_value(_answer(span)),
        )

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


def _answer(span: Span) -> str | None:
    """The agent's answer, without the line end that printing the result puts behind it."""
    answer = None
    for event in span.events:
        if event.name == "gen_ai.choice":
            answer = event.attributes.text("message") or answer
        elif event.name == _DETAILS_EVENT and _OUTPUT in event.attributes:
            answer = (
                last_text(read_messages(event.attributes.get(_OUTPUT), "assistant"), "assistant") or answer
            )
    return None if answer is None else answer.removesuffix("\n")


DIALECT = _Strands()
