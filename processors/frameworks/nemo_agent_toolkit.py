"""NVIDIA NeMo Agent Toolkit: `nat.*` attributes of its steps; `aiq.*` before it was renamed."""

from typing import Final

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    JsonValue,
    ValueState,
    decode_result,
    parse_text,
    text_value,
)
from processors.shapes.attribute_reading import first_arguments, first_result, first_text, first_value
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.messages import ChatMessage, read_messages
from processors.spans import Attributes, Span

_EVENTS = ("nat.event_type", "aiq.event_type")
_STEP = ("nat.subspan.name", "aiq.subspan.name")
_FUNCTION = ("nat.function.name", "aiq.function.name")
_INPUT = "input.value"
_OUTPUT = "output.value"

_UNKNOWN = "unknown"
_ROOT = "root"
_WORKFLOW = "<workflow>"
_TYPES = frozenset(
    {
        "auto_memory_agent", "parallel_executor", "per_user_react_agent", "react_agent", "reasoning_agent",
        "responses_api_agent", "rewoo_agent", "router_agent", "sequential_executor", "tool_calling_agent",
    }
)  # fmt: skip
"""Kinds of workflows that come with the toolkit: they name no agent."""
_GRAPH = "LangGraph"
_ANSWER_TYPES = ("AIMessageChunk", "ai")
_CHAT_KEYS = frozenset({"input_message", "messages"})
_ASKED_FOR = "\n\nTool calls: "
"""What stands between the text of a model's answer and the calls that it asks for."""


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    event = first_text(attributes, _EVENTS)
    if event == "WORKFLOW_START":
        return SpanRole.AGENT
    if event == "TOOL_START":
        return SpanRole.TOOL
    if event == "LLM_START":
        return SpanRole.MODEL
    if event in ("GUARDRAIL_START", "EVALUATOR_START"):
        return SpanRole.JUDGE
    if event != "FUNCTION_START":
        return SpanRole.OTHER
    if not _is_function_itself(attributes):
        if first_text(attributes, _STEP) == _GRAPH:
            return SpanRole.AGENT
        return SpanRole.MODEL if _chained_answer(attributes) else SpanRole.OTHER
    return SpanRole.AGENT if _is_workflow(attributes) else SpanRole.TOOL


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, (_OUTPUT,))
    is_function = first_text(attributes, _EVENTS) == "FUNCTION_START"
    return ToolReading(
        name=first_text(attributes, _STEP),
        inferred_name=span.name,
        call_id=opened.call_id,
        arguments=first_arguments(attributes, (_INPUT,)),
        arguments_are_doubtful=is_function,  # they are what the function took: defaults are filled in
        result=opened.result,
        error=opened.error,
        runs_agent=is_function and not _chat(attributes).keys().isdisjoint(_CHAT_KEYS),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    if first_text(attributes, _EVENTS) == "FUNCTION_START" and not _is_function_itself(attributes):
        return AgentReading(hides_calls=first_text(attributes, _STEP) == _GRAPH)
    session = first_text(attributes, ("session.id", "nat.conversation.id"))
    return AgentReading(
        name=_name(span),
        session="" if session == _UNKNOWN else session,
        input=_asked(attributes),
        output=first_output(attributes, (_OUTPUT,)),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if first_text(attributes, _EVENTS) != "LLM_START":
        return Conversation(read_output=lambda: _chained_answer(attributes))
    return Conversation(
        lambda: read_messages(attributes.get(_INPUT), "user"),
        lambda: _answered(first_text(attributes, (_OUTPUT,))),
        lambda: read_tool_definitions(_metadata(attributes).get("tools_schema")),
    )


def _is_function_itself(attributes: Attributes) -> bool:
    """Whether the step is a function's own, not one of what a framework does within it."""
    return first_text(attributes, ("nat.framework", "aiq.framework")) in ("", _UNKNOWN) and (
        first_text(attributes, _STEP) == first_text(attributes, _FUNCTION)
    )


def _chained_answer(attributes: Attributes) -> list[ChatMessage]:
    """The text of the message that a chain around a model's call made, without the calls it asks for.

    Versions that tell of chains lose the steps after an agent's first turn, so that those would be all calls.
    """
    if _is_function_itself(attributes):
        return []
    message = first_value(attributes, (_OUTPUT,))
    if not isinstance(message, dict) or message.get("type") not in _ANSWER_TYPES:
        return []
    text = message.get("content")
    return [ChatMessage("assistant", text if isinstance(text, str) else "")]


def _is_workflow(attributes: Attributes) -> bool:
    return (
        first_text(attributes, ("nat.function.parent_name", "aiq.function.parent_name")) == _ROOT
        or first_text(attributes, _FUNCTION) == _WORKFLOW
    )


def _name(span: Span) -> str:
    for name in (span.name, first_text(span.attributes, _STEP)):
        if name != _WORKFLOW:
            return "" if name in _TYPES else name
    return ""


def _chat(attributes: Attributes) -> JsonObject:
    """The input, where it is an object."""
    value = first_value(attributes, (_INPUT,))
    return value if isinstance(value, dict) else {}


def _asked(attributes: Attributes) -> DecodedValue:
    if _INPUT not in attributes:
        return ABSENT
    text = _chat(attributes).get("input_message")
    return text_value(text) if isinstance(text, str) else decode_input(attributes.get(_INPUT))


def _metadata(attributes: Attributes) -> JsonObject:
    decoded = decode_result(first_text(attributes, ("nat.metadata", "aiq.metadata")))
    if decoded.state is ValueState.PRESENT and isinstance(decoded.value, dict):
        return decoded.value
    return {}


def _answered(told: str) -> list[ChatMessage]:
    """The message of a model that the text `told` prints."""
    text, mark, printed = told.rpartition(_ASKED_FOR)
    calls: JsonValue = None
    if mark:
        try:
            calls = parse_text(printed)
        except ValueError:
            text = told
    else:
        text = told
    message: JsonObject = {"role": "assistant", "content": text.strip()}
    if isinstance(calls, list):
        message["tool_calls"] = calls
    messages: list[JsonValue] = [message]
    return read_messages(messages, "assistant")


DIALECT: Final = Dialect("nemo_agent_toolkit", _EVENTS, _role, _tool, _agent, _conversation, rank=20)
