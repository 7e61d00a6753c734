"""Judgment: functions decorated by its SDK, some of whose spans are sent before they end."""

import pytest

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from tests.support.agent_spans import runs_of, span

AGENT: JsonObject = {
    "judgment.span_kind": "agent",
    "judgment.input": '{"question":"Weather?"}',
    "judgment.output": "Cold.",
    "judgment.session_id": "s1",
}


def tool(**fields: JsonValue) -> JsonObject:
    return {"judgment.span_kind": "tool", **{f"judgment.{key}": value for key, value in fields.items()}}


def test_runs_and_calls_are_told_by_kind() -> None:
    asked = '{"self":"<app.Weather object at 0x7f2497f30cd0>","city":"Oslo"}'
    spans = [
        span(1, None, "planner", AGENT, at=(0, 90)),
        span(2, 1, "get", tool(input=asked, output='{"t":1}'), at=(1, 5)),
        span(3, 1, "ask", tool(input='{"question":"How?"}', output="So."), at=(10, 50)),
        span(4, 3, "expert", AGENT, at=(11, 49)),
        span(5, 4, "get", tool(input="{}", output="null"), at=(12, 20)),
        span(6, 1, "get", tool(input="{}"), at=(60, 70), status=(2, "offline")),
    ]

    planner, expert = runs_of(spans)

    assert ("planner", {"question": "Weather?"}, "Cold.", "s1") == (
        planner.agent.name,
        planner.input,
        planner.output,
        planner.session,
    )
    assert [
        ("get", {"city": "Oslo"}, {"t": 1}, None),
        ("ask", {"question": "How?"}, "So.", None),
        ("get", {}, None, ToolError(type="", message="offline")),
    ] == [(call.name, call.arguments, call.result, call.error) for call in planner.tool_calls]
    assert ("expert", "planner") == (expert.agent.name, expert.parent_agent)
    assert [("get", {}, None, ValueState.PRESENT)] == [
        (call.name, call.arguments, call.result, call.result_state) for call in expert.tool_calls
    ]


def test_the_root_stands_for_a_run_without_an_agent() -> None:
    root: JsonObject = {**AGENT, "judgment.span_kind": "span"}

    (run,) = runs_of([span(1, None, "planner", root), span(2, 1, "get", tool())])

    assert ("planner", "Cold.") == (run.agent.name, run.output)
    (call,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


def test_a_span_that_was_sent_before_it_ended_is_one_call() -> None:
    begun = span(2, 1, "get", tool(input="{}", update_id=0), at=(1, 2))
    ended = span(2, 1, "get", tool(input="{}", output="cold"), at=(1, 9))

    (run,) = runs_of([span(1, None, "planner", AGENT), begun, ended])

    assert [("get", "cold")] == [(call.name, call.result) for call in run.tool_calls]


@pytest.mark.parametrize("printed", ["<generator>", "<async_generator>"])
def test_a_stream_is_no_answer(printed: str) -> None:
    (run,) = runs_of([span(1, None, "planner", {**AGENT, "judgment.output": printed})])

    assert run.output is None


def test_calls_are_taken_from_a_models_answer_where_no_span_tells_them() -> None:
    asked = (
        '{"choices":[{"message":{"role":"assistant","tool_calls":'
        '[{"id":"c1","type":"function","function":{"name":"get","arguments":"{}"}}]}}]}'
    )
    model: JsonObject = {
        "judgment.span_kind": "llm",
        "judgment.input": '{"messages":[{"role":"user","content":"Weather?"}]}',
        "judgment.output": asked,
    }

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "chat", model)])

    assert [("get", "c1")] == [(call.name, call.call_id) for call in run.tool_calls]
