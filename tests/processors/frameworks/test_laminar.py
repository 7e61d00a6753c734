"""Laminar's decorated functions."""

from processors.model import JsonObject, ToolError, ValueState
from tests.support.agent_spans import envelope, runs_of, span

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


def test_runs_and_calls_of_mastras_exporter_are_told_by_the_names_of_its_spans() -> None:
    of = envelope(scope="@mastra/laminar")
    answered = '{"text": "It is cold.", "files": []}'
    run: JsonObject = {
        "lmnr.span.type": "DEFAULT",
        "lmnr.span.input": '[{"role": "user", "content": "Weather?"}]',
        "lmnr.span.output": answered,
    }
    model: JsonObject = {"lmnr.span.type": "LLM"}
    spans = [
        span(1, None, "workflow run: 'news-flow'", {"lmnr.span.type": "DEFAULT"}, of=of),
        span(2, 1, "workflow step: 'a'", {"lmnr.span.type": "DEFAULT"}, at=(1, 99), of=of),
        span(3, 2, "agent run: 'planner' (resumed)", run, at=(2, 90), of=of),
        span(4, 3, "llm: 'm'", model, at=(3, 80), of=of),
        span(5, 4, "tool: 'get'", TOOL, at=(10, 20), of=of),
    ]

    (told,) = runs_of(spans)

    assert ("planner", "Weather?", "It is cold.") == (told.agent.name, told.input, told.output)
    assert [("get", {"city": "Oslo"}, {"t": 1})] == [
        (call.name, call.arguments, call.result) for call in told.tool_calls
    ]


def test_a_tool_of_another_sender_keeps_the_name_that_looks_like_mastras() -> None:
    (run,) = runs_of([span(1, None, "planner", ROOT), span(2, 1, "tool: 'get'", TOOL)])

    assert ["tool: 'get'"] == [call.name for call in run.tool_calls]
