"""NVIDIA NeMo Agent Toolkit: `nat.*` attributes of its steps; `aiq.*` before it was renamed."""

from msgspec.structs import replace

from processors.model import json_value, parse_text, text_value
from processors.shapes.attribute_reading import first_object, first_text
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import roles, tool_fields, whole_name
from processors.shapes.members import list_at, text_at
from processors.shapes.messages import ChatMessage, assistant_messages, read_messages
from processors.spans import Attributes, Span

_EVENTS = ("nat.event_type", "aiq.event_type")
_ROLES = roles(
    agent="WORKFLOW_START", tool="TOOL_START", model="LLM_START", judge=("GUARDRAIL_START", "EVALUATOR_START")
)
_STEP = ("nat.subspan.name", "aiq.subspan.name")
_FUNCTION = ("nat.function.name", "aiq.function.name")
_INPUT = "input.value"
_OUTPUT = "output.value"

_UNKNOWN = "unknown"
_WORKFLOW = "<workflow>"
_TYPES = frozenset(
    {
        "auto_memory_agent", "parallel_executor", "per_user_react_agent", "react_agent", "reasoning_agent",
        "responses_api_agent", "rewoo_agent", "router_agent", "sequential_executor", "tool_calling_agent",
    }
)  # fmt: skip
"""Kinds of workflows that come with the toolkit: they name no agent."""
_GRAPH = "LangGraph"
_CALLS = "\n\nTool calls: "
"""What separates the text of a model's answer from the calls in it."""


_fields_of_tool = tool_fields(name=_STEP, inferred_name=whole_name, arguments=(_INPUT,), result=(_OUTPUT,))


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    event = first_text(attributes, _EVENTS)
    if event != "FUNCTION_START":
        return _ROLES.get(event, SpanRole.OTHER)
    if not _is_function_itself(attributes):
        if first_text(attributes, _STEP) == _GRAPH:
            return SpanRole.AGENT
        return SpanRole.MODEL if _chained_answer(attributes) else SpanRole.OTHER
    parent = first_text(attributes, ("nat.function.parent_name", "aiq.function.parent_name"))
    is_workflow = parent == "root" or first_text(attributes, _FUNCTION) == _WORKFLOW
    return SpanRole.AGENT if is_workflow else SpanRole.TOOL


def _tool(span: Span) -> ToolReading:
    is_function = first_text(span.attributes, _EVENTS) == "FUNCTION_START"
    given = first_object(span.attributes, (_INPUT,))
    # A function's arguments are what it took: defaults are filled in.
    return replace(
        _fields_of_tool(span),
        arguments_are_doubtful=is_function,
        runs_agent=is_function and not given.keys().isdisjoint(("input_message", "messages")),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    if first_text(attributes, _EVENTS) == "FUNCTION_START" and not _is_function_itself(attributes):
        return AgentReading(hides_calls=first_text(attributes, _STEP) == _GRAPH)
    session = first_text(attributes, ("session.id", "nat.conversation.id"))
    name = span.name if span.name != _WORKFLOW else first_text(attributes, _STEP)
    text = first_object(attributes, (_INPUT,)).get("input_message")
    return AgentReading(
        name="" if name == _WORKFLOW or name in _TYPES else name,
        session="" if session == _UNKNOWN else session,
        input=text_value(text) if isinstance(text, str) else first_input(attributes, (_INPUT,)),
        output=first_output(attributes, (_OUTPUT,)),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if first_text(attributes, _EVENTS) != "LLM_START":
        return Conversation(read_output=lambda: _chained_answer(attributes))
    return Conversation(
        lambda: read_messages(json_value(attributes.get(_INPUT)), "user"),
        lambda: _answered(first_text(attributes, (_OUTPUT,))),
        lambda: read_tool_definitions(
            first_object(attributes, ("nat.metadata", "aiq.metadata")).get("tools_schema")
        ),
    )


def _is_function_itself(attributes: Attributes) -> bool:
    """Whether the step is a function's own, not one of what a framework does within it."""
    return first_text(attributes, ("nat.framework", "aiq.framework")) in ("", _UNKNOWN) and (
        first_text(attributes, _STEP) == first_text(attributes, _FUNCTION)
    )


def _chained_answer(attributes: Attributes) -> list[ChatMessage]:
    """The text of the message that a chain around a model's call returned, without the calls in it.

    Versions that report chains lose the steps after an agent's first turn, so that those would be all calls.
    """
    if _is_function_itself(attributes):
        return []
    message = first_object(attributes, (_OUTPUT,))
    is_answer = message.get("type") in ("AIMessageChunk", "ai")
    return [ChatMessage("assistant", text_at(message, "content"))] if is_answer else []


def _answered(printed: str) -> list[ChatMessage]:
    """The message of a model in its printed form."""
    text, mark, calls = printed.rpartition(_CALLS)
    try:
        listed = list_at(parse_text(calls)) if mark else []
    except ValueError:
        mark, listed = "", []
    return assistant_messages((text if mark else printed).strip(), listed) or [ChatMessage("assistant")]


DIALECT = Dialect("nemo_agent_toolkit", _EVENTS, _role, _tool, _agent, _conversation, rank=20)
