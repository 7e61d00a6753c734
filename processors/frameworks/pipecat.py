"""Pipecat: a conversation and its model's turns; only the histories of later turns hold calls."""

from msgspec.structs import replace

from processors.model import json_value
from processors.shapes.attribute_reading import first_text
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.dialect import Conversation, Dialect, SpanRole
from processors.shapes.dialect_functions import agent_fields
from processors.shapes.messages import CallResponse, ChatMessage, read_messages
from processors.spans import Attributes, Span

_SCOPES = frozenset({"pipecat", "pipecat.turn"})
_ID = "conversation.id"
_INPUT = "input"
_OUTPUT = "output"

_CANCELLED = "CANCELLED"
"""What replaces a result in a history that is empty, or never arrives; results are JSON."""


def _role(span: Span) -> SpanRole | None:
    if span.envelope.scope_name not in _SCOPES:
        return None
    if "conversation.type" in span.attributes:
        return SpanRole.AGENT
    return SpanRole.MODEL if _INPUT in span.attributes else SpanRole.OTHER


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _INPUT not in attributes:
        return Conversation()
    return Conversation(
        lambda: _given(attributes),
        lambda: _answered(attributes),
        lambda: read_tool_definitions(attributes.get("tools")),
    )


def _given(attributes: Attributes) -> list[ChatMessage]:
    messages = read_messages(json_value(attributes.get(_INPUT)), "user")
    for message in messages:
        message.responses = [
            _opened(response) for response in message.responses if response.content != "IN_PROGRESS"
        ]
    return messages


def _opened(response: CallResponse) -> CallResponse:
    if response.content == "COMPLETED":
        return replace(response, has_content=False)
    return replace(response, failed=True) if response.content == _CANCELLED else response


def _answered(attributes: Attributes) -> list[ChatMessage]:
    """The answer's text, and an empty message for what else it may have held."""
    text = first_text(attributes, (_OUTPUT,))
    empty = ChatMessage("assistant")
    return [ChatMessage("assistant", text), empty] if text else [empty]


DIALECT = Dialect(
    "pipecat",
    (_ID, _INPUT, _OUTPUT),
    _role,
    agent=agent_fields(session=(_ID,)),
    conversation=_conversation,
    rank=5,
)
