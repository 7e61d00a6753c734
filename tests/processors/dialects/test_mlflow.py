"""MLflow's native spans: every attribute value is JSON, texts in quotes."""

import json

import pytest

from processors.agent_run import ToolError, ValueState
from processors.json_value import JsonObject, JsonValue
from processors.span import RawSpan
from tests.support.agent_spans import runs_of, span

AGENT: JsonObject = {
    "mlflow.spanType": '"AGENT"',
    "mlflow.spanInputs": '{"messages": [{"role": "user", "content": "Weather?"}]}',
    "mlflow.spanOutputs": '"It is cold."',
}


def tool(number: int, name: str = "get", **more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "mlflow.spanType": '"TOOL"',
        "mlflow.spanInputs": '{"city": "Oslo"}',
        "mlflow.spanOutputs": '"done"',
        "mlflow.spanFunctionName": f'"{name}"',
        **more,
    }
    return span(number, 1, name, fields, at=(number * 10, number * 10 + 5))


def test_a_run_is_read_with_its_calls_in_order() -> None:
    (run,) = runs_of([span(1, None, "planner", AGENT, at=(0, 100)), tool(3, "second"), tool(2, "first")])

    assert ("planner", "Weather?", "It is cold.") == (run.agent.name, run.input, run.output)
    assert [("first", {"city": "Oslo"}, "done"), ("second", {"city": "Oslo"}, "done")] == [
        (made.name, made.arguments, made.result) for made in run.tool_calls
    ]


def test_the_quotes_around_the_type_may_be_missing() -> None:
    (run,) = runs_of([span(1, None, "planner", AGENT), tool(2, **{"mlflow.spanType": "TOOL"})])

    assert ["get"] == [made.name for made in run.tool_calls]


def test_a_tool_message_is_opened() -> None:
    message = '{"content": "cold", "type": "tool", "name": "get", "tool_call_id": "c1", "status": "success"}'

    (run,) = runs_of([span(1, None, "planner", AGENT), tool(2, **{"mlflow.spanOutputs": message})])

    assert [("c1", "cold")] == [(made.call_id, made.result) for made in run.tool_calls]


def test_a_failed_call_tells_why() -> None:
    failed = span(
        2,
        1,
        "get",
        {"mlflow.spanType": '"TOOL"'},
        status=(2, "boom"),
        events=[("exception", {"exception.type": "ValueError", "exception.message": "boom"})],
    )

    (run,) = runs_of([span(1, None, "planner", AGENT), failed])

    assert [ToolError(type="ValueError", message="boom")] == [made.error for made in run.tool_calls]


def test_missing_values_stay_unknown() -> None:
    bare = span(2, 1, "get", {"mlflow.spanType": '"TOOL"'})

    (run,) = runs_of([span(1, None, "planner", {"mlflow.spanType": '"AGENT"'}), bare])

    (made,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (made.arguments_state, made.result_state)


@pytest.mark.parametrize(
    "answer",
    [
        '{"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [{"id": "c1",'
        ' "type": "function", "function": {"name": "get", "arguments": "{\\"city\\": \\"Oslo\\"}"}}]}}]}',
        '{"generations": [[{"text": "", "message": {"content": "", "type": "ai", "tool_calls":'
        ' [{"name": "get", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}]}}]]}',
        '{"content": [{"type": "tool_use", "id": "c1", "name": "get", "input": {"city": "Oslo"}}],'
        ' "role": "assistant"}',
    ],
)
def test_calls_that_only_a_model_tells_are_built_from_its_answer(answer: str) -> None:
    model: JsonObject = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanOutputs": answer}

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "Completions", model, at=(1, 5))])

    assert [("get", "c1", {"city": "Oslo"})] == [
        (made.name, made.call_id, made.arguments) for made in run.tool_calls
    ]


def metadata(of: str, node: str = "") -> str:
    fields = {"lc_agent_name": of, "thread_id": "t1", **({"langgraph_node": node} if node else {})}
    return json.dumps(fields)


def native(kind: str, of: str, node: str = "") -> JsonObject:
    return {"mlflow.spanType": f'"{kind}"', "metadata": metadata(of, node)}


def conventional(operation: str, of: str, node: str = "", **more: JsonValue) -> JsonObject:
    return {"gen_ai.operation.name": operation, "metadata": metadata(of, node), **more}


NATIVE_GRAPH = [
    span(1, None, "planner", native("CHAIN", "planner")),
    span(2, 1, "tools", native("CHAIN", "planner", "tools"), at=(5, 60)),
    span(3, 2, "ask", native("TOOL", "planner", "tools"), at=(10, 50)),
    span(4, 3, "weather", native("CHAIN", "weather", "tools"), at=(11, 49)),
    span(5, 4, "tools", native("CHAIN", "weather", "tools"), at=(12, 40)),
    span(6, 5, "get", native("TOOL", "weather", "tools"), at=(13, 20)),
]
ASKED = '[{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}]'
CONVENTIONAL_GRAPH = [
    span(1, None, "CHAIN", conventional("CHAIN", "planner", **{"gen_ai.input.messages": ASKED})),
    span(2, 1, "CHAIN", conventional("CHAIN", "planner", "tools"), at=(5, 60)),
    span(
        3,
        2,
        "execute_tool ask",
        conventional("execute_tool", "planner", "tools", **{"gen_ai.tool.name": "ask"}),
        at=(10, 50),
    ),
    span(
        4,
        3,
        "CHAIN",
        conventional("CHAIN", "weather", "tools", **{"gen_ai.input.messages": ASKED}),
        at=(11, 49),
    ),
    span(5, 4, "CHAIN", conventional("CHAIN", "weather", "tools"), at=(12, 40)),
    span(
        6,
        5,
        "execute_tool get",
        conventional("execute_tool", "weather", "tools", **{"gen_ai.tool.name": "get"}),
        at=(13, 20),
    ),
]


@pytest.mark.parametrize("spans", [NATIVE_GRAPH, CONVENTIONAL_GRAPH], ids=["native", "conventions"])
def test_a_graph_is_the_run_of_the_agent_in_its_metadata(spans: list[RawSpan]) -> None:
    runs = runs_of(spans)

    assert [("planner", None, "t1", ["ask"]), ("weather", "planner", "t1", ["get"])] == [
        (run.agent.name, run.parent_agent, run.session, [made.name for made in run.tool_calls])
        for run in runs
    ]


def test_metadata_that_cannot_be_read_names_nobody() -> None:
    chain: JsonObject = {"mlflow.spanType": '"CHAIN"', "metadata": '{"lc_agent_name": "planner"'}

    (run,) = runs_of([span(1, None, "graph", chain, at=(0, 100)), tool(2)])

    assert "demo" == run.agent.name
