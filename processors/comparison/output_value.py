"""An agent's output as evaluators compare it: numbers as floats, and any value as one text."""

from processors.model.evaluation_error import EvaluationError
from processors.model.json_value import JsonValue
from processors.model.limits import MAX_DETAIL_CHARACTERS, MAX_OUTPUT_CHARACTERS, MAX_OUTPUT_VALUES
from processors.model.values import MAX_DEPTH

_SHOWN_CHARACTERS = 400


class OutputNumberError(EvaluationError):
    """An output holds a number that no float comes near."""


def with_floats(value: JsonValue) -> JsonValue:
    """`value` with every integer as a float, at every depth; booleans stay booleans.

    So 5 and 5.0 are the same number and the same text (`5.0`). Integers that differ by less than a float
    can tell become equal.

    Raises:
        OutputNumberError: an integer is beyond the range of floats.
    """
    if isinstance(value, dict):
        return {key: with_floats(member) for key, member in value.items()}
    if isinstance(value, list):
        return [with_floats(member) for member in value]
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise OutputNumberError("a number is too large to be compared") from None
    return value


def python_text(value: JsonValue) -> str:
    """`value` as Python prints it: `{'city': 'Oslo', 'temperature': 21.5}`; a text as it stands."""
    return value if isinstance(value, str) else str(value)


def is_too_large(value: JsonValue) -> bool:
    """Whether `value` has more members, longer texts or a greater depth than is compared."""
    if isinstance(value, str):
        return len(value) > MAX_OUTPUT_CHARACTERS
    level: list[JsonValue] = [value]
    values = characters = 0
    for _ in range(MAX_DEPTH + 1):
        inner: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
                characters += sum(map(len, item))
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, str):
                characters += len(item)
        values += len(inner)
        if values > MAX_OUTPUT_VALUES or characters > MAX_OUTPUT_CHARACTERS:
            return True
        if not inner:
            return False
        level = inner
    return True


def output_detail(value: JsonValue) -> JsonValue:
    """`value` as details hold it: a long text, or the Python text of a large value, is cut."""
    text = python_text(value)
    return value if len(text) <= MAX_DETAIL_CHARACTERS else text[: MAX_DETAIL_CHARACTERS - 1] + "…"


def output_line(value: JsonValue) -> str:
    """`value` as a line of the explanation shows it, short enough for another one beside it."""
    text = python_text(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
