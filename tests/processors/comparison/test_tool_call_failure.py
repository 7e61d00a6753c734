import pytest

from processors.comparison import looks_failed
from processors.model import JsonValue, ToolCall, ToolError, ValueState


def _returning(result: JsonValue) -> ToolCall:
    return ToolCall(name="pay", result=result, result_text="", result_state=ValueState.PRESENT)


@pytest.mark.parametrize(
    "result",
    [
        {"error": "no such card"},
        {"errors": ["no such card"]},
        {"exception": {"type": "KeyError"}},
        {"success": False},
        {"ok": False},
        {"isError": True},
        {"is_error": True},
        {"status_code": 404},
        {"statusCode": 400},
        {"http_status": 503},
        '{"error": "no such card"}',
        "Error: no such card",
        "\nTraceback (most recent call last):",
        "EXCEPTION while paying",
    ],
)
def test_a_result_that_tells_an_error_looks_failed(result: JsonValue) -> None:
    assert looks_failed(_returning(result))


@pytest.mark.parametrize(
    "result",
    [
        {"status": "failed"},
        {"error": None},
        {"error": ""},
        {"success": 0},
        {"isError": "true"},
        {"status_code": 200},
        {"status_code": True},
        {"status_code": "500"},
        [{"error": "x"}],
        "no error",
        "{broken",
        None,
    ],
)
def test_other_results_do_not_look_failed(result: JsonValue) -> None:
    assert not looks_failed(_returning(result))


def test_a_recorded_error_counts_whatever_the_result() -> None:
    call = ToolCall(name="pay", error=ToolError(type="", message=""))

    assert looks_failed(call)


def test_a_result_that_was_not_captured_shows_no_error() -> None:
    call = ToolCall(name="pay", result={"error": "x"}, result_state=ValueState.REDACTED)

    assert not looks_failed(call)
