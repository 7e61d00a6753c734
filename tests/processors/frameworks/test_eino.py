"""Eino's APMPlus callback: spans of components, with flattened messages on every one of them."""

import json

import pytest

from processors.model import AgentRun, CallCategory, JsonObject, JsonValue, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import runs_of, span

REQUEST: JsonObject = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"city":"Oslo"}'}}
    ],
}
QUESTION: JsonObject = {"role": "user", "content": "Weather?"}


def component(
    number: int,
    parent: int | None,
    kind: str,
    name: str,
    at: tuple[int, int],
    given: str | None = None,
    made: str | None = None,
    more: JsonObject | None = None,
    status: tuple[int, str] = (0, ""),
) -> RawSpan:
    fields: JsonObject = {
        "gen_ai.span.kind": "workflow" if parent is None else kind.lower(),
        "gen_ai.system": "eino",
        "runinfo.name": name,
        "runinfo.type": "",
        "runinfo.component": kind,
        **({} if given is None else {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": given}),
        **({} if made is None else {"gen_ai.completion.0.content": made}),
        **(more or {}),
    }
    return span(number, parent, name or kind, fields, at=at, status=status)


def turn(number: int, parent: int, at: tuple[int, int], answer: str = "") -> RawSpan:
    made = answer or json.dumps([REQUEST], separators=(",", ":"))
    return component(number, parent, "ChatModel", "ChatModel", at, "Weather?", made)


def tool(number: int, parent: int, at: tuple[int, int], result: str = '{"t":1}') -> RawSpan:
    return component(number, parent, "Tool", "get", at, json.dumps('{"city":"Oslo"}'), json.dumps(result))


def graph(name: str) -> list[RawSpan]:
    told: JsonObject = {
        "gen_ai.input": json.dumps([{"role": "system", "content": "Be brief."}, QUESTION]),
        "gen_ai.output": json.dumps([{"role": "assistant", "content": "Cold."}]),
    }
    return [
        component(1, None, "Graph", name, (0, 100), "Be brief.", "Cold.", told),
        turn(2, 1, (1, 5)),
        component(3, 1, "ToolsNode", "Tools", (6, 30), json.dumps(REQUEST), "[]"),
        tool(4, 3, (7, 20)),
        turn(5, 1, (31, 40), "Cold."),
    ]


def told(run: AgentRun) -> tuple[str, str | None, JsonValue, JsonValue]:
    return run.agent.name, run.parent_agent, run.input, run.output


@pytest.mark.parametrize(("name", "agent"), [("planner", "planner"), ("ReActAgent", "demo")])
def test_the_outermost_graph_is_the_run_of_its_tools_calls(name: str, agent: str) -> None:
    (run,) = runs_of(graph(name))

    assert (agent, None, "Weather?", "Cold.") == told(run)
    assert [("get", {"city": "Oslo"}, {"t": 1}, None, CallCategory.FUNCTION)] == [
        (call.name, call.arguments, call.result, call.error, call.category) for call in run.tool_calls
    ]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_agent_of_the_adk_that_is_used_as_a_tool_has_a_run_of_its_own(is_streamed: bool) -> None:
    given = json.dumps({"Messages": [QUESTION], "EnableStreaming": is_streamed}, separators=(",", ":"))
    given = f"[{given}]" if is_streamed else given
    asked = {**QUESTION, "content": "Temperature?"}
    inner = json.dumps({"Messages": [asked], "EnableStreaming": False}, separators=(",", ":"))
    spans = [
        component(1, None, "Chain", "planner", (0, 100), given, "Cold.", {"gen_ai.input": given}),
        component(2, 1, "Graph", "ReAct", (1, 99), "Weather?", "Cold."),
        component(3, 2, "Tool", "helper", (2, 60), '"{}"', '"1 degree"', {"runinfo.type": "agentTool"}),
        component(4, 3, "Chain", "helper", (3, 50), inner, "1 degree"),
        component(5, 4, "Graph", "ReAct", (4, 49), "Temperature?", "1 degree"),
        tool(6, 5, (10, 20)),
    ]

    planner, helper = runs_of(spans)

    assert ("planner", None, "Weather?", "Cold.") == told(planner)
    assert ("helper", "planner", "Temperature?", "1 degree") == told(helper)
    assert [("helper", CallCategory.AGENT)] == [(call.name, call.category) for call in planner.tool_calls]
    assert ["get"] == [call.name for call in helper.tool_calls]


def test_a_call_that_failed_has_no_result() -> None:
    spans = graph("planner")
    spans[3] = component(4, 3, "Tool", "get", (7, 20), '"{}"', status=(STATUS_ERROR, "kaput"))

    (call,) = runs_of(spans)[0].tool_calls

    assert call.error is not None
    assert ("kaput", ValueState.ABSENT) == (call.error.message, call.result_state)


def test_a_call_without_a_span_is_told_by_the_model() -> None:
    spans = graph("planner")
    del spans[3]

    (call,) = runs_of(spans)[0].tool_calls

    assert ("get", "c1", {"city": "Oslo"}) == (call.name, call.call_id, call.arguments)
