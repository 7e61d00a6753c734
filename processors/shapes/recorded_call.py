"""Arguments that were recorded as a Python call: `{"args": [...], "kwargs": {...}}`."""

import re
from collections.abc import Collection

from processors.model import DecodedValue, JsonObject, JsonValue, ValueState, decode_arguments, value_of
from processors.shapes.chat_envelope import decode_input
from processors.spans import AttributeValue

_PRINTED_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-fA-F]+>")


def arguments_of_recorded_call(decoded: DecodedValue) -> DecodedValue:
    """The arguments by name out of the record of a call; anything else comes back as it is.

    Positional arguments, whose names the record does not tell, stand in a list under `$args`.
    """
    value = decoded.value
    if decoded.state is not ValueState.PRESENT or not isinstance(value, dict):
        return decoded
    positional, keywords = value.get("args"), value.get("kwargs")
    if (
        value.keys() != {"args", "kwargs"}
        or not isinstance(positional, list)
        or not isinstance(keywords, dict)
    ):
        return decoded
    arguments: JsonObject = {"$args": positional, **keywords} if positional else keywords
    return value_of(arguments)


def input_of_recorded_call(raw: AttributeValue) -> DecodedValue:
    """What a decorated function was asked: its only argument where that has no name."""
    call = arguments_of_recorded_call(decode_arguments(raw)).value
    if isinstance(call, dict):
        positional: JsonValue = call.get("$args")
        if isinstance(positional, list) and len(positional) == 1 and len(call) == 1:
            only = positional[0]
            return decode_input(only)
        if "args" not in call and "$args" not in call:
            return decode_input(call)
    return decode_input(raw)


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
