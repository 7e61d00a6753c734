"""tRPC-Agent-Go: GenAI conventions, with a call's result written as what a model would have answered."""

import json

import pytest

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import agent, model, runs_of, span


def response(message: JsonObject, **more: JsonValue) -> str:
    choice = {"index": 0, "message": {"role": "tool", **message}, "delta": {"role": ""}}
    told = {"id": "", "object": "tool.response", "model": "m", "choices": [choice], "done": False, **more}
    return json.dumps(told, separators=(",", ":"))


def tool(result: str, name: str = "get", **more: JsonValue) -> JsonObject:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
        "gen_ai.tool.call.result": result,
        **more,
    }


def run_with(attributes: JsonObject, status: tuple[int, str] = (0, "")) -> list[RawSpan]:
    call = span(2, 1, "execute_tool get", attributes, at=(10, 20), status=status)
    return [agent(1, None, "planner"), call]


@pytest.mark.parametrize(
    ("message", "result"),
    [
        ({"content": '{"t":21.5}'}, {"t": 21.5}),
        ({"content": "[1,2]"}, [1, 2]),
        ({"content": '"cold"'}, "cold"),
        ({"content": "cold"}, "cold"),
        ({"content": "null"}, None),
        ({}, ""),
        ({"content_parts": [{"type": "text", "text": "a"}]}, [{"type": "text", "text": "a"}]),
    ],
)
def test_a_result_comes_out_of_the_response_around_it(message: JsonObject, result: JsonValue) -> None:
    told = response({**message, "tool_id": "c1", "tool_name": "get"})

    (call,) = runs_of(run_with(tool(told)))[0].tool_calls

    assert (result, ValueState.PRESENT, "c1") == (call.result, call.result_state, call.call_id)


@pytest.mark.parametrize(
    "told",
    [
        response({"role": "assistant", "content": "x"}),
        '{"object":"tool.response","choices":[]}',
        '{"object":"tool.response","choices":[{"message":"x"}]}',
        '{"choices":[{"message":{"role":"tool","content":"x"}}]}',
        '{"object":"list","choices":["message"]}',
    ],
)
def test_what_only_looks_like_it_stays_as_it_is(told: str) -> None:
    (call,) = runs_of(run_with(tool(told)))[0].tool_calls

    assert json.loads(told) == call.result


def test_a_tool_that_does_not_exist_is_named_by_its_span() -> None:
    told = response({"content": "Error: tool not found: nowhere", "tool_id": "c1", "tool_name": "nowhere"})
    more = {"error.type": "_OTHER", "trpc.go.agent.event_id": "e1"}
    attributes = tool(told, "<not found>", **more)
    spans = [
        agent(1, None, "planner"),
        span(2, 1, "execute_tool nowhere", attributes, at=(10, 20), status=(STATUS_ERROR, "not found")),
    ]

    (call,) = runs_of(spans)[0].tool_calls

    assert ("nowhere", ToolError(type="_OTHER", message="not found")) == (call.name, call.error)


def test_tools_are_offered_by_the_request() -> None:
    offered = '[{"name":"get","description":"d","inputSchema":{"type":"object"}}]'
    spans = [
        agent(1, None, "planner"),
        model(2, 1, (1, 5), **{"gen_ai.request.tool.definitions": offered}),
    ]

    assert {"get": {"type": "object"}} == dict(runs_of(spans)[0].available_tools or {})


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ('{"omitted":true}', ValueState.REDACTED),
        ('{"omitted":true,"sha256":"%s","original_bytes":90}' % ("a" * 64), ValueState.TRUNCATED),
        (
            '{"truncated":true,"prefix":"{\\"city","sha256":"%s","original_bytes":90}' % ("a" * 64),
            ValueState.TRUNCATED,
        ),
    ],
)
def test_what_stands_for_a_value_that_a_policy_keeps_back_is_none(told: str, state: ValueState) -> None:
    attributes = tool(told)
    attributes["gen_ai.tool.call.arguments"] = told

    (call,) = runs_of(run_with(attributes))[0].tool_calls

    assert (state, state) == (call.arguments_state, call.result_state)
    assert (None, None) == (call.arguments, call.result)


def test_an_object_that_tells_of_its_own_cut_is_a_value() -> None:
    (call,) = runs_of(run_with(tool('{"truncated":true,"prefix":"x"}')))[0].tool_calls

    assert {"truncated": True, "prefix": "x"} == call.result
