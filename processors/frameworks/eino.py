"""Eino: the APMPlus callback's spans of components, each with what went in and out as flattened messages."""

from processors.model import CallCategory, DecodedValue, decode_result
from processors.shapes.attribute_reading import (
    first_arguments,
    first_decoded,
    first_result,
    first_text,
    flattened_list,
)
from processors.shapes.chat_envelope import decode_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.members import list_at, text_at, value_at
from processors.shapes.messages import ChatMessage, Role, read_messages
from processors.spans import Attributes, AttributeValue, Span

_COMPONENT = "runinfo.component"
_NAME = "runinfo.name"
_GENERIC_NAMES = frozenset({"", "ReAct", "ReActAgent"})
_INPUT = "gen_ai.prompt.0.content"
_OUTPUT = "gen_ai.completion.0.content"
_AGENT_INPUT = ('{"Messages":', '[{"Messages":')
"""How the input begins that only an agent of the ADK is given."""
_ROLES = {"Tool": SpanRole.TOOL, "ChatModel": SpanRole.MODEL}


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    role = _ROLES.get(attributes.text(_COMPONENT) or "")
    if role is not None:
        return role
    is_run = attributes.get("gen_ai.span.kind") == "workflow" or _is_agent(attributes)
    return SpanRole.AGENT if is_run else SpanRole.OTHER


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    is_agent = attributes.get("runinfo.type") == "agentTool"
    return ToolReading(
        name=first_text(attributes, (_NAME,)),
        inferred_name=span.name,
        arguments=first_arguments(attributes, (_INPUT,)),
        result=first_result(attributes, (_OUTPUT,)).result,
        category=CallCategory.AGENT if is_agent else CallCategory.FUNCTION,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    name = first_text(attributes, (_NAME,))
    return AgentReading(
        name="" if name in _GENERIC_NAMES else name,
        session=first_text(attributes, ("gen_ai.session.id",)),
        input=lambda: _given(attributes),
        output=lambda: first_output(attributes, ("gen_ai.output", _OUTPUT)),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    component = attributes.text(_COMPONENT)
    if component == "ChatModel":
        return Conversation(
            lambda: _messages(attributes, "gen_ai.prompt.", "user"),
            lambda: _messages(attributes, "gen_ai.completion.", "assistant"),
        )
    if component == "ToolsNode":
        return Conversation(
            read_output=lambda: read_messages([decode_result(attributes.get(_INPUT)).value], "assistant")
        )
    return Conversation()


def _is_agent(attributes: Attributes) -> bool:
    return (attributes.text(_INPUT) or "").startswith(_AGENT_INPUT)


def _given(attributes: Attributes) -> DecodedValue:
    def decode(raw: AttributeValue) -> DecodedValue:
        value = decode_result(raw).value
        if isinstance(value, list) and len(value) == 1:  # what is streamed is a list of pieces
            value = value[0]
        is_agents = isinstance(value, dict) and "Messages" in value and _is_agent(attributes)
        return decode_input(value_at(value, "Messages") if is_agents else raw)

    return first_decoded(attributes, ("gen_ai.input", _INPUT), decode)


def _messages(attributes: Attributes, prefix: str, role: Role) -> list[ChatMessage]:
    """The messages, out of the one in which those that have no text are written as a whole."""
    messages = flattened_list(attributes, prefix)
    content = text_at(messages, 0, "content") if len(messages) == 1 else ""
    whole = list_at(decode_result(content).value) if content.startswith('[{"role":') else []
    return read_messages(whole or messages, role)


DIALECT = Dialect("eino", (_COMPONENT,), _role, _tool, _agent, _conversation, rank=8)
