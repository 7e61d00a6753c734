"""Which model turn requested a call, by what the captured answers show."""

import json
from collections.abc import Sequence

import pytest

from processors.annotation import run_from_json, run_to_json
from processors.model import AgentRun, GradedRun, JsonValue
from processors.spans import RawSpan
from tests.support.agent_spans import agent, model, runs_of, tool


def _answer(number: int, at: tuple[int, int], *requests: tuple[str, str], text: str = "") -> RawSpan:
    """A model turn that requests calls, as pairs of tool and id."""
    parts: list[JsonValue] = [{"type": "text", "content": text}] if text else []
    parts += [
        {"type": "tool_call", "id": call_id, "name": name, "arguments": {"city": "Oslo"}}
        for name, call_id in requests
    ]
    output = json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}])
    return model(number, 1, at, **{"gen_ai.output.messages": output})


def _run(spans: Sequence[RawSpan]) -> AgentRun:
    (run,) = runs_of([agent(1, None, "a"), *spans])
    return run


def _turns(spans: Sequence[RawSpan]) -> list[tuple[str, int | None]]:
    run = _run(spans)
    return list(zip((call.name for call in run.calls), run.call_turns, strict=True)) if run.call_turns else []


@pytest.mark.parametrize("has_ids", [True, False])
def test_calls_are_of_the_turns_whose_answers_request_them(has_ids: bool) -> None:
    def call(number: int, name: str, at: tuple[int, int], call_id: str) -> RawSpan:
        return tool(number, 1, name, at=at, call_id=call_id if has_ids else "")

    ids = ("x", "y", "z") if has_ids else ("", "", "")
    spans = [
        _answer(2, (1, 2), ("get", ids[0]), ("look", ids[1])),
        call(3, "get", (3, 4), "x"),
        call(4, "look", (5, 6), "y"),
        _answer(5, (7, 8), ("get", ids[2])),
        call(6, "get", (9, 10), "z"),
        _answer(7, (11, 12), text="done"),
    ]

    assert [("get", 1), ("look", 1), ("get", 2)] == _turns(spans)


def test_a_call_that_was_never_executed_is_of_its_turn() -> None:
    spans = [
        _answer(2, (1, 2), ("get", "x"), ("drop", "y")),
        tool(3, 1, "get", at=(3, 4), call_id="x"),
        _answer(4, (7, 8), text="done"),
    ]

    assert [("get", 1), ("drop", 1)] == _turns(spans)


def test_of_what_no_captured_answer_requests_the_turn_is_unknown() -> None:
    spans = [
        _answer(2, (1, 2), ("get", "x")),
        tool(3, 1, "get", at=(3, 4), call_id="x"),
        model(4, 1, (5, 6)),
        tool(5, 1, "look", at=(7, 8), call_id="y"),
    ]

    assert [("get", 1), ("look", None)] == _turns(spans)
    assert [] == _turns([tool(3, 1, "get", at=(3, 4), call_id="x")])
    assert [] == _turns([model(2, 1, (1, 2)), tool(3, 1, "get", at=(3, 4), call_id="x")])


def test_what_the_program_called_itself_is_of_no_turn() -> None:
    spans = [
        tool(2, 1, "load", at=(1, 2)),
        _answer(3, (3, 4), ("get", "x")),
        tool(4, 1, "get", at=(5, 6), call_id="x"),
        _answer(5, (7, 8), text="done"),
    ]

    assert [("load", 0), ("get", 1)] == _turns(spans)


def test_requests_without_ids_that_do_not_add_up_are_unknown() -> None:
    spans = [
        _answer(2, (1, 2), ("get", "")),
        tool(3, 1, "get", at=(3, 4)),
        tool(4, 1, "get", at=(5, 6)),
        _answer(5, (7, 8), ("look", "")),
        tool(6, 1, "look", at=(9, 10)),
    ]

    assert [("get", None), ("get", None), ("look", 2)] == _turns(spans)


def test_calls_that_messages_alone_report_have_turns() -> None:
    history = [
        {"role": "user", "parts": [{"type": "text", "content": "Go."}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": each, "name": "get", "arguments": {}} for each in "xy"],
        },
        *(
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": each, "result": "1"}]}
            for each in "xy"
        ),
    ]
    spans = [
        _answer(2, (1, 2), ("get", "x"), ("get", "y")),
        model(
            3,
            1,
            (3, 4),
            **{
                "gen_ai.input.messages": json.dumps(history),
                "gen_ai.output.messages": json.dumps(
                    [
                        {
                            "role": "assistant",
                            "parts": [{"type": "tool_call", "id": "z", "name": "get", "arguments": {}}],
                        }
                    ]
                ),
            },
        ),
    ]

    assert [("get", 1), ("get", 1), ("get", 2)] == _turns(spans)


def test_lines_hold_them() -> None:
    run = _run(
        [
            _answer(2, (1, 2), ("drop", "w"), ("get", "x")),
            tool(3, 1, "get", at=(3, 4), call_id="x"),
            model(4, 1, (5, 6)),
            tool(5, 1, "look", at=(7, 8), call_id="y"),
        ]
    )

    again = run_from_json(run_to_json(GradedRun(run=run, results=())), "line")

    assert [1, 1, None] == list(run.call_turns)
    assert ["drop", "get", "look"] == [call.name for call in again.calls]
    assert [1, 1, None] == list(again.call_turns)
