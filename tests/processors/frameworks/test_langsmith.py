"""LangSmith's OpenTelemetry export."""

import pytest

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span

CHAIN: JsonObject = {
    "langsmith.span.kind": "chain",
    "langsmith.trace.name": "planner",
    "langsmith.trace.session_name": "a project",
    "langsmith.metadata.thread_id": "t1",
    "gen_ai.operation.name": "chain",
    "gen_ai.system": "langchain",
    "gen_ai.prompt": '{"messages": [{"role": "user", "content": "Weather?"}]}',
    "gen_ai.completion": '{"output": "It is cold."}',
}


def tool(**more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "langsmith.span.kind": "tool",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.prompt": '{"city": "Oslo"}',
        "gen_ai.completion": '{"output": "cold"}',
        **more,
    }
    return span(3, 2, "get", fields, at=(10, 20), status=(1, ""))


def run_with(call: RawSpan, chain: JsonObject = CHAIN, name: str = "planner") -> list[RawSpan]:
    step: JsonObject = {"langsmith.span.kind": "chain", "gen_ai.operation.name": "chain"}
    return [span(1, None, name, chain), span(2, 1, "tools", step, at=(5, 25)), call]


def test_the_outermost_chain_is_the_run() -> None:
    (run,) = runs_of(run_with(tool()))

    assert ("planner", "Weather?", "It is cold.", "t1") == (
        run.agent.name,
        run.input,
        run.output,
        run.session,
    )
    assert [("get", {"city": "Oslo"}, "cold", None)] == [
        (made.name, made.arguments, made.result, made.error) for made in run.tool_calls
    ]


def test_a_chain_that_calls_nothing_is_a_run_too() -> None:
    (run,) = runs_of([span(1, None, "planner", CHAIN)])

    assert ("planner", []) == (run.agent.name, list(run.tool_calls))


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ("{\"input\": \"{'city': 'Oslo'}\"}", {"city": "Oslo"}),
        ('{"input": "Oslo"}', {"input": "Oslo"}),
        ('{"input": {"city": "Oslo"}}', {"input": {"city": "Oslo"}}),
    ],
)
def test_an_object_written_in_the_only_text_argument_is_the_arguments(
    given: str, arguments: JsonValue
) -> None:
    (run,) = runs_of(run_with(tool(**{"gen_ai.prompt": given})))

    assert [arguments] == [made.arguments for made in run.tool_calls]


def test_a_serialised_tool_message_is_opened() -> None:
    message = (
        '{"output": {"lc": 1, "type": "constructor", "id": ["langchain", "messages", "ToolMessage"],'
        ' "kwargs": {"content": "cold", "tool_call_id": "c1", "status": "error"}}}'
    )

    (run,) = runs_of(run_with(tool(**{"gen_ai.completion": message})))

    assert [("c1", "cold", ToolError(type="", message="cold"))] == [
        (made.call_id, made.result, made.error) for made in run.tool_calls
    ]


def test_a_graph_is_named_as_its_metadata_says() -> None:
    chain: JsonObject = {**CHAIN, "langsmith.metadata.lc_agent_name": "researcher"}

    (run,) = runs_of(run_with(tool(), chain, "LangGraph"))

    assert "researcher" == run.agent.name


def test_an_agent_within_a_tool_is_a_run_of_its_own() -> None:
    helper: JsonObject = {"langsmith.span.kind": "chain", "langsmith.metadata.lc_agent_name": "helper"}
    inner: JsonObject = {"langsmith.span.kind": "tool", "gen_ai.operation.name": "execute_tool"}

    runs = runs_of(
        [
            *run_with(tool()),
            span(4, 3, "helper", helper, at=(11, 19)),
            span(5, 4, "look", {**inner, "gen_ai.tool.name": "look"}, at=(12, 13)),
        ]
    )

    assert {"planner": ["get"], "helper": ["look"]} == {
        run.agent.name: [made.name for made in run.tool_calls] for run in runs
    }


def test_calls_that_only_a_model_tells_are_built_from_its_answer() -> None:
    model: JsonObject = {
        "langsmith.span.kind": "llm",
        "gen_ai.operation.name": "chat",
        "gen_ai.completion": '{"generations": [[{"text": "", "message": {"lc": 1, "id":'
        ' ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "", "tool_calls":'
        ' [{"name": "get", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}]}}}]]}',
    }

    (run,) = runs_of([span(1, None, "planner", CHAIN), span(2, 1, "ChatOpenAI", model, at=(1, 5))])

    assert [("get", "c1", {"city": "Oslo"})] == [
        (made.name, made.call_id, made.arguments) for made in run.tool_calls
    ]


def test_missing_values_stay_unknown() -> None:
    bare = span(3, 2, "get", {"langsmith.span.kind": "tool", "gen_ai.operation.name": "execute_tool"})

    (run,) = runs_of(run_with(bare))

    (made,) = run.tool_calls
    assert ("get", ValueState.ABSENT, ValueState.ABSENT) == (
        made.name,
        made.arguments_state,
        made.result_state,
    )


def test_hidden_inputs_and_outputs_are_unknown_and_not_empty() -> None:
    hidden: JsonObject = {"gen_ai.prompt": "{}", "gen_ai.completion": "{}"}

    (run,) = runs_of(run_with(tool(**hidden), {**CHAIN, **hidden}))

    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)
    assert [(ValueState.ABSENT, ValueState.ABSENT)] == [
        (made.arguments_state, made.result_state) for made in run.tool_calls
    ]


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"gen_ai.prompt": "{}"}, ValueState.PRESENT),
        ({"gen_ai.prompt": "{}", "langsmith.metadata.lc_agent_name": "planner"}, ValueState.ABSENT),
        ({"gen_ai.prompt": '{"input": "{}"}', "langsmith.metadata.lc_agent_name": "x"}, ValueState.PRESENT),
    ],
    ids=[
        "decorated function without arguments",
        "graph with hidden inputs",
        "graph's tool without arguments",
    ],
)
def test_only_a_decorated_function_can_have_empty_inputs(fields: JsonObject, state: ValueState) -> None:
    (run,) = runs_of(run_with(tool(**fields)))

    assert [(state, {} if state is ValueState.PRESENT else None)] == [
        (made.arguments_state, made.arguments) for made in run.tool_calls
    ]
