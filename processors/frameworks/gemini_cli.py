"""Gemini CLI: operations of its own under the GenAI conventions' attribute names.

The messages of a tool span hold the scheduler's request and its completed call.
"""

from typing import Final

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    JsonValue,
    ToolError,
    ValueState,
    decode_arguments,
    decode_result,
)
from processors.shapes.attribute_reading import OPERATION, first_text, operation_name
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.messages import read_messages
from processors.spans import Attributes, Span

_INPUTS = ("gen_ai.input.messages", "input-json")
_OUTPUTS = ("gen_ai.output.messages", "output-json")
_ROLES = {
    "tool_call": SpanRole.TOOL,
    "agent_call": SpanRole.AGENT,
    "llm_call": SpanRole.MODEL,
    "user_prompt": SpanRole.WORKFLOW,
}


def _role(span: Span) -> SpanRole | None:
    return _ROLES.get(operation_name(span.attributes))


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    request = _object(attributes, _INPUTS)
    result, error = _completed(attributes)
    arguments = ABSENT
    if request is not None and "args" in request:
        arguments = decode_arguments(request["args"])
    return ToolReading(
        name=first_text(attributes, ("gen_ai.tool.name",)) or _text(request, "name"),
        call_id=first_text(attributes, ("gen_ai.tool.call.id", "gen_ai.tool.call_id"))
        or _text(request, "callId"),
        arguments=arguments,
        result=result,
        error=error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    return AgentReading(
        name=first_text(attributes, ("gen_ai.agent.name",)),
        session=first_text(attributes, ("gen_ai.conversation.id",)),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if operation_name(attributes) == "tool_call":
        return Conversation()
    return Conversation(
        lambda: read_messages(_first(attributes, _INPUTS), "user"),
        lambda: read_messages(_first(attributes, _OUTPUTS), "assistant"),
    )


def _completed(attributes: Attributes) -> tuple[DecodedValue, ToolError | None]:
    """The result, and the error, of the completed call that the scheduler recorded."""
    call = _object(attributes, _OUTPUTS)
    response = call.get("response") if call is not None else None
    if call is None or not isinstance(response, dict):
        raw = _first(attributes, _OUTPUTS)
        return (ABSENT if raw is None else decode_result(raw)), None
    parts = response.get("responseParts")
    result = ABSENT
    message = _text(response, "error")
    for part in parts if isinstance(parts, list) else ():
        function = part.get("functionResponse") if isinstance(part, dict) else None
        content = function.get("response") if isinstance(function, dict) else None
        if isinstance(content, dict):
            inner = content["output"] if content.keys() == {"output"} else content
            result = decode_result(content["error"] if content.keys() == {"error"} else inner)
            break
    if call.get("status") != "error":
        return result, None
    return result, ToolError(type=_text(response, "errorType"), message=message or result.text or "")


def _object(attributes: Attributes, keys: tuple[str, ...]) -> JsonObject | None:
    raw = _first(attributes, keys)
    decoded = decode_arguments(raw) if raw is not None else ABSENT
    value = decoded.value
    return value if decoded.state is ValueState.PRESENT and isinstance(value, dict) else None


def _first(attributes: Attributes, keys: tuple[str, ...]) -> JsonValue:
    for key in keys:
        value = attributes.text(key)
        if value is not None:
            return value
    return None


def _text(mapping: JsonObject | None, key: str) -> str:
    value = None if mapping is None else mapping.get(key)
    return value if isinstance(value, str) else ""


DIALECT: Final = Dialect("gemini_cli", (OPERATION,), _role, _tool, _agent, _conversation, rank=5)
