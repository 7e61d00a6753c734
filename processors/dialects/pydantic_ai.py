"""Pydantic AI: what its formats 1 to 6 write beside, or instead of, the GenAI conventions.

Up to format 2 arguments and results have keys of their own; in all formats the agent's span holds the
whole history, with the place where this run begins.
"""

from typing import Final

from processors.agent_run import CallCategory
from processors.attribute_reading import first_arguments, first_result, first_text
from processors.chat_envelope import decode_output
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.messages import ChatMessage, last_text, read_messages
from processors.recorded_events import read_recorded_events
from processors.span import Span
from processors.values import text_value

_ALL_MESSAGES = "pydantic_ai.all_messages"
_ALL_EVENTS = "all_messages_events"
_NEW_MESSAGE_INDEX = "pydantic_ai.new_message_index"
_ARGUMENTS = "tool_arguments"
_RESULT = "tool_response"
_TOOL_NAME = "gen_ai.tool.name"
_OUTPUT_FUNCTION = "running output function"


class _PydanticAI:
    name: Final = "pydantic_ai"
    rank: Final = 8
    keys: Final = (
        _ARGUMENTS,
        _RESULT,
        _ALL_MESSAGES,
        _ALL_EVENTS,
        "final_result",
        "model_request_parameters",
    )
    frameworks: Final = (
        Framework(
            name="Pydantic AI",
            versions="formats 1 to 6 (built from pydantic-ai-slim 2.68)",
            reads="`execute_tool` and `running tool` spans are calls, `invoke_agent` and `agent run` spans "
            "are runs; a request to try again is a failed call",
            capture="nothing; `include_content=False` leaves values out, names and ids stay",
            unknown="nothing",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if _TOOL_NAME in attributes:
            return SpanRole.TOOL if _ARGUMENTS in attributes or _RESULT in attributes else None
        if _ALL_MESSAGES in attributes or _ALL_EVENTS in attributes:
            return SpanRole.AGENT
        if "model_request_parameters" in attributes:
            return SpanRole.MODEL if "events" in attributes else None
        return SpanRole.AGENT if "agent_name" in attributes and "model_name" in attributes else None

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        opened = first_result(attributes, (_RESULT,))
        return ToolReading(
            name=first_text(attributes, (_TOOL_NAME,)),
            call_id=first_text(attributes, ("gen_ai.tool.call.id",)),
            arguments=first_arguments(attributes, (_ARGUMENTS,)),
            result=opened.result,
            error=opened.error,
            category=CallCategory.FINAL_ANSWER
            if span.name.startswith(_OUTPUT_FUNCTION)
            else CallCategory.FUNCTION,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        conversation = self.conversation(span)
        answered = last_text(conversation.output, "assistant")
        output = text_value(answered)
        if answered is None and "final_result" in attributes:
            output = decode_output(attributes.get("final_result"))
        return AgentReading(
            name=first_text(attributes, ("gen_ai.agent.name", "agent_name")),
            session=first_text(attributes, ("gen_ai.conversation.id",)),
            input=text_value(last_text(conversation.input, "user")),
            output=output,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if _ALL_MESSAGES not in attributes and _ALL_EVENTS not in attributes:
            return (
                read_recorded_events(attributes.get("events")) if "events" in attributes else Conversation()
            )
        messages = read_messages(
            attributes.get(_ALL_MESSAGES if _ALL_MESSAGES in attributes else _ALL_EVENTS)
        )
        start = attributes.get(_NEW_MESSAGE_INDEX)
        return _split_history(messages, start if isinstance(start, int) and start >= 0 else 0)


def _split_history(messages: list[ChatMessage], start: int) -> Conversation:
    """A whole history as input up to the run's last request by the user, and what came after it."""
    position = start
    while position < len(messages) and messages[position].role in ("system", "user"):
        if messages[position].responses:
            break
        position += 1
    return Conversation(lambda: messages[:position], lambda: messages[position:])


DIALECT = _PydanticAI()
