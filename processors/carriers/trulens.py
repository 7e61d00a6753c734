"""TruLens: `ai.observability.*` attributes of the functions that it instruments."""

import re
from typing import Final

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    ToolError,
    ValueState,
    decode_arguments,
    decode_result,
    json_text,
    json_value,
    parse_python_literal,
    value_of,
)
from processors.shapes.attribute_reading import first_text, first_value
from processors.shapes.chat_envelope import decode_input, decode_output
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading, by_kind
from processors.shapes.result_envelope import OpenedResult, open_result
from processors.spans import Attributes, AttributeValue, Span

_TYPE = "ai.observability.span_type"
_FUNCTION = "ai.observability.call.function"
_KEYWORDS = "ai.observability.call.kwargs."
_RETURN = "ai.observability.call.return"
_ROOT_INPUT = "ai.observability.record_root.input"
_NODE = ".ToolNode.invoke"
"""How the function ends that executes a call in a graph; its input is a list of that one call."""
_NODE_INPUT = _KEYWORDS + "input"
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOOL_MESSAGE = re.compile(
    rf"\{{'messages': \[ToolMessage\(content=({_QUOTED}), name='[^']*',(?: id='[^']*',)? "
    r"tool_call_id='([^']*)'(?:, status='(\w+)')?\)\]\}",
    re.DOTALL,
)
_NOTHING = OpenedResult(ABSENT)
_ROLES = {
    "agent": SpanRole.AGENT,
    "record_root": SpanRole.WORKFLOW,
    "tool": SpanRole.TOOL,
    **dict.fromkeys(("eval", "eval_root", "guardrail"), SpanRole.JUDGE),
}


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    named = first_text(attributes, ("gen_ai.tool.name",))
    function = first_text(attributes, (_FUNCTION,))
    failure = first_text(attributes, ("ai.observability.call.error",))
    opened = _returned(attributes)
    call = _call_of_node(attributes) if function.endswith(_NODE) else None
    if call is not None:
        return ToolReading(
            name=str(call["name"]),
            call_id=str(call.get("id") or "") or opened.call_id,
            arguments=decode_arguments(json_text(call["args"])),
            result=opened.result,
            error=ToolError(type="", message=failure) if failure else opened.error,
        )
    return ToolReading(
        name=_last_part(function) if named in ("", function) else named,
        inferred_name=span.name,
        call_id=opened.call_id,
        arguments=_arguments(attributes),
        result=opened.result,
        error=ToolError(type="", message=failure) if failure else opened.error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    is_agent = attributes.get(_TYPE) == "agent"
    asked = _only_argument(attributes)
    if _ROOT_INPUT in attributes:
        asked = _question(attributes.get(_ROOT_INPUT))
    answer = next((key for key in ("ai.observability.record_root.output", _RETURN) if key in attributes), "")
    return AgentReading(
        name=_last_part(first_text(attributes, (_FUNCTION,)))
        if is_agent
        else first_text(attributes, ("ai.observability.app_name",)),
        input=asked,
        output=decode_output(attributes.get(answer)) if answer else ABSENT,
    )


def _returned(attributes: Attributes) -> OpenedResult:
    if _RETURN not in attributes:
        return _NOTHING
    raw = attributes.get(_RETURN)
    message = _TOOL_MESSAGE.fullmatch(raw) if isinstance(raw, str) else None
    if message is None:
        return open_result(decode_result(raw))
    try:
        result = decode_result(json_value(parse_python_literal(message[1])))
    except ValueError:
        return OpenedResult(ABSENT, message[2])
    failed = ToolError(type="", message=result.text or "") if message[3] == "error" else None
    return OpenedResult(result, message[2], failed)


def _call_of_node(attributes: Attributes) -> JsonObject | None:
    """The call that a graph's node executes, if its input is one."""
    told = first_value(attributes, (_NODE_INPUT,))
    call = told[0] if isinstance(told, list) and len(told) == 1 else None
    return call if isinstance(call, dict) and call.keys() >= {"name", "args"} else None


def _question(raw: AttributeValue) -> DecodedValue:
    """What was asked: the text of a message, where it is one."""
    value = decode_result(raw).value
    is_message = isinstance(value, dict) and value.keys() >= {"role", "content"}
    return decode_input(json_text([value])) if is_message else decode_input(raw)


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
            decoded = decode_arguments(value) if isinstance(value, str) and value[:1] in ("{", "[") else None
            is_object = decoded is not None and decoded.state is ValueState.PRESENT
            arguments[key[len(_KEYWORDS) :]] = (
                decoded.value if decoded is not None and is_object else json_value(value)
            )
    return value_of(arguments)


def _only_argument(attributes: Attributes) -> DecodedValue:
    """What a function was asked: its only argument, else all of them."""
    given = _arguments(attributes)
    if isinstance(given.value, dict) and len(given.value) == 1:
        return decode_input(next(iter(given.value.values())))
    return given


DIALECT: Final = Dialect("trulens", (_TYPE,), by_kind((_TYPE,), _ROLES), _tool, _agent, rank=5)
