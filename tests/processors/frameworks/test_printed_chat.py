"""Haystack's messages in print, with what makes printed text hard to read."""

import pytest

from processors.frameworks.haystack import printed_chat
from processors.shapes import CallRequest, CallResponse


def printed(role: str, content: str) -> str:
    end = "_name=None, _meta={'at': <object>})"
    return f"ChatMessage(_role=<ChatRole.{role.upper()}: '{role}'>, _content=[{content}], {end}"


@pytest.mark.parametrize(
    "text", ["plain", "it's", 'both "\'" quotes', "a) bracket]", "text=1, _name=None", "line\nbreak", "\\"]
)
def test_a_text_is_what_was_printed(text: str) -> None:
    (message,) = printed_chat({"llm": {"replies": [printed("assistant", f"TextContent(text={text!r})")]}})

    assert ("assistant", text) == (message.role, message.text)


def test_calls_and_results_are_read() -> None:
    call = "ToolCall(tool_name='get', arguments={'city': 'Oslo (NO)', 'days': [1]}, id='c1', extra=None)"
    asks, answers = printed_chat(
        [
            printed("assistant", call),
            printed("tool", f"ToolCallResult(result='{{\"t\": 25}}', origin={call}, error=True)"),
        ]
    )

    assert [CallRequest("get", "c1", {"city": "Oslo (NO)", "days": [1]}, has_arguments=True)] == asks.requests
    assert [CallResponse("c1", "get", '{"t": 25}', failed=True)] == answers.responses


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ChatMessage(",
        printed("user", "TextContent(text='cut off"),
        printed("user", "TextContent(text=object())"),
        printed("user", "[" * 200 + "]" * 200),
    ],
)
def test_what_cannot_be_read_is_left_out(text: str) -> None:
    assert [] == printed_chat([text])


def test_messages_are_looked_for_only_so_deep() -> None:
    state: object = printed("user", "TextContent(text='x')")
    for _ in range(20):
        state = [state]

    assert [] == printed_chat(state)  # type: ignore[arg-type]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("filling", ["\\'", "'", '"', "[", "(", "a", "A", "a=", "\\"])
def test_text_that_was_made_to_be_slow_is_read_in_linear_time(filling: str) -> None:
    assert [] == printed_chat([printed("user", "TextContent(text='")[:-1] + filling * 300_000])
    assert [] == printed_chat([printed("user", "TextContent(text=" + filling * 300_000 + ")")])
