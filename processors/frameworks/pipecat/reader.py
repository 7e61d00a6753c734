"""Pipecat: a conversation and its model's turns; only the histories of later turns tell of calls."""

from dataclasses import replace
from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_text
from processors.frameworks.shapes.available_tools import read_tool_definitions
from processors.frameworks.shapes.messages import CallResponse, ChatMessage, read_messages
from processors.spans.attributes import Attributes
from processors.spans.span import Span

_SCOPES = frozenset({"pipecat", "pipecat.turn"})
_CONVERSATION = "conversation.type"
_ID = "conversation.id"
_INPUT = "input"
_OUTPUT = "output"

_RUNNING = "IN_PROGRESS"
_EMPTY = "COMPLETED"
_CANCELLED = "CANCELLED"
"""What stands in a history for a result that is not there yet, is empty, or never comes; results are JSON."""


class _Pipecat:
    name: Final = "pipecat"
    rank: Final = 5
    keys: Final = (_ID, _INPUT, _OUTPUT)
    frameworks: Final = (
        Framework(
            name="Pipecat",
            versions="1 (built from pipecat-ai 1.14)",
            reads="the conversation is the run; calls and results from the history that the model's next "
            "turn was given, as no span tells of a call",
            capture="`enable_tracing=True` of the pipeline's worker",
            unknown="the agent's name: the service's name stands in; that a call failed, which only its "
            "result may tell; empty results; calls after which the model was not asked again; what "
            "speech-to-speech services called",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        if span.envelope.scope_name not in _SCOPES:
            return None
        if _CONVERSATION in span.attributes:
            return SpanRole.AGENT
        return SpanRole.MODEL if _INPUT in span.attributes else SpanRole.OTHER

    def tool(self, span: Span) -> ToolReading:
        return ToolReading()

    def agent(self, span: Span) -> AgentReading:
        return AgentReading(session=first_text(span.attributes, (_ID,)))

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if _INPUT not in attributes:
            return Conversation()
        conversation = Conversation(lambda: _asked(attributes), lambda: _answered(attributes))
        return conversation.offering(lambda: read_tool_definitions(attributes.get("tools")))


def _asked(attributes: Attributes) -> list[ChatMessage]:
    messages = read_messages(attributes.get(_INPUT), "user")
    for message in messages:
        if message.responses:
            message.responses = [
                _told(response) for response in message.responses if response.content != _RUNNING
            ]
    return messages


def _told(response: CallResponse) -> CallResponse:
    if response.content == _EMPTY:
        return replace(response, has_content=False)
    return replace(response, failed=True) if response.content == _CANCELLED else response


def _answered(attributes: Attributes) -> list[ChatMessage]:
    """The answer's text, and an empty message for what else it may have held."""
    text = first_text(attributes, (_OUTPUT,))
    empty = ChatMessage("assistant")
    return [ChatMessage("assistant", text), empty] if text else [empty]


DIALECT = _Pipecat()
