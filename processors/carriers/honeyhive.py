"""HoneyHive: `honeyhive_event_type`, with arguments and results spelled out in flattened attributes."""

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    JsonValue,
    decode_arguments,
    decode_result,
    json_text,
)
from processors.shapes.attribute_reading import first_text, flattened_value
from processors.shapes.chat_envelope import decode_input, decode_output
from processors.shapes.dialect import AgentReading, Dialect, ToolReading
from processors.shapes.dialect_functions import by_kind, roles
from processors.shapes.known_names import GENERIC_CHAIN_NAMES
from processors.shapes.members import object_at
from processors.shapes.result_envelope import open_result
from processors.spans import Attributes, Span

_KIND = "honeyhive_event_type"
_NAME = "honeyhive_event_name"
_OUTPUTS = "honeyhive_outputs."
_RESULT = "result"


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    if _is_failure(span):
        return ToolReading(is_synthetic=True)
    result = _result(attributes)
    opened = open_result(result)
    return ToolReading(
        name=first_text(attributes, (_NAME,)),
        inferred_name=span.name,
        call_id=opened.call_id,
        arguments=_arguments(attributes, is_whole=result is not ABSENT),
        result=opened.result,
        error=opened.error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    name = first_text(attributes, (_NAME,)) or span.name
    given = _arguments(attributes, is_whole=False)
    returned = _result(attributes)
    return AgentReading(
        inferred_name="" if name in GENERIC_CHAIN_NAMES else name,
        session=first_text(attributes, ("honeyhive.session_id",)),
        input=ABSENT if given is ABSENT else decode_input(given.value),
        output=ABSENT if returned is ABSENT else decode_output(returned.value),
    )


def _is_failure(span: Span) -> bool:
    """Whether the span only repeats that the function next to it failed."""
    attributes = span.attributes
    return "honeyhive_error" in attributes and _NAME not in attributes and span.name.endswith("_error")


def _arguments(attributes: Attributes, *, is_whole: bool) -> DecodedValue:
    """The arguments; of a function without any nothing is written, but what it returned."""
    given = object_at(flattened_value(attributes, "honeyhive_inputs."))
    if not given:
        return decode_arguments("{}") if is_whole else ABSENT
    arguments: JsonObject = {key: _member(value) for key, value in given.items()}
    return decode_arguments(json_text(arguments))


def _member(value: JsonValue) -> JsonValue:
    """An argument; objects and lists are written as JSON."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    decoded = decode_result(value).value
    return decoded if isinstance(decoded, (dict, list)) else value


def _result(attributes: Attributes) -> DecodedValue:
    if _OUTPUTS + _RESULT in attributes:
        return decode_result(attributes.get(_OUTPUTS + _RESULT))
    returned = object_at(flattened_value(attributes, _OUTPUTS))
    return decode_result(json_text(returned[_RESULT])) if _RESULT in returned else ABSENT


DIALECT = Dialect(
    "honeyhive",
    (_KIND,),
    role=by_kind((_KIND,), roles(tool="tool", model="model")),
    tool=_tool,
    agent=_agent,
    rank=60,
)
