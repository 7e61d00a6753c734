"""Spans known to be tool calls by `tool.name` alone, with `input.value` and `output.value`.

The form that UiPath's evaluators read; values are decoded exactly as those do, with two mends: an output
without the `content` wrapper is the output itself, and `tool.synthesized` texts other than true, 1 and
yes skip nothing.
"""

import json

from processors.model import (
    MAX_DEPTH,
    MAX_TEXT_LENGTH,
    CallCategory,
    DecodedValue,
    JsonObject,
    JsonValue,
    ValueState,
    is_mask,
    json_text,
    json_value,
    parse_python_literal,
    text_value,
)
from processors.shapes.attribute_reading import OPERATION, first_decoded, first_text, is_true
from processors.shapes.dialect import Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import agent_fields
from processors.shapes.known_names import FINAL_ANSWER_TOOL_NAMES, is_around_call, transfer_or_function
from processors.spans import AttributeValue, Span

_OTHERS = ("openinference.span.kind", OPERATION, "agentops.span.kind")
"""Keys of conventions that name tools in the same way."""
_CALL_IDS = "tool.id", "tool.call_id"


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if any(key in attributes for key in _OTHERS):
        return None
    if not attributes.get("tool.name"):
        return SpanRole.OTHER
    if "input.value" in attributes or "output.value" in attributes:
        return SpanRole.TOOL
    return SpanRole.OTHER if is_around_call(span) else SpanRole.TOOL


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    name = str(attributes.get("tool.name"))
    call_id = next((value for key in _CALL_IDS if (value := attributes.get(key)) is not None), "")
    is_answer = name in FINAL_ANSWER_TOOL_NAMES
    return ToolReading(
        name=name,
        call_id=str(call_id),
        arguments=first_decoded(attributes, ("input.value",), decode_seed_arguments),
        result=first_decoded(attributes, ("output.value",), decode_seed_output),
        category=CallCategory.FINAL_ANSWER if is_answer else transfer_or_function(name),
        agent_name=first_text(attributes, ("tool.agent_role",)),
        lenient_values=True,
        is_synthetic=is_true(attributes.get("tool.synthesized")),
    )


def decode_seed_arguments(raw: AttributeValue) -> DecodedValue:
    """The arguments in `input.value`: an object, else `{}` with the state `unparsed`."""
    text = raw if isinstance(raw, str) else json_text(raw)
    if isinstance(raw, str) and is_mask(raw):
        return DecodedValue({}, text, ValueState.REDACTED)
    value = None if isinstance(raw, str) else json_value(raw)
    for parse in (_parse_json, parse_python_literal) if isinstance(raw, str) else ():
        try:
            value = parse(text)
            break
        except ValueError:
            continue
    if isinstance(value, dict):
        return DecodedValue(json_value(value), text, ValueState.PRESENT)
    return DecodedValue({}, text, ValueState.UNPARSED)


def decode_seed_output(raw: AttributeValue) -> DecodedValue:
    """The text of `output.value`, out of the `content` wrapper, and the value behind the text."""
    if isinstance(raw, str):
        if is_mask(raw):
            return DecodedValue("", raw, ValueState.REDACTED)
        try:
            value = _parse_json(raw)
        except ValueError:
            return text_value(raw)
        if not isinstance(value, dict) or "content" not in value:
            return DecodedValue(json_value(value), raw, ValueState.PRESENT)
        return _content(value)
    if isinstance(raw, dict):
        value = json_value(raw)
        if isinstance(value, dict) and "content" in value:
            return _content(value)
        return DecodedValue(value, str(value), ValueState.PRESENT)
    if raw is None:
        return DecodedValue("", "", ValueState.PRESENT)
    # A list attribute is a tuple to the SDKs that wrote the texts people expect.
    return DecodedValue(
        json_value(raw), str(tuple(raw)) if isinstance(raw, list) else str(raw), ValueState.PRESENT
    )


def _content(wrapper: JsonObject) -> DecodedValue:
    content = wrapper["content"]
    if content is None:
        return DecodedValue("", "", ValueState.PRESENT)
    return DecodedValue(json_value(content), str(content), ValueState.PRESENT)


def _parse_json(text: str) -> JsonValue:
    """JSON as Python reads it, infinities and not-a-number included."""
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError("text too long")
    try:
        value: JsonValue = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise ValueError("nested too deep")
    return value


def _is_deeper(value: JsonValue, levels: int) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(member, levels - 1) for member in members)


DIALECT = Dialect(
    "seed_tools",
    ("tool.name", "input.value", "output.value"),
    _role,
    _tool,
    agent=agent_fields(input=("input.value",), output=("output.value",)),
    rank=90,
)
