"""NVIDIA NeMo Agent Toolkit: steps of workflows, functions, tools and models."""

import json

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span

KINDS = {"LLM_START": "LLM", "TOOL_START": "TOOL"}


def step(event: str, name: str, function: str, caller: str, *values: str, **more: JsonValue) -> JsonObject:
    told: JsonObject = dict(zip(("input.value", "output.value"), values, strict=False))
    return {
        "nat.event_type": event,
        "nat.subspan.name": name,
        "nat.function.name": function,
        "nat.function.parent_name": caller,
        "nat.framework": "unknown" if event in ("WORKFLOW_START", "FUNCTION_START") else "langchain",
        "nat.conversation.id": "unknown",
        "openinference.span.kind": KINDS.get(event, "CHAIN"),
        **told,
        **more,
    }


def workflow(kind: str = "react_agent", name: str = "") -> list[RawSpan]:
    values = "Weather?", "Cold."
    root = step("WORKFLOW_START", kind, "root", "unknown", *values)
    function = step("FUNCTION_START", name or kind, name or kind, "root", *values)
    return [
        span(1, None, name or kind, root, at=(0, 100)),
        span(2, 1, name or kind, function, at=(1, 99)),
    ]


def message_of_tool(content: str, call_id: str, status: str = "success") -> JsonObject:
    answer: JsonObject = {"type": "tool", "name": "get", "content": content, "id": None, "artifact": None}
    return {
        **answer,
        "additional_kwargs": {},
        "response_metadata": {},
        "tool_call_id": call_id,
        "status": status,
    }


def turn(history: list[JsonValue], answer: str) -> JsonObject:
    asked: JsonObject = {"content": "Weather?", "additional_kwargs": {}, "type": "human"}
    return step("LLM_START", "m", "react_agent", "root", json.dumps([asked, *history]), answer)


def request(call_id: str) -> str:
    return f"\n\nTool calls: [{{'name': 'get', 'args': {{'city': 'Oslo'}}, 'id': '{call_id}'}}]"


def called(number: int, name: str = "get", caller: str = "react_agent") -> list[RawSpan]:
    answer = json.dumps(message_of_tool('{"t": 1}', "call_2"))
    tool = step("TOOL_START", name, caller, "root", "{'city': 'Oslo'}", answer)
    function = step("FUNCTION_START", name, name, caller, '{"city": "Oslo", "days": 1}', '{"t": 1}')
    return [
        span(number, 2, name, tool, at=(40, 50)),
        span(number + 1, number, name, function, at=(41, 49)),
    ]


def test_a_call_is_read_once_from_the_step_of_the_tool_and_that_of_its_function() -> None:
    (run,) = runs_of([*workflow(), *called(10)])

    assert ("demo", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [("get", "call_2", {"city": "Oslo"}, {"t": 1}, None, CallCategory.FUNCTION)] == [
        (made.name, made.call_id, made.arguments, made.result, made.error, made.category)
        for made in run.tool_calls
    ]


@pytest.mark.parametrize(
    ("kind", "name", "agent"),
    [
        ("tool_calling_agent", "<workflow>", "demo"),
        ("weather_planner", "<workflow>", "weather_planner"),
        ("weather_planner", "", "weather_planner"),
    ],
)
def test_a_workflow_is_named_by_its_type_unless_the_type_is_one_of_the_toolkits(
    kind: str, name: str, agent: str
) -> None:
    (run,) = runs_of(workflow(kind, name))

    assert agent == run.agent.name


def test_functions_are_the_calls_where_no_step_of_a_tool_tells_of_them() -> None:
    function = step("FUNCTION_START", "get", "get", "<workflow>", '{"city": "Oslo"}', '{"t": 1}')
    failed = step("FUNCTION_START", "get", "get", "<workflow>", '{"city": "Oslo"}')
    spans = [
        span(
            2, None, "<workflow>", step("FUNCTION_START", "<workflow>", "<workflow>", "root", "W?", "Cold.")
        ),
        span(3, 2, "get", failed, at=(10, 20)),
        span(4, 2, "get", function, at=(30, 40)),
    ]

    (run,) = runs_of(spans)

    assert [("get", {"city": "Oslo"}, ValueState.ABSENT), ("get", {"city": "Oslo"}, ValueState.PRESENT)] == [
        (made.name, made.arguments, made.result_state) for made in run.tool_calls
    ]


def test_a_failure_of_which_only_the_function_tells_is_known_from_the_next_turn() -> None:
    failed = step("FUNCTION_START", "get", "get", "react_agent", '{"city": "Oslo", "days": 1}')
    asked: JsonObject = {
        "content": "",
        "type": "ai",
        "tool_calls": [{"name": "get", "args": {"city": "Oslo"}, "id": "call_1", "type": "tool_call"}],
    }
    error = message_of_tool("Error: kaput", "call_1", "error")
    spans = [
        *workflow(),
        span(3, 2, "m", turn([], request("call_1")), at=(5, 10)),
        span(4, 77, "get", failed, at=(11, 15)),
        span(5, 2, "m", turn([asked, error], "Cold."), at=(60, 70)),
    ]

    (run,) = runs_of(spans)

    (made,) = run.tool_calls
    assert ("call_1", {"city": "Oslo"}) == (made.call_id, made.arguments)
    assert made.error is not None
    assert "Error: kaput" == made.error.message


def test_a_function_that_takes_a_chat_is_a_call_with_the_run_of_an_agent_below_it() -> None:
    chat = '{"messages": null, "input_message": "Weather in Oslo?"}'
    tool = step(
        "TOOL_START", "weather", "react_agent", "root", "{'input_message': 'Weather in Oslo?'}", "Cold."
    )
    function = step("FUNCTION_START", "weather", "weather", "react_agent", chat, "Cold.")
    inner = step("TOOL_START", "get", "weather", "react_agent", "{'city': 'Oslo'}", '{"t": 1}')
    spans = [
        *workflow(),
        span(3, 2, "weather", tool, at=(10, 60)),
        span(4, 3, "weather", function, at=(11, 59)),
        span(5, 4, "get", inner, at=(20, 30)),
    ]

    outer, nested = runs_of(spans)

    assert [("weather", CallCategory.AGENT)] == [(made.name, made.category) for made in outer.tool_calls]
    assert ("weather", "demo", "Weather in Oslo?", "Cold.") == (
        nested.agent.name,
        nested.parent_agent,
        nested.input,
        nested.output,
    )
    assert ["get"] == [made.name for made in nested.tool_calls]


def test_what_a_framework_does_within_a_function_is_no_call() -> None:
    chain = step("FUNCTION_START", "LangGraph", "<workflow>", "root", "{}", "{}")
    spans = [*workflow(), span(3, 2, "LangGraph", {**chain, "nat.framework": "langchain"}, at=(5, 90))]

    (run,) = runs_of(spans)

    assert [] == run.tool_calls
    assert "Cold." == run.output


def test_the_attributes_of_before_the_toolkit_was_renamed_are_read_too() -> None:
    spans = [
        span(
            number,
            parent,
            name,
            {
                "aiq.event_type": event,
                "aiq.subspan.name": name,
                "aiq.function.name": "<workflow>",
                "aiq.framework": framework,
                "openinference.span.kind": KINDS.get(event, "CHAIN"),
                "input.value": "{'city': 'Oslo'}",
                "output.value": "cold",
            },
            at=(number, 100 - number),
        )
        for number, parent, name, event, framework in (
            (1, None, "<workflow>", "FUNCTION_START", "unknown"),
            (2, 1, "get", "TOOL_START", "langchain"),
        )
    ]

    (run,) = runs_of(spans)

    assert [("get", {"city": "Oslo"}, "cold")] == [
        (made.name, made.arguments, made.result) for made in run.tool_calls
    ]


def test_a_graph_whose_steps_are_lost_after_its_first_turn_is_no_run_without_calls() -> None:
    answer = json.dumps(
        {"content": "", "type": "AIMessageChunk", "tool_calls": [{"name": "get", "args": {}}]}
    )
    graph = step("FUNCTION_START", "LangGraph", "react_agent", "root", "{}", "{'messages': [AIMessage(x)]}")
    chain = step("FUNCTION_START", "RunnableSequence", "react_agent", "root", "{}", answer)
    spans = [
        *workflow(),
        span(3, 2, "LangGraph", {**graph, "nat.framework": "langchain"}, at=(5, 90)),
        span(4, 3, "RunnableSequence", {**chain, "nat.framework": "langchain"}, at=(6, 20)),
        span(5, 4, "m", turn([], request("call_1")), at=(7, 19)),
    ]

    (run,) = runs_of(spans)

    assert ("demo", [], "Cold.") == (run.agent.name, run.tool_calls, run.output)
    assert (False, "content_not_captured") == (run.complete, run.incomplete_reason)
