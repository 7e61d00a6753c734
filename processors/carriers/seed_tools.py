"""Spans known to be tool calls by `tool.name` alone, with `input.value` and `output.value`.

The form that UiPath's evaluators read; values are decoded exactly as those do, with two mends: an output
without the `content` wrapper is the output itself, and `tool.synthesized` texts other than true, 1 and
yes skip nothing.
"""

import json
from typing import Final

from processors.model import (
    ABSENT,
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
from processors.shapes.attribute_reading import first_text
from processors.shapes.dialect import Dialect, SpanRole, ToolReading, agent_fields
from processors.shapes.placeholder_names import (
    FINAL_ANSWER_TOOL_NAMES,
    HANDOFF_TOOL_PREFIXES,
    is_around_call,
)
from processors.spans import AttributeValue, Span


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if (
        "openinference.span.kind" in attributes
        or "gen_ai.operation.name" in attributes
        or "agentops.span.kind" in attributes
    ):
        return None  # conventions that name tools in the same way
    if not attributes.get("tool.name"):
        return SpanRole.OTHER
    if "input.value" in attributes or "output.value" in attributes:
        return SpanRole.TOOL
    return SpanRole.OTHER if is_around_call(span) else SpanRole.TOOL


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    raw_name = attributes.get("tool.name")
    name = raw_name if isinstance(raw_name, str) else str(raw_name)
    raw_id = attributes.get("tool.id")
    category = CallCategory.FUNCTION
    if name.startswith(HANDOFF_TOOL_PREFIXES):
        category = CallCategory.HANDOFF
    elif name in FINAL_ANSWER_TOOL_NAMES:
        category = CallCategory.FINAL_ANSWER
    return ToolReading(
        name=name,
        call_id="" if raw_id is None else raw_id if isinstance(raw_id, str) else str(raw_id),
        arguments=decode_seed_arguments(attributes.get("input.value"))
        if "input.value" in attributes
        else ABSENT,
        result=decode_seed_output(attributes.get("output.value")) if "output.value" in attributes else ABSENT,
        category=category,
        agent_name=first_text(attributes, ("tool.agent_role",)),
        lenient_values=True,
        is_synthetic=_is_true(attributes.get("tool.synthesized")),
    )


def decode_seed_arguments(raw: AttributeValue) -> DecodedValue:
    """The arguments in `input.value`: an object, else `{}` with the state `unparsed`."""
    text = raw if isinstance(raw, str) else json_text(raw)
    if isinstance(raw, str) and is_mask(raw):
        return DecodedValue({}, text, ValueState.REDACTED)
    value: JsonValue = None
    if not isinstance(raw, str):
        value = json_value(raw)
    else:
        try:
            value = _parse_json(raw)
        except ValueError:
            try:
                value = parse_python_literal(raw)
            except ValueError:
                return DecodedValue({}, text, ValueState.UNPARSED)
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
    return DecodedValue(
        json_value(content), content if isinstance(content, str) else str(content), ValueState.PRESENT
    )


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


def _is_true(flag: AttributeValue) -> bool:
    if isinstance(flag, str):
        return flag.strip().lower() in ("true", "1", "yes")
    return bool(flag)


DIALECT: Final = Dialect(
    "seed_tools",
    ("tool.name", "input.value", "output.value"),
    _role,
    _tool,
    agent=agent_fields(input=("input.value",), output=("output.value",)),
    rank=90,
)
