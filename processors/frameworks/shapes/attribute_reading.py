"""Reading the first attribute that is there, out of several that conventions use for one thing."""

from collections.abc import Sequence

from processors.frameworks.shapes.result_envelope import OpenedResult, open_result
from processors.model.agent_run import ToolError, ValueState
from processors.model.values import ABSENT, DecodedValue, decode_arguments, decode_result
from processors.spans.attributes import Attributes

_NO_RESULT = OpenedResult(ABSENT)


def first_text(attributes: Attributes, keys: Sequence[str]) -> str:
    """The first of the attributes `keys` that is a text and not empty; numbers count as their text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str):
            if value:
                return value
        elif isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def first_arguments(attributes: Attributes, keys: Sequence[str]) -> DecodedValue:
    """The arguments in the attributes `keys`: the first object, else the first that is there at all."""
    found = ABSENT
    for key in keys:
        if key in attributes:
            decoded = decode_arguments(attributes.get(key))
            if decoded.state is ValueState.PRESENT:
                return decoded
            if found is ABSENT:
                found = decoded
    return found


def first_result(attributes: Attributes, keys: Sequence[str], known: int = 0) -> OpenedResult:
    """The result in the first of the attributes `keys` that is there, out of its envelopes."""
    for key in keys:
        if key in attributes:
            return open_result(decode_result(attributes.get(key)), known)
    return _NO_RESULT


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
