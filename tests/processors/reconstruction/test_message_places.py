"""How many calls precede each message, as the messages themselves show it."""

import json

import pytest

from processors.model import JsonValue
from tests.support.agent_spans import agent, model, runs_of, tool

_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"


def _text(role: str, content: str) -> JsonValue:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def _request(call_id: str, content: str = "") -> JsonValue:
    parts: list[JsonValue] = [{"type": "text", "content": content}] if content else []
    return {"role": "assistant", "parts": [*parts, {"type": "tool_call", "id": call_id, "name": "get"}]}


def _result(call_id: str) -> JsonValue:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": ""}]}


_HELLO, _DONE = _text("user", "Cancel it"), _text("assistant", "Done.")
_ASKED, _YES = _text("assistant", "Shall I?"), _text("user", "Yes")


@pytest.mark.parametrize(
    ("given", "answered", "places"),
    [
        # Every call is shown: texts stand between them.
        (
            [_HELLO, _request("c1", "Looking."), _result("c1"), _ASKED, _YES, _request("c2"), _result("c2")],
            [_DONE],
            [0, 0, 1, 1, 2],
        ),
        # None is: calls follow what the run was given, and there may be further texts after that.
        ([_HELLO, _ASKED, _YES], [_DONE], [0, 0, 0, None]),
        # The first one is: so does the other.
        ([_HELLO, _request("c1"), _result("c1"), _ASKED, _YES], [_DONE], [0, 1, 1, None]),
        # Only a later one is: nothing shows where the first stood.
        ([_HELLO, _request("c2"), _result("c2"), _ASKED, _YES], [_DONE], [None, None, None, None]),
    ],
)
def test_messages_have_their_places_among_the_calls_they_show(
    given: list[JsonValue], answered: list[JsonValue], places: list[int | None]
) -> None:
    spans = [
        agent(1, None, "a", (0, 100), **{_INPUT: json.dumps(given), _OUTPUT: json.dumps(answered)}),
        tool(2, 1, "get", at=(10, 20), call_id="c1"),
        tool(3, 1, "get", at=(30, 40), call_id="c2"),
    ]

    (run,) = runs_of(spans)

    assert ["c1", "c2"] == [call.call_id for call in run.calls]
    assert places == [message.after for message in run.messages]


def test_the_history_of_the_last_turn_shows_the_places_where_the_invocation_has_no_messages() -> None:
    history = json.dumps([_HELLO, _request("c1"), _result("c1")])
    spans = [
        agent(1, None, "a"),
        model(2, 1, (1, 5), **{_INPUT: json.dumps([_HELLO]), _OUTPUT: json.dumps([_request("c1")])}),
        tool(3, 1, "get", at=(10, 20), call_id="c1"),
        model(4, 1, (30, 40), **{_INPUT: history, _OUTPUT: json.dumps([_DONE])}),
    ]

    (run,) = runs_of(spans)

    assert [("user", 0), ("assistant", 1)] == [(message.role, message.after) for message in run.messages]
