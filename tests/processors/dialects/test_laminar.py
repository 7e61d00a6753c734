"""Laminar's decorated functions."""

from processors.agent_run import ToolError, ValueState
from processors.json_value import JsonObject
from tests.support.agent_spans import runs_of, span

ROOT: JsonObject = {
    "lmnr.span.type": "DEFAULT",
    "lmnr.span.input": '{"task": "Weather?"}',
    "lmnr.span.output": '"It is cold."',
    "lmnr.association.properties.session_id": "s1",
}
TOOL: JsonObject = {
    "lmnr.span.type": "TOOL",
    "lmnr.span.input": '{"city": "Oslo"}',
    "lmnr.span.output": '{"t": 1}',
}


def test_the_root_stands_for_the_run() -> None:
    (run,) = runs_of([span(1, None, "planner", ROOT), span(2, 1, "get", TOOL)])

    assert ("planner", "Weather?", "It is cold.", "s1") == (
        run.agent.name,
        run.input,
        run.output,
        run.session,
    )
    assert [("get", {"city": "Oslo"}, {"t": 1})] == [
        (call.name, call.arguments, call.result) for call in run.tool_calls
    ]


def test_missing_values_stay_unknown_and_the_status_tells_a_failure() -> None:
    bare = span(2, 1, "get", {"lmnr.span.type": "TOOL"}, status=(2, "boom"))

    (run,) = runs_of([span(1, None, "planner", ROOT), bare])

    (call,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)
    assert ToolError(type="", message="boom") == call.error
