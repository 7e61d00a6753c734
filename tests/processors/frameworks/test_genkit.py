"""Genkit's actions: flows and prompts as runs, models as turns, tools as calls."""

import json

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import runs_of, span


def action(subtype: str, name: str, given: JsonValue = None, made: JsonValue = None) -> JsonObject:
    fields: JsonObject = {
        "genkit:type": "action",
        "genkit:metadata:subtype": subtype,
        "genkit:name": name,
        "genkit:input": json.dumps(given),
        "genkit:state": "success",
    }
    return fields if made is None else {**fields, "genkit:output": json.dumps(made)}


def part(role: str, *content: JsonValue) -> JsonObject:
    return {"role": role, "content": list(content)}


def asks(*names: str) -> JsonObject:
    requests: list[JsonValue] = [
        {"toolRequest": {"name": name, "ref": f"r-{name}", "input": {"city": "Oslo"}}} for name in names
    ]
    return {"message": part("model", *requests)}


ASKED: JsonObject = {
    "messages": [part("system", {"text": "Be brief."}), part("user", {"text": "Weather?"})],
    "tools": [{"name": "get", "inputSchema": {"type": "object"}}],
}
ANSWER: JsonObject = {"message": part("model", {"text": "It is cold."})}
GENERATE: JsonObject = {"genkit:type": "util", "genkit:name": "generate"}
FLOW = span(1, None, "planner", action("flow", "planner", "Weather?", "It is cold."))


def tool(number: int = 4, parent: int = 2, name: str = "get", at: tuple[int, int] = (10, 20)) -> RawSpan:
    return span(number, parent, name, action("tool", name, {"city": "Oslo"}, {"t": 1}), at=at)


def model(number: int, parent: int, made: JsonValue, at: tuple[int, int]) -> RawSpan:
    return span(number, parent, "mock/m", action("model", "mock/m", ASKED, made), at=at)


def test_a_flow_is_a_run_with_the_calls_of_its_turns() -> None:
    spans = [
        FLOW,
        span(2, 1, "generate", GENERATE),
        model(3, 2, asks("get"), (1, 9)),
        tool(),
        span(5, 2, "generate", GENERATE, at=(21, 40)),
        model(6, 5, ANSWER, (22, 30)),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "It is cold.", ["get"]) == (
        run.agent.name,
        run.input,
        run.output,
        list(run.available_tools or ()),
    )
    assert [("get", {"city": "Oslo"}, {"t": 1}, None)] == [
        (call.name, call.arguments, call.result, call.error) for call in run.tool_calls
    ]
    assert ["system", "user", "assistant"] == [message.role for message in run.messages[:3]]


def test_a_flow_within_a_call_is_a_run_of_its_own() -> None:
    spans = [
        span(1, None, "boss", action("flow", "boss", "Q?", "Done.")),
        span(2, 1, "generate", GENERATE),
        tool(3, 2, "ask"),
        span(4, 3, "sub", action("flow", "sub", "temp?", "18"), at=(11, 19)),
        tool(5, 4, "get", at=(12, 13)),
    ]

    boss, sub = runs_of(spans)

    assert [("ask", CallCategory.AGENT)] == [(call.name, call.category) for call in boss.tool_calls]
    assert ("sub", "boss", ["get"]) == (
        sub.agent.name,
        sub.parent_agent,
        [call.name for call in sub.tool_calls],
    )


def test_a_prompt_that_is_executed_is_a_run() -> None:
    prompt: JsonObject = {
        "genkit:type": "dotprompt",
        "genkit:name": "planner",
        "genkit:input": '{"question": "Weather?"}',
        "genkit:output": json.dumps(ANSWER),
    }

    (run,) = runs_of([span(1, None, "planner", prompt), tool(2, 1)])

    assert ("planner", {"question": "Weather?"}, "It is cold.") == (run.agent.name, run.input, run.output)


def test_what_runs_outside_of_a_flow_is_named_by_the_service() -> None:
    spans = [
        span(1, None, "generate", {**GENERATE, "genkit:isRoot": True}),
        model(2, 1, asks("get"), (1, 9)),
        tool(3, 1),
        model(4, 1, ANSWER, (21, 30)),
    ]

    (run,) = runs_of(spans)

    assert ("demo", "Weather?", "It is cold.") == (run.agent.name, run.input, run.output)


def test_calls_of_one_answer_ran_side_by_side_in_its_order() -> None:
    spans = [
        FLOW,
        model(2, 1, asks("b", "a"), (1, 9)),
        tool(3, 1, "a"),
        tool(4, 1, "b"),
        model(5, 1, ANSWER, (21, 30)),
    ]

    (run,) = runs_of(spans)

    assert ["b", "a"] == [call.name for call in run.tool_calls]
    assert 1 == len({call.parallel_group for call in run.tool_calls} - {None})


def test_a_tool_that_raises_is_an_error() -> None:
    failed = span(
        2,
        1,
        "get",
        action("tool", "get", {"city": "Oslo"}),
        events=[("exception", {"exception.type": "Error", "exception.message": "boom"})],
        status=(STATUS_ERROR, "boom"),
    )

    (run,) = runs_of([FLOW, failed])

    (call,) = run.tool_calls
    assert (ToolError(type="Error", message="boom"), ValueState.ABSENT) == (call.error, call.result_state)


def test_redacted_values_are_not_known() -> None:
    hidden: JsonObject = {
        **action("tool", "get"),
        "genkit:input": "<redacted>",
        "genkit:output": "<redacted>",
    }

    (run,) = runs_of([FLOW, span(2, 1, "get", hidden)])

    (call,) = run.tool_calls
    assert (ValueState.REDACTED, ValueState.REDACTED) == (call.arguments_state, call.result_state)


@pytest.mark.parametrize("broken", ["{", "[]", '{"messages": 1}', '{"message": {"content": [1, null]}}', "3"])
def test_a_model_span_that_cannot_be_read_says_nothing(broken: str) -> None:
    fields: JsonObject = {**action("model", "m"), "genkit:input": broken, "genkit:output": broken}

    (run,) = runs_of([FLOW, span(2, 1, "m", fields, at=(1, 5)), tool(3, 1)])

    assert ["get"] == [call.name for call in run.tool_calls]


def test_an_agent_is_a_run_in_its_session() -> None:
    answered = {"sessionId": "s1", **ANSWER, "finishReason": "stop"}
    fields = {**action("agent", "planner", made=answered), "genkit:metadata:agent:sessionId": "s1"}
    del fields["genkit:input"]
    spans = [
        span(1, None, "planner", fields),
        model(2, 1, asks("get"), (1, 9)),
        tool(3, 1),
        model(4, 1, ANSWER, (21, 30)),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "s1", "Weather?", "It is cold.") == (
        run.agent.name,
        run.session,
        run.input,
        run.output,
    )


@pytest.mark.parametrize(
    ("made", "result"),
    [
        ({"output": {"t": 1}}, {"t": 1}),
        ({"output": "cold", "metadata": {}}, "cold"),
        ({}, None),
        ({"output": 1, "content": [{"text": "one"}]}, {"output": 1, "content": [{"text": "one"}]}),
        ({"output": 1, "unit": "C"}, {"output": 1, "unit": "C"}),
    ],
)
def test_a_result_comes_out_of_what_tools_of_several_parts_return(
    made: JsonObject, result: JsonValue
) -> None:
    called = span(2, 1, "get", action("tool.v2", "get", {"city": "Oslo"}, made), at=(10, 20))

    (run,) = runs_of([FLOW, called])

    assert [(result, ValueState.PRESENT)] == [(call.result, call.result_state) for call in run.tool_calls]
