"""TruLens: `ai.observability.*` attributes of the functions that it instruments."""

import re

from msgspec.structs import replace

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    decode_arguments,
    decode_result,
    json_text,
    json_value,
    value_of,
)
from processors.shapes.attribute_reading import first_result, first_text, first_value
from processors.shapes.chat_envelope import decode_input, first_output
from processors.shapes.dialect import AgentReading, Dialect, ToolReading
from processors.shapes.dialect_functions import by_kind, roles
from processors.shapes.members import failure, list_at, object_at
from processors.shapes.printed_messages import QUOTED, printed_text
from processors.shapes.result_envelope import OpenedResult
from processors.spans import Attributes, AttributeValue, Span

_TYPE = "ai.observability.span_type"
_FUNCTION = "ai.observability.call.function"
_KEYWORDS = "ai.observability.call.kwargs."
_RETURN = "ai.observability.call.return"
_ROOT_INPUT = "ai.observability.record_root.input"
_NODE = ".ToolNode.invoke"
"""How the function ends that executes a call in a graph; its input is a list of that one call."""
_TOOL_MESSAGE = re.compile(
    rf"\{{'messages': \[ToolMessage\(content={QUOTED}, name='[^']*',(?: id='[^']*',)? "
    r"tool_call_id='(?P<id>[^']*)'(?:, status='(?P<status>\w+)')?\)\]\}",
    re.DOTALL,
)
_ROLES = roles(agent="agent", workflow="record_root", tool="tool", judge=("eval", "eval_root", "guardrail"))


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    named = first_text(attributes, ("gen_ai.tool.name",))
    function = first_text(attributes, (_FUNCTION,))
    message = first_text(attributes, ("ai.observability.call.error",))
    opened = _returned(attributes)
    # The call that a graph's node executes, if its input is one.
    calls = list_at(first_value(attributes, (_KEYWORDS + "input",))) if function.endswith(_NODE) else []
    call = object_at(calls, 0) if len(calls) == 1 else {}
    reading = ToolReading(
        name=_last_part(function) if named in ("", function) else named,
        inferred_name=span.name,
        call_id=opened.call_id,
        arguments=_arguments(attributes),
        result=opened.result,
        error=failure(message) if message else opened.error,
    )
    if not call.keys() >= {"name", "args"}:
        return reading
    return replace(
        reading,
        name=str(call["name"]),
        inferred_name="",
        call_id=str(call.get("id") or "") or opened.call_id,
        arguments=decode_arguments(json_text(call["args"])),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    is_agent = attributes.get(_TYPE) == "agent"
    has_question = _ROOT_INPUT in attributes
    named = first_text(attributes, (_FUNCTION if is_agent else "ai.observability.app_name",))
    return AgentReading(
        name=_last_part(named) if is_agent else named,
        input=_question(attributes.get(_ROOT_INPUT)) if has_question else _only_argument(attributes),
        output=first_output(attributes, ("ai.observability.record_root.output", _RETURN)),
    )


def _returned(attributes: Attributes) -> OpenedResult:
    message = _TOOL_MESSAGE.fullmatch(attributes.text(_RETURN) or "")
    if message is None:
        return first_result(attributes, (_RETURN,))
    text = printed_text(message)
    if text is None:
        return OpenedResult(ABSENT, message["id"])
    result = decode_result(text)
    return OpenedResult(result, message["id"], failure(result.text) if message["status"] == "error" else None)


def _question(raw: AttributeValue) -> DecodedValue:
    """The request: the text of a message, where it is one."""
    value = decode_result(raw).value
    is_message = object_at(value).keys() >= {"role", "content"}
    return decode_input(json_text([value]) if is_message else raw)


def _last_part(function: str) -> str:
    """The function's own name."""
    return function.rpartition(".")[2]


def _arguments(attributes: Attributes) -> DecodedValue:
    """The arguments, each of which has an attribute of its own."""
    if _FUNCTION not in attributes:
        return ABSENT
    arguments: JsonObject = {}
    for key in attributes:
        if key.startswith(_KEYWORDS):
            value = attributes.get(key)
            is_json = isinstance(value, str) and value[:1] in ("{", "[")
            decoded = decode_arguments(value).value if is_json else None
            arguments[key[len(_KEYWORDS) :]] = decoded if isinstance(decoded, dict) else json_value(value)
    return value_of(arguments)


def _only_argument(attributes: Attributes) -> DecodedValue:
    """What a function was given: its only argument, else all of them."""
    given = _arguments(attributes)
    if isinstance(given.value, dict) and len(given.value) == 1:
        return decode_input(next(iter(given.value.values())))
    return given


DIALECT = Dialect("trulens", (_TYPE,), by_kind((_TYPE,), _ROLES), _tool, _agent, rank=5)
