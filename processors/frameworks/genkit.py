"""Genkit: `genkit:*` attributes of its actions: flows, prompts and agents, models and tools."""

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    JsonValue,
    ValueState,
    decode_result,
    text_value,
)
from processors.shapes.attribute_reading import first_arguments, first_object, first_result, first_text
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_output, first_input
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import roles
from processors.shapes.members import object_at, objects_at, value_at
from processors.shapes.messages import ChatMessage, read_messages
from processors.shapes.model_usage import UsageReading, usage_in_object
from processors.spans import Attributes, Span

_TYPE = "genkit:type"
_SUBTYPE = "genkit:metadata:subtype"
_NAME = ("genkit:name",)
_INPUT = ("genkit:input",)
_OUTPUT = ("genkit:output",)
_NULL = DecodedValue(None, "null", ValueState.PRESENT)
_ACTION = "action"
_MULTIPART_TOOL = "tool.v2"
_ROLES = roles(
    tool=("tool", _MULTIPART_TOOL), model="model", agent=("flow", "agent", "dotprompt"), judge="evaluator"
)


def _role(span: Span) -> SpanRole | None:
    return _ROLES.get(_kind(span.attributes), SpanRole.OTHER)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, _OUTPUT)
    result, value = opened.result, opened.result.value
    is_of_parts = isinstance(value, dict) and value.keys() <= {"output", "metadata"}
    if is_of_parts and _kind(attributes) == _MULTIPART_TOOL:
        output = value_at(value, "output")
        result = _NULL if output is None else decode_result(output)
    return ToolReading(
        name=first_text(attributes, _NAME),
        inferred_name=span.name,
        arguments=first_arguments(attributes, _INPUT),
        result=result,
        error=opened.error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    return AgentReading(
        name=first_text(attributes, _NAME) if _role(span) is SpanRole.AGENT else "",
        session=first_text(attributes, ("genkit:metadata:agent:sessionId", "genkit:sessionId")),
        input=first_input(attributes, _INPUT),
        output=_answer(attributes),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _kind(attributes) != "model":
        return Conversation()
    return Conversation(
        lambda: _messages(first_object(attributes, _INPUT).get("messages"), "user"),
        lambda: _messages([_message(first_object(attributes, _OUTPUT))], "assistant"),
        lambda: read_tool_definitions(first_object(attributes, _INPUT).get("tools")),
    )


def _usage(span: Span) -> UsageReading:
    attributes = span.attributes
    usage = usage_in_object(first_object(attributes, _OUTPUT).get("usage"))
    return UsageReading(first_text(attributes, _NAME), usage)


def _kind(attributes: Attributes) -> str:
    """What kind of action the span is of, or what kind of span where it is of none."""
    kind = attributes.text(_TYPE) or _ACTION
    return (attributes.text(_SUBTYPE) or _ACTION) if kind == _ACTION else kind


def _message(response: JsonObject) -> JsonValue:
    """The message in a model's response, or in the first of its candidates."""
    candidate = value_at(response, "candidates", 0)
    return value_at(candidate if isinstance(candidate, dict) else response, "message")


def _answer(attributes: Attributes) -> DecodedValue:
    """What a run answered: a flow's own output, or the text of the response of a prompt."""
    if _OUTPUT[0] not in attributes:
        return ABSENT
    message = object_at(_message(first_object(attributes, _OUTPUT)))
    if "role" not in message:
        return decode_output(attributes.get(_OUTPUT[0]))
    return text_value("\n".join(filter(None, (read.text for read in _messages([message], "assistant")))))


def _messages(messages: JsonValue, default_role: str) -> list[ChatMessage]:
    """The messages, with requests and responses in the shape that is common to conventions."""
    common: list[JsonValue] = []
    for message in objects_at(messages):
        content = message.get("content")
        parts = [_part(part) for part in content] if isinstance(content, list) else content
        common.append({"role": message.get("role") or default_role, "content": parts})
    return read_messages(common)


def _part(part: JsonValue) -> JsonValue:
    for kind, common_kind, key, common_key in (
        ("toolRequest", "tool_call", "input", "arguments"),
        ("toolResponse", "tool_call_response", "output", "response"),
    ):
        call = value_at(part, kind)
        if isinstance(call, dict):
            common = {"type": common_kind, "id": call.get("ref"), "name": call.get("name")}
            return {**common, common_key: call[key]} if key in call else common
    return part


DIALECT = Dialect(
    "genkit",
    (_TYPE, _SUBTYPE),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=20,
    usage=_usage,
    has_usage=lambda span: _kind(span.attributes) == "model",
)
