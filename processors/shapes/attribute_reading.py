"""Reading the first attribute that is there, out of several that conventions use for one thing.

Also members of decoded values, lists and objects that telemetry spells out in flattened attributes, such as
`llm.tools.0.name`, and arguments that were recorded as a Python call: `{"args": [...], "kwargs": {...}}`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from processors.model import (
    ABSENT,
    MAX_DEPTH,
    DecodedValue,
    JsonObject,
    JsonValue,
    ToolError,
    ValueState,
    decode_arguments,
    decode_result,
    json_value,
    plain_object,
    value_of,
)
from processors.shapes.members import object_at
from processors.shapes.result_envelope import OpenedResult, open_result
from processors.spans import Attributes, AttributeValue, Span

CONVERSATION_KEYS: Final = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
"""The attributes that name a conversation on spans of any kind and on resources."""
OPERATION: Final = "gen_ai.operation.name"
_WORD_STARTS = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_PRINTED_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-fA-F]+>")
_NO_RESULT = OpenedResult(ABSENT)


def conversation_id(attributes: Attributes) -> str:
    """The conversation that these attributes name; empty where they name none."""
    return first_text(attributes, CONVERSATION_KEYS)


def operation_name(attributes: Attributes) -> str:
    """The operation by the GenAI conventions, in their own spelling; empty where none is named.

    Microsoft's Agent 365 SDK wrote the names of its enumeration until 2.0: `Chat`, `GenerateContent`.
    """
    name = attributes.text(OPERATION) or ""
    return name if name.islower() else _WORD_STARTS.sub("_", name).lower()


def span_attributes(span: Span) -> dict[str, JsonValue]:
    """The attributes of a span in order of their keys; of a repeated key the last, bytes as hex."""
    attributes = span.attributes
    return {key: json_value(attributes.get(key)) for key in attributes}


def first_text(attributes: Attributes, keys: Sequence[str]) -> str:
    """The first of the attributes `keys` that is a text and not empty; numbers count as their text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str):
            if value:
                return value
        elif value is not None and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def first_json(attributes: Attributes, keys: Sequence[str]) -> JsonValue:
    """The first of the attributes `keys` that is there, as JSON can hold it; None where none is."""
    return next((json_value(attributes.get(key)) for key in keys if key in attributes), None)


def after_prefix(name: str, prefixes: Iterable[str]) -> str:
    """What follows in `name` the first of `prefixes` with which it begins, else nothing."""
    return next((name[len(prefix) :].strip() for prefix in prefixes if name.startswith(prefix)), "")


def first_decoded(
    attributes: Attributes, keys: Sequence[str], decode: Callable[[AttributeValue], DecodedValue]
) -> DecodedValue:
    """What `decode` makes of the first of the attributes `keys` that is there; `ABSENT` where none is."""
    return next((decode(attributes.get(key)) for key in keys if key in attributes), ABSENT)


def first_arguments(attributes: Attributes, keys: Sequence[str]) -> DecodedValue:
    """The arguments in the attributes `keys`: the first object, else the first that is there at all."""
    result = ABSENT
    for key in keys:
        if key in attributes:
            decoded = plain_object(attributes.encoded(key)) or decode_arguments(attributes.get(key))
            if decoded.state is ValueState.PRESENT:
                return decoded
            if result is ABSENT:
                result = decoded
    return result


def first_result(attributes: Attributes, keys: Sequence[str], known: int = 0) -> OpenedResult:
    """The result in the first of the attributes `keys` that is there, out of its envelopes."""
    for key in keys:
        if key in attributes:
            decoded = plain_object(attributes.encoded(key)) or decode_result(attributes.get(key))
            return open_result(decoded, known)
    return _NO_RESULT


def first_value(attributes: Attributes, keys: Sequence[str]) -> JsonValue:
    """The value in the first of the attributes `keys` that is there, None where none is or can be read."""
    return next((decode_result(attributes.get(key)).value for key in keys if key in attributes), None)


def first_object(attributes: Attributes, keys: Sequence[str]) -> JsonObject:
    """The object in the first of the attributes `keys` that is there; anything else is an empty one."""
    return object_at(first_value(attributes, keys))


def is_true(flag: AttributeValue) -> bool:
    """Whether a flag is set, also one that is written as a text."""
    return flag.strip().lower() in ("true", "1", "yes") if isinstance(flag, str) else bool(flag)


def better(first: DecodedValue, second: DecodedValue) -> DecodedValue:
    """`first`, unless only `second` is present, or only `second` is there at all."""
    if first.state is ValueState.PRESENT or second.state is ValueState.ABSENT:
        return first
    if second.state is ValueState.PRESENT or first.state is ValueState.ABSENT:
        return second
    return first


def merged_error(first: ToolError | None, second: ToolError | None) -> ToolError | None:
    """One error out of two reports of one call: what the first leaves empty is filled from the second."""
    if first is None or second is None:
        return first or second
    if first.type and first.message:
        return first
    return ToolError(type=first.type or second.type, message=first.message or second.message)


def flattened_list(attributes: Attributes, prefix: str) -> list[JsonValue]:
    """The list that flattened attributes such as `<prefix>0.message.role` spell out, in order of index.

    Positions that are left out in the telemetry are left out here too, and so is what lies deeper than
    values are taken.
    """
    listed = flattened_value(attributes, prefix)
    return listed if isinstance(listed, list) else []


def flattened_value(attributes: Attributes, prefix: str) -> JsonValue:
    """The list or object that attributes whose keys begin with `prefix` spell out, `{}` where none does."""
    value: JsonValue = attributes.flattened(prefix)
    if value is not None:
        return value
    root: dict[str, JsonValue] = {}
    length = len(prefix)
    for key in attributes.beginning_with(prefix):
        node = root
        *path, last = key[length:].split(".", MAX_DEPTH)
        if len(path) == MAX_DEPTH:
            continue
        for step in path:
            child = node.get(step)
            if child.__class__ is not dict:
                child = node[step] = {}
            node = child
        node[last] = json_value(attributes.get(key))
    return _as_lists(root)


def _as_lists(node: JsonObject) -> JsonValue:
    children = {key: _as_lists(child) if isinstance(child, dict) else child for key, child in node.items()}
    if children and all(key.isdecimal() and key.isascii() for key in children):
        return [children[key] for key in sorted(children, key=lambda key: (len(key), key))]
    return children


def arguments_of_recorded_call(decoded: DecodedValue) -> DecodedValue:
    """The arguments by name out of the record of a call; anything else is returned as it is.

    Positional arguments, whose names the record does not hold, are in a list under `$args`.
    """
    value = object_at(decoded.value)
    positional, keywords = value.get("args"), value.get("kwargs")
    if len(value) != 2 or not isinstance(positional, list) or not isinstance(keywords, dict):
        return decoded
    return value_of({"$args": positional, **keywords} if positional else keywords)


def given_keywords(keywords: JsonObject, parameters: Collection[str] = ()) -> JsonObject:
    """The keyword arguments of a call without the objects that the framework itself put in.

    Those are printed with their address, and the tool that the model was shown has no such parameter.
    """
    own = [
        key
        for key, value in keywords.items()
        if key not in parameters and isinstance(value, str) and _PRINTED_OBJECT.fullmatch(value)
    ]
    return {key: value for key, value in keywords.items() if key not in own} if own else keywords
