"""Vercel AI SDK: the `ai.*` attributes of versions 3 to 6, and of the legacy telemetry of version 7.

Version 7 itself writes the GenAI semantic conventions.
"""

from processors.model import DecodedValue, json_value, text_value
from processors.shapes.attribute_reading import first_object, first_text, first_value
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole
from processors.shapes.dialect_functions import roles, tool_fields
from processors.shapes.messages import ChatMessage, assistant_messages, last_text, read_messages
from processors.spans import Attributes, Span

_OPERATION = "ai.operationId"
_ROLES = roles(
    tool="ai.toolCall", agent=("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
)


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
        input=lambda: _given(attributes),
        output=lambda: _answer(attributes),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    return Conversation(
        lambda: read_messages(json_value(attributes.get("ai.prompt.messages")), "user"),
        lambda: _answered(attributes),
        lambda: read_tool_definitions(attributes.get("ai.prompt.tools")),
    )


def _given(attributes: Attributes) -> DecodedValue:
    """The prompt: a text or messages, in addition to the system's text."""
    prompts = first_object(attributes, ("ai.prompt",))
    for key in ("prompt", "messages"):
        prompt = prompts.get(key)
        text = prompt if isinstance(prompt, str) else last_text(read_messages(prompt, "user"), "user")
        if text:
            return text_value(text)
    return first_input(attributes, ("ai.prompt",))


def _answer(attributes: Attributes) -> DecodedValue:
    """The text of the answer, or the object that was requested."""
    text = attributes.text("ai.response.text")
    return first_output(attributes, ("ai.response.object",)) if text is None else text_value(text)


def _answered(attributes: Attributes) -> list[ChatMessage]:
    text = attributes.text("ai.response.text") or ""
    messages = assistant_messages(text, first_value(attributes, ("ai.response.toolCalls",)))
    for message in messages:
        message.finish_reason = attributes.text("ai.response.finishReason") or ""
    return messages


DIALECT = Dialect(
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
