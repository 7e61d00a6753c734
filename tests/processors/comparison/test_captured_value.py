"""What evaluators compare of a call's result."""

import pytest

from processors.comparison import comparable_result_text
from processors.model import JsonValue, ToolCall, ValueState


def _returned(result: JsonValue, text: str | None, *, lenient: bool = False) -> ToolCall:
    return ToolCall(
        name="f", result=result, result_text=text, result_state=ValueState.PRESENT, lenient_values=lenient
    )


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (_returned({"a": 1}, '{"a":1}'), '{"a":1}'),
        (_returned({"a": "é"}, None), '{"a": "é"}'),
        (_returned("sunny", "sunny"), "sunny"),
        (_returned("sunny", '"sunny"'), "sunny"),
        (_returned({"a": 1}, ' "{\\"a\\":1}"'), '{"a": 1}'),
        (_returned('"Hello", she said', '"Hello", she said'), '"Hello", she said'),
        (_returned("sunny", '"sunny"', lenient=True), '"sunny"'),
    ],
)
def test_text_of_a_result_is_out_of_the_json_that_carried_it(call: ToolCall, wanted: str) -> None:
    assert wanted == comparable_result_text(call)
