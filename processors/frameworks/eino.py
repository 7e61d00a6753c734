"""Eino: the APMPlus callback's spans of components, each with what went in and out as flattened messages."""

from typing import Final

from processors.model import ABSENT, CallCategory, DecodedValue, JsonValue, decode_result
from processors.shapes.attribute_reading import first_arguments, first_result, first_text, flattened_list
from processors.shapes.chat_envelope import decode_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.messages import ChatMessage, read_messages
from processors.spans import Attributes, AttributeValue, Span

_COMPONENT = "runinfo.component"
_NAME = "runinfo.name"
_ROOT = "workflow"
_AGENT_TOOL = "agentTool"
_GENERIC_NAMES = frozenset({"", "ReAct", "ReActAgent"})
_PROMPTS = "gen_ai.prompt."
_COMPLETIONS = "gen_ai.completion."
_INPUT = "gen_ai.prompt.0.content"
_OUTPUT = "gen_ai.completion.0.content"
_AGENT_INPUT = ('{"Messages":', '[{"Messages":')
_MESSAGES = '[{"role":'
_ROLES = {"Tool": SpanRole.TOOL, "ChatModel": SpanRole.MODEL}


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    role = _ROLES.get(attributes.text(_COMPONENT) or "", SpanRole.OTHER)
    if role is not SpanRole.OTHER:
        return role
    is_run = attributes.get("gen_ai.span.kind") == _ROOT or _is_agent(attributes)
    return SpanRole.AGENT if is_run else SpanRole.OTHER


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    is_agent = attributes.get("runinfo.type") == _AGENT_TOOL
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
        input=lambda: _asked(attributes),
        output=lambda: _answered(attributes),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    component = attributes.text(_COMPONENT)
    if component == "ChatModel":
        return Conversation(
            lambda: read_messages(_flattened(attributes, _PROMPTS), "user"),
            lambda: read_messages(_flattened(attributes, _COMPLETIONS), "assistant"),
        )
    if component == "ToolsNode":
        return Conversation(read_output=lambda: _message(attributes.get(_INPUT)))
    return Conversation()


def _is_agent(attributes: Attributes) -> bool:
    """Whether the component was given what only an agent of the ADK is given."""
    return (attributes.text(_INPUT) or "").startswith(_AGENT_INPUT)


def _asked(attributes: Attributes) -> DecodedValue:
    key = "gen_ai.input" if "gen_ai.input" in attributes else _INPUT
    if key not in attributes:
        return ABSENT
    told = decode_result(attributes.get(key)).value
    if isinstance(told, list) and len(told) == 1:  # what is streamed is a list of pieces
        told = told[0]
    if isinstance(told, dict) and "Messages" in told and _is_agent(attributes):
        return decode_input(told["Messages"])
    return decode_input(attributes.get(key))


def _answered(attributes: Attributes) -> DecodedValue:
    key = "gen_ai.output" if "gen_ai.output" in attributes else _OUTPUT
    return first_output(attributes, (key,))


def _flattened(attributes: Attributes, prefix: str) -> list[JsonValue]:
    """The messages, out of the one in which those that have no text are written as a whole."""
    messages = flattened_list(attributes, prefix)
    only = messages[0] if len(messages) == 1 else None
    content = only.get("content") if isinstance(only, dict) else None
    if isinstance(content, str) and content.startswith(_MESSAGES):
        told = decode_result(content).value
        return told if isinstance(told, list) else messages
    return messages


def _message(raw: AttributeValue) -> list[ChatMessage]:
    told: JsonValue = [decode_result(raw).value]
    return read_messages(told, "assistant")


DIALECT: Final = Dialect("eino", (_COMPONENT,), _role, _tool, _agent, _conversation, rank=8)
