"""TruLens: instrumented functions as runs and calls."""

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from tests.support.agent_spans import runs_of, span


def function(kind: str, name: str, returned: JsonValue = None, **arguments: JsonValue) -> JsonObject:
    fields: JsonObject = {
        "ai.observability.span_type": kind,
        "ai.observability.app_name": "weather-app",
        "ai.observability.call.function": f"app.App.{name}",
        **{f"ai.observability.call.kwargs.{key}": value for key, value in arguments.items()},
    }
    if kind == "tool":
        fields["gen_ai.tool.name"] = f"app.App.{name}"
    if returned is not None:
        fields["ai.observability.call.return"] = returned
    return fields


def root() -> JsonObject:
    return {
        **function("record_root", "ask", "Cold.", question="Weather?"),
        "ai.observability.record_root.input": "Weather?",
        "ai.observability.record_root.output": "Cold.",
    }


def test_functions_of_type_agent_and_tool_are_runs_and_calls() -> None:
    given: JsonObject = {"city": "Oslo", "days": 2, "options": '{"unit": "C"}'}
    spans = [
        span(1, None, "app.App.ask", root(), at=(0, 100)),
        span(2, 1, "app.App.planner", function("agent", "planner", "Cold.", question="Weather?"), at=(1, 99)),
        span(3, 2, "app.App.get", function("tool", "get", '{"t": 1}', **given), at=(10, 20)),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [("get", {"city": "Oslo", "days": 2, "options": {"unit": "C"}}, {"t": 1}, None)] == [
        (made.name, made.arguments, made.result, made.error) for made in run.tool_calls
    ]


def test_without_an_agent_the_record_is_the_run_of_the_application() -> None:
    failed = {**function("tool", "get"), "ai.observability.call.error": "kaput"}
    spans = [span(1, None, "app.App.ask", root(), at=(0, 100)), span(2, 1, "get", failed, at=(10, 20))]

    (run,) = runs_of(spans)

    (made,) = run.tool_calls
    assert ("weather-app", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert ({}, ValueState.ABSENT, ToolError(type="", message="kaput")) == (
        made.arguments,
        made.result_state,
        made.error,
    )


def test_a_graphs_node_that_executes_one_call_is_that_call() -> None:
    node = {
        **function(
            "tool", "ToolNode.invoke", input='[{"name": "get", "args": {"city": "Oslo"}, "id": "c1"}]'
        ),
        "ai.observability.call.return": """{'messages': [ToolMessage(content='it\\'s "cold"', name='get', """
        """tool_call_id='c1', status='error')]}""",
        "gen_ai.tool.name": "get",
    }
    asked = {**root(), "ai.observability.record_root.input": "{'role': 'user', 'content': 'Weather?'}"}
    spans = [span(1, None, "invoke", asked, at=(0, 100)), span(2, 1, "get", node, at=(10, 20))]

    (run,) = runs_of(spans)

    assert "Weather?" == run.input
    assert [("get", "c1", {"city": "Oslo"}, 'it\'s "cold"', 'it\'s "cold"')] == [
        (made.name, made.call_id, made.arguments, made.result, made.error and made.error.message)
        for made in run.tool_calls
    ]
