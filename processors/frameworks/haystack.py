"""Haystack's own tracing: `haystack.agent.*` and `haystack.component.*` tags, values as JSON.

Also its chat messages as Python prints them, which is how OpenInference records them.
"""

import re
from collections.abc import Iterator

from processors.model import JsonObject, JsonValue, parse_python_literal
from processors.shapes.attribute_reading import first_arguments, first_result, first_text, first_value
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.dialect import (
    AgentReading,
    Conversation,
    Dialect,
    SpanRole,
    ToolReading,
    in_messages,
)
from processors.shapes.members import failure, list_at, object_at, objects_at, text_at, value_at
from processors.shapes.messages import (
    MAX_MESSAGES,
    CallResponse,
    ChatMessage,
    read_message,
    read_messages,
)
from processors.shapes.model_usage import UsageReading, usage_in_object
from processors.spans import STATUS_ERROR, Attributes, Span

_ROLE = re.compile(r"ChatMessage\(_role=<ChatRole\.\w+: '(?P<role>\w+)'>, _content=\[")
PRINTED_CHAT = "ChatMessage(_role=<ChatRole."
"""How a printed message begins."""
_STRING = r"'[^'\\]*+(?:\\.?[^'\\]*+)*+(?:'|\Z)|\"[^\"\\]*+(?:\\.?[^\"\\]*+)*+(?:\"|\Z)"
"""A text as Python prints it, or one that was cut off: what matches always keeps the search linear."""
_BRACKET = re.compile(rf"{_STRING}|(?P<open>[\[({{])|(?P<close>[\])}}])", re.DOTALL)
_OBJECT = re.compile(
    rf"(?P<text>{_STRING})|\b[A-Z]\w*+(?P<open>\()|(?P<close>\))|\b(?P<key>\w++)=", re.DOTALL
)
_MAX_DEPTH = 8
"""How deep in the input or output of a component its messages are looked for."""


def printed_chat(value: JsonValue) -> list[ChatMessage]:
    """All printed messages in the input or output of a component or a pipeline, in order."""
    return [message for message in map(_read, _printed(value, 0)) if message is not None]


def _printed(value: JsonValue, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith(PRINTED_CHAT):
            yield value
    elif depth < _MAX_DEPTH:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in list(items)[:MAX_MESSAGES]:
            yield from _printed(item, depth + 1)


def _read(printed: str) -> ChatMessage | None:
    """The message that `printed` writes; None where its content cannot be read, as it was cut off."""
    match = _ROLE.match(printed)
    if match is None:
        return None
    depth = 1
    for bracket in _BRACKET.finditer(printed, match.end()):
        depth += (bracket["open"] is not None) - (bracket["close"] is not None)
        if depth == 0:
            break
    else:
        return None
    try:
        parts = parse_python_literal(_OBJECT.sub(_as_literal, printed[match.end() - 1 : bracket.end()]))
    except ValueError:
        return None
    fields = objects_at(parts)
    for part in fields:
        if "origin" in part:
            return read_message(_response(part, value_at(part, "origin", "tool_name")), "tool")
    content: list[JsonValue] = [{"tool_call": part} if "tool_name" in part else part for part in fields]
    return read_message({"role": match["role"], "content": content}, "user")


def _as_literal(match: re.Match[str]) -> str:
    """A piece of a printed object as that of a dict of its fields."""
    if match["text"]:
        return match["text"]
    return "{" if match["open"] else "}" if match["close"] else f"'{match['key']}': "


def _response(result: JsonObject, name: JsonValue = None) -> JsonObject:
    """A tool's result in the shape that other conventions have too."""
    return {
        "role": "tool",
        "tool_call_id": value_at(result, "origin", "id"),
        "name": name,
        "content": result.get("result"),
        "is_error": result.get("error"),
    }


_TOOL = "haystack.tool.name"
_MODEL_INPUT = "haystack.agent.step.llm.input"
_MODEL_OUTPUT = "haystack.agent.step.llm.output"
_STEP = "haystack.agent.step"
_AGENT = "haystack.agent.max_steps"
_AGENT_INPUT = "haystack.agent.input"
_COMPONENT = "haystack.component.type"
_COMPONENT_INPUT = "haystack.component.input"
_COMPONENT_OUTPUT = "haystack.component.output"
_INVOKER = "ToolInvoker"
_FAILURE = "Failed to invoke Tool `"
_RAISED = re.compile(
    r"Failed to invoke Tool `(?P<name>[^`]+)` with parameters (?P<arguments>\{.*\})\. Error: (?P<error>.*)",
    re.DOTALL,
)


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if _TOOL in attributes:
        return SpanRole.TOOL
    if _MODEL_INPUT in attributes or _MODEL_OUTPUT in attributes:
        return SpanRole.MODEL
    component = attributes.get(_COMPONENT)
    if _AGENT in attributes or component == "Agent":
        return SpanRole.AGENT
    if component == _INVOKER or '"replies": [{' in (attributes.text(_COMPONENT_OUTPUT) or ""):
        return SpanRole.MODEL
    return SpanRole.OTHER if _STEP in attributes else None


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, ("haystack.agent.step.tool.output",))
    error = opened.error
    # A failure in place of a result, else the mark of one.
    message = text_at(opened.result.value, "error") if len(object_at(opened.result.value)) == 1 else ""
    if error is None and message.startswith(_FAILURE):
        error = failure(message.partition("}. Error: ")[2] or message)
    elif error is None and attributes.get("haystack.tool.error") in (True, "true", "True"):
        error = failure()
    return ToolReading(
        name=first_text(attributes, (_TOOL,)),
        arguments=first_arguments(attributes, ("haystack.agent.step.tool.input",)),
        result=opened.result,
        error=error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    return AgentReading(
        name=first_text(attributes, ("haystack.component.name",)),
        input=in_messages,
        output=in_messages,
        # In version 2 calls have no spans of their own; where content is captured, the answers have them.
        hides_calls=_AGENT in attributes
        and _AGENT_INPUT not in attributes
        and not _calls_nothing(attributes),
        needs_no_turns=_calls_nothing(attributes),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if attributes.get(_COMPONENT) == _INVOKER:
        return Conversation(
            lambda: _messages(attributes, _COMPONENT_OUTPUT, "tool_messages") or _call_that_raised(span)
        )
    if _role(span) is SpanRole.MODEL:
        is_component = _COMPONENT in attributes
        return Conversation(
            lambda: _messages(attributes, _COMPONENT_INPUT if is_component else _MODEL_INPUT, "messages"),
            lambda: _messages(attributes, _COMPONENT_OUTPUT if is_component else _MODEL_OUTPUT, "replies"),
        )

    def given() -> list[ChatMessage]:
        return _messages(attributes, _AGENT_INPUT, "messages")

    return Conversation(
        given,
        # The outcome repeats what went in.
        lambda: _messages(attributes, "haystack.agent.output", "messages")[len(given()) :],
        lambda: read_tool_definitions(
            [entry.get("data") for entry in objects_at(first_value(attributes, ("haystack.agent.tools",)))]
        ),
    )


def _usage(span: Span) -> UsageReading:
    attributes = span.attributes
    if attributes.get(_COMPONENT) == _INVOKER:
        return UsageReading(is_request=False)
    output = first_value(attributes, (_MODEL_OUTPUT, _COMPONENT_OUTPUT))
    about = object_at(output, "replies", 0, "meta")
    return UsageReading(text_at(about, "model"), usage_in_object(about.get("usage")))


def _calls_nothing(attributes: Attributes) -> bool:
    """Whether the run ended with its first answer, as a text."""
    ended_with_text = attributes.get("haystack.agent.exit_conditions") == '["text"]'
    return ended_with_text and attributes.get("haystack.agent.steps_taken") == 1


def _call_that_raised(span: Span) -> list[ChatMessage]:
    """The failure of the one call for which the component that executes calls ended with an error."""
    if span.status_code != STATUS_ERROR:
        return []
    message = span.status_message
    # From the first place alone: a search would try every one, each to the end of the text.
    raised = _RAISED.match(message, max(0, message.find(_FAILURE)))
    if raised is None:
        return []
    call = f"tool_name='{raised['name']}', arguments={raised['arguments']}, id='"
    after_call = (span.attributes.text(_COMPONENT_INPUT) or "").partition(call)[2]
    call_id = after_call.partition("'")[0]
    response = CallResponse(call_id, raised["name"], raised["error"], failed=True)
    return [ChatMessage("tool", responses=[response])] if call_id else []


def _messages(attributes: Attributes, key: str, member: str) -> list[ChatMessage]:
    messages: list[JsonValue] = []
    for message in objects_at(first_value(attributes, (key,)), member):
        content = list_at(message, "content")
        result = value_at(content, 0, "tool_call_result") if len(content) == 1 else None
        messages.append(_response(result) if isinstance(result, dict) else message)
    return read_messages(messages)


DIALECT = Dialect(
    "haystack",
    (_TOOL, _MODEL_INPUT, _MODEL_OUTPUT, _STEP, _AGENT, _COMPONENT),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=8,
    has_usage=lambda span: _role(span) is SpanRole.MODEL,
    usage=_usage,
)
