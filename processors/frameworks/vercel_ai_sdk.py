"""Vercel AI SDK: the `ai.*` attributes of versions 3 to 6, and of the legacy telemetry of version 7.

Version 7 itself writes the GenAI semantic conventions.
"""

from typing import Final

from processors.model import ABSENT, DecodedValue, ValueState, decode_result, text_value
from processors.shapes.attribute_reading import first_text
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, tool_fields
from processors.shapes.messages import ChatMessage, add_request, last_text, read_messages
from processors.spans import Attributes, Span

_OPERATION = "ai.operationId"
_ROLES = {
    "ai.toolCall": SpanRole.TOOL,
    "ai.generateText": SpanRole.AGENT,
    "ai.streamText": SpanRole.AGENT,
    "ai.generateObject": SpanRole.AGENT,
    "ai.streamObject": SpanRole.AGENT,
}


def _role(span: Span) -> SpanRole | None:
    operation = span.attributes.text(_OPERATION)
    if operation is None:
        return None
    if operation.endswith((".doGenerate", ".doStream")):
        return SpanRole.MODEL
    return _ROLES.get(operation, SpanRole.OTHER)


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    return AgentReading(
        name=first_text(attributes, ("ai.telemetry.functionId", "resource.name")),
        session=first_text(
            attributes, ("ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.session_id")
        ),
        input=_asked(attributes),
        output=_answer(attributes),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    return Conversation(
        lambda: read_messages(attributes.get("ai.prompt.messages"), "user"),
        lambda: _answered(attributes),
        lambda: read_tool_definitions(attributes.get("ai.prompt.tools")),
    )


def _asked(attributes: Attributes) -> DecodedValue:
    """The prompt: a text or messages, beside the system's text."""
    if "ai.prompt" not in attributes:
        return ABSENT
    decoded = decode_result(attributes.get("ai.prompt"))
    if decoded.state is ValueState.PRESENT and isinstance(decoded.value, dict):
        for key in ("prompt", "messages"):
            prompt = decoded.value.get(key)
            text = prompt if isinstance(prompt, str) else last_text(read_messages(prompt, "user"), "user")
            if text:
                return text_value(text)
    return decode_input(attributes.get("ai.prompt"))


def _answer(attributes: Attributes) -> DecodedValue:
    """The text of the answer, or the object that was asked for."""
    text = attributes.text("ai.response.text")
    if text is not None:
        return text_value(text)
    return first_output(attributes, ("ai.response.object",))


def _answered(attributes: Attributes) -> list[ChatMessage]:
    finish_reason = attributes.text("ai.response.finishReason") or ""
    message = ChatMessage("assistant", attributes.text("ai.response.text") or "", finish_reason=finish_reason)
    if "ai.response.toolCalls" in attributes:
        calls = decode_result(attributes.get("ai.response.toolCalls")).value
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                add_request(message, call)
    return [message] if message.text or message.requests else []


DIALECT: Final = Dialect(
    "vercel_ai_sdk",
    (_OPERATION,),
    _role,
    tool=tool_fields(
        name=("ai.toolCall.name",),
        call_id=("ai.toolCall.id",),
        arguments=("ai.toolCall.args",),
        result=("ai.toolCall.result",),
    ),
    agent=_agent,
    conversation=_conversation,
    rank=5,
)
