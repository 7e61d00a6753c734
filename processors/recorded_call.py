"""Arguments that were recorded as a Python call: `{"args": [...], "kwargs": {...}}`."""

from processors.agent_run import ValueState
from processors.json_value import JsonObject
from processors.values import DecodedValue, json_text


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
    return DecodedValue(arguments, json_text(arguments), ValueState.PRESENT)
