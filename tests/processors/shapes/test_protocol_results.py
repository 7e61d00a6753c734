"""Results by the Model Context Protocol, as its SDKs serialise and print them."""

from typing import Any

import pytest

from processors.model import JsonValue, decode_result
from processors.shapes import open_result

_BLOCK = {"type": "text", "text": "it's 5", "annotations": None}
_PRINTED_BLOCK = "TextContent(type='text', text=\"it's 5\", annotations=None, meta=None)"
_FAILED: list[Any] = [
    {"content": [_BLOCK], "isError": True},
    {"meta": None, "content": [_BLOCK], "structuredContent": None, "isError": True},
    {
        "_meta": None,
        "content": [_BLOCK],
        "structuredContent": None,
        "isError": True,
        "resultType": "complete",
    },
    {
        "meta": None,
        "content": [_BLOCK],
        "structured_content": None,
        "is_error": True,
        "result_type": "complete",
    },
    f"meta=None content=[{_PRINTED_BLOCK}] structuredContent=None isError=True",
    f"meta=None content=[{_PRINTED_BLOCK}] structured_content=None is_error=True result_type='complete'",
    f"CallToolResult(meta=None, content=[{_PRINTED_BLOCK}], structuredContent=None, isError=True)",
    {
        "blocks": [{"text": "printed"}],
        "tool_name": "get",
        "raw_input": {},
        "raw_output": {"content": [_BLOCK], "isError": True},
        "is_error": False,
    },
]


@pytest.mark.parametrize("raw", _FAILED)
def test_a_failure_is_one_in_whatever_form(raw: Any) -> None:
    opened = open_result(decode_result(raw))

    assert ("it's 5", "it's 5") == (opened.result.value, opened.error and opened.error.message)


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        ({"content": [_BLOCK], "is_error": False}, "it's 5"),
        ({"content": [_BLOCK], "structured_content": {"result": 5}, "is_error": False}, {"result": 5}),
        (f"content=[{_PRINTED_BLOCK}, {_PRINTED_BLOCK}] isError=False", "it's 5\nit's 5"),
        ("content=[TextContent(type='text', text='{\"t\": 5}')] isError=False", {"t": 5}),
        ("content=[ImageContent(data='x')] isError=False", "content=[ImageContent(data='x')] isError=False"),
        ("content=5 isError=True", "content=5 isError=True"),
        ("meta=None", "meta=None"),
    ],
)
def test_a_success_is_its_text_or_data(raw: Any, result: Any) -> None:
    opened = open_result(decode_result(raw))

    assert (result, None) == (opened.result.value, opened.error)


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "hostile",
    [
        "meta=" + ", content=[" * 20_000 + " is_error=Tru",
        "content=[" + "TextContent(type='text', text='a'), " * 7_000 + " isError=Tru",
        "content=[TextContent(type='text', text='" + "\\'" * 100_000 + " isError=True",
        "content=[TextContent(type='text', text='a'" + ", meta=None" * 20_000 + " isError=True",
    ],
)
def test_what_only_begins_like_one_takes_no_time(hostile: str) -> None:
    assert hostile == open_result(decode_result(hostile)).result.value


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred while running the tool. Please try again. Error: boom",
        "I encountered an error while trying to use the tool. This was the error: boom.",
        "An error occurred while invoking the function shop-buy: boom",
        "Tool with name 'buy' failed to execute due to the error: boom!",
        "Failed to invoke Tool `buy` with parameters {'n': 1}. Error: boom",
        "Encountered error: boom",
        "tool invoke error: boom",
        'There was an error: "boom"',
    ],
)
def test_what_frameworks_write_where_a_tool_raised_is_a_failure(text: str) -> None:
    opened = open_result(decode_result(text))

    assert opened.error is not None
    assert (text, text) == (opened.result.value, opened.error.message)


@pytest.mark.parametrize("text", ["There was an error: none", "Failed to invoke it", "No errors", "boom"])
def test_what_a_tool_says_of_errors_is_its_result(text: str) -> None:
    assert open_result(decode_result(text)).error is None


def test_a_whole_response_of_a_server_is_opened() -> None:
    result: JsonValue = {"content": [{"type": "text", "text": "boom"}], "isError": True}

    opened = open_result(decode_result({"jsonrpc": "2.0", "id": 1, "result": result}))

    assert "boom" == opened.result.value
    assert opened.error is not None
