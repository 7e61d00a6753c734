"""Genkit: `genkit:*` attributes of its actions: flows, prompts and agents, models and tools."""

from typing import Final

from processors.model import (
    ABSENT,
    CallCategory,
    DecodedValue,
    JsonObject,
    JsonValue,
    ValueState,
    decode_result,
    text_value,
)
from processors.shapes.attribute_reading import first_arguments, first_result, first_text, first_value
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_output, first_input
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.messages import ChatMessage, read_messages
from processors.shapes.model_usage import UsageReading, usage_in_object
from processors.spans import Attributes, Span

_TYPE = "genkit:type"
_SUBTYPE = "genkit:metadata:subtype"
_NAME = ("genkit:name",)
_INPUT = "genkit:input"
_OUTPUT = "genkit:output"
_ACTION = "action"
_MULTIPART_TOOL = "tool.v2"
_MULTIPART_KEYS = {"output", "metadata"}
_ROLES = {
    "tool": SpanRole.TOOL,
    _MULTIPART_TOOL: SpanRole.TOOL,
    "model": SpanRole.MODEL,
    "flow": SpanRole.AGENT,
    "agent": SpanRole.AGENT,
    "dotprompt": SpanRole.AGENT,
    "evaluator": SpanRole.JUDGE,
}


def _role(span: Span) -> SpanRole | None:
    kind = _kind(span.attributes)
    return None if not kind else _ROLES.get(kind, SpanRole.OTHER)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, (_OUTPUT,))
    return ToolReading(
        name=first_text(attributes, _NAME),
        inferred_name=span.name,
        arguments=first_arguments(attributes, (_INPUT,)),
        result=_single(attributes, opened.result),
        error=opened.error,
        category=CallCategory.FUNCTION,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    return AgentReading(
        name=first_text(attributes, _NAME) if _role(span) is SpanRole.AGENT else "",
        session=first_text(attributes, ("genkit:metadata:agent:sessionId", "genkit:sessionId")),
        input=first_input(attributes, (_INPUT,)),
        output=_answer(attributes),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _kind(attributes) != "model":
        return Conversation()
    return Conversation(
        lambda: _messages(_object(attributes, _INPUT).get("messages"), "user"),
        lambda: _messages([_answered(_object(attributes, _OUTPUT))], "assistant"),
        lambda: read_tool_definitions(_object(attributes, _INPUT).get("tools")),
    )


def _tells_usage(span: Span) -> bool:
    return _kind(span.attributes) == "model"


def _usage(span: Span) -> UsageReading:
    attributes = span.attributes
    told = usage_in_object(_object(attributes, _OUTPUT).get("usage"))
    return UsageReading(first_text(attributes, _NAME), told)


def _single(attributes: Attributes, result: DecodedValue) -> DecodedValue:
    """The result out of what a tool that may return several parts returns; nothing at all is null there."""
    value = result.value
    if _kind(attributes) != _MULTIPART_TOOL or not isinstance(value, dict) or value.keys() - _MULTIPART_KEYS:
        return result
    output = value.get("output")
    return DecodedValue(None, "null", ValueState.PRESENT) if output is None else decode_result(output)


def _kind(attributes: Attributes) -> str:
    """What kind of action the span is of, or what kind of span where it is of none."""
    kind = attributes.text(_TYPE) or _ACTION
    return (attributes.text(_SUBTYPE) or _ACTION) if kind == _ACTION else kind


def _object(attributes: Attributes, key: str) -> JsonObject:
    value = first_value(attributes, (key,))
    return value if isinstance(value, dict) else {}


def _answered(response: JsonObject) -> JsonValue:
    """The message in a model's response, or in the first of its candidates."""
    candidates = response.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        return candidates[0].get("message")
    return response.get("message")


def _answer(attributes: Attributes) -> DecodedValue:
    """What a run answered: a flow's own output, or the text of the response of a prompt."""
    if _OUTPUT not in attributes:
        return ABSENT
    message = _answered(_object(attributes, _OUTPUT))
    if not isinstance(message, dict) or "role" not in message:
        return decode_output(attributes.get(_OUTPUT))
    text = "\n".join(filter(None, (read.text for read in _messages([message], "assistant"))))
    return text_value(text)


def _messages(messages: JsonValue, default_role: str) -> list[ChatMessage]:
    """The messages, with requests and responses in the shape that is common to conventions."""
    if not isinstance(messages, list):
        return []
    common: list[JsonValue] = []
    for message in messages:
        if isinstance(message, dict):
            content = message.get("content")
            parts = [_part(part) for part in content] if isinstance(content, list) else content
            common.append({"role": message.get("role") or default_role, "content": parts})
    return read_messages(common)


def _part(part: JsonValue) -> JsonValue:
    if not isinstance(part, dict):
        return part
    request, response = part.get("toolRequest"), part.get("toolResponse")
    if isinstance(request, dict):
        return {
            "type": "tool_call",
            "id": request.get("ref"),
            "name": request.get("name"),
            **({"arguments": request["input"]} if "input" in request else {}),
        }
    if isinstance(response, dict):
        return {
            "type": "tool_call_response",
            "id": response.get("ref"),
            "name": response.get("name"),
            **({"response": response["output"]} if "output" in response else {}),
        }
    return part


DIALECT: Final = Dialect(
    "genkit",
    (_TYPE, _SUBTYPE),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=20,
    has_usage=_tells_usage,
    usage=_usage,
)
