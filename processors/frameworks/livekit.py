"""LiveKit Agents: `lk.*` attributes, with content under `lk.pii.*` since version 1.7."""

from processors.model import text_value
from processors.shapes.attribute_reading import (
    OPERATION,
    first_arguments,
    first_result,
    first_text,
    first_value,
)
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.known_names import transfer_or_function
from processors.shapes.members import failure, list_at
from processors.shapes.messages import ChatMessage, assistant_messages, read_messages
from processors.spans import Attributes, Span

_TOOL_NAME = "lk.function_tool.name"
_AGENT_NAME = "lk.agent_name"
_LABEL = "lk.agent_label"
_TURN = "lk.generation_id"
_PROMPTS = ("lk.pii.user_input", "lk.user_input", "lk.pii.user_transcript", "lk.user_transcript")
_CHAT = ("lk.pii.chat_ctx", "lk.chat_ctx")
_ANSWER = ("lk.pii.response.text", "lk.response.text")
_CALLS = ("lk.pii.response.function_calls", "lk.response.function_calls")


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if _TOOL_NAME in attributes:
        return SpanRole.TOOL
    if any(key in attributes for key in (*_CHAT, *_CALLS)):
        return SpanRole.MODEL
    if OPERATION in attributes:
        return SpanRole.OTHER  # what it stands for is in there
    if span.name == "agent_session" or _TURN in attributes:
        return SpanRole.AGENT
    return SpanRole.WORKFLOW if _AGENT_NAME in attributes else SpanRole.OTHER


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, ("lk.pii.function_tool.output", "lk.function_tool.output"))
    failed = attributes.get("lk.function_tool.is_error") is True
    name = first_text(attributes, (_TOOL_NAME,))
    return ToolReading(
        name=name,
        call_id=first_text(attributes, ("lk.function_tool.id",)),
        arguments=first_arguments(
            attributes, ("lk.pii.function_tool.arguments", "lk.function_tool.arguments")
        ),
        result=opened.result,
        error=failure(opened.result.text) if failed else opened.error,
        category=transfer_or_function(name),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    # Before turns were operations each was one answer of the model, which may have requested calls.
    answer = first_text(attributes, _ANSWER) if OPERATION in attributes else ""
    return AgentReading(
        name=first_text(attributes, (_AGENT_NAME, _LABEL)),
        input=text_value(first_text(attributes, _PROMPTS) or None),
        output=text_value(answer or None),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    return Conversation(
        lambda: _given(attributes),
        lambda: _answered(attributes),
        lambda: read_tool_definitions(attributes.get("lk.function_tools")),
    )


def _given(attributes: Attributes) -> list[ChatMessage]:
    contexts = (first_value(attributes, (key,)) for key in _CHAT)
    context = next((context for context in contexts if context is not None), None)
    return read_messages(context.get("items") if isinstance(context, dict) else context, "user")


def _answered(attributes: Attributes) -> list[ChatMessage]:
    calls = [call for key in _CALLS for call in list_at(first_value(attributes, (key,)))]
    return assistant_messages(first_text(attributes, _ANSWER), calls)


DIALECT = Dialect(
    "livekit",
    (_TOOL_NAME, _AGENT_NAME, _LABEL, _TURN, *_CHAT, *_CALLS),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=5,
)
