"""Haystack's own tracing: an agent in a pipeline, its steps, and what they report of their tools."""

import json

import pytest

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

AGENT: JsonObject = {"haystack.agent.max_steps": 100, "haystack.agent.exit_conditions": '["text"]'}
FAILURE = "Failed to invoke Tool `boom` with parameters {'x': 1}. Error: kaput"


def message(role: str, *content: JsonValue) -> JsonObject:
    return {"role": role, "meta": {}, "name": None, "content": list(content)}


def asked(name: str, call_id: str) -> JsonObject:
    return {"tool_call": {"tool_name": name, "arguments": {"city": "Oslo"}, "id": call_id, "extra": None}}


def tool(number: int, at: int, name: str, content: JsonObject, scope: str = "") -> RawSpan:
    fields: JsonObject = {"haystack.tool.name": name, "haystack.tool.description": "d", **content}
    return span(number, 3, "haystack.agent.step.tool", fields, at=(at, at + 1), of=envelope(scope=scope))


def captured(given: JsonValue, result: JsonValue) -> JsonObject:
    return {
        "haystack.agent.step.tool.input": json.dumps(given),
        "haystack.agent.step.tool.output": result if isinstance(result, str) else json.dumps(result),
    }


def pipeline(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    question = message("user", {"text": "Weather?"})
    origin: JsonObject = {"tool_name": "get", "arguments": {}, "id": "c1", "extra": None}
    result: JsonObject = {"tool_call_result": {"result": "cold", "origin": origin, "error": False}}
    history: list[JsonValue] = [
        question,
        message("assistant", asked("get", "c1"), asked("get", "c2")),
        message("tool", result),
        message("assistant", {"text": "Cold."}),
    ]
    run: JsonObject = {
        **AGENT,
        "haystack.agent.input": json.dumps({"messages": [question], "streaming_callback": None}),
        "haystack.agent.output": json.dumps({"messages": history}),
        "haystack.agent.tools": '[{"data": {"name": "get", "parameters": {"type": "object"}}}]',
    }
    turn: JsonObject = {
        "haystack.agent.step.llm.input": json.dumps({"messages": [question]}),
        "haystack.agent.step.llm.output": json.dumps({"replies": [history[1]]}),
    }
    component: JsonObject = {"haystack.component.name": "planner", "haystack.component.type": "Agent"}
    return [
        span(1, None, "haystack.component.run", component, at=(0, 100), of=of),
        span(2, 1, "haystack.agent.run", run, at=(1, 99), of=of),
        span(3, 2, "haystack.agent.step", {"haystack.agent.step": 0}, at=(2, 90), of=of),
        span(4, 3, "haystack.agent.step.llm", turn, at=(3, 9), of=of),
        tool(5, 10, "get", captured({"city": "Oslo"}, {"t": 25.0}), scope),
        tool(6, 20, "get", captured({"city": "Oslo"}, "cold"), scope),
    ]


def test_an_agent_in_a_pipeline_is_a_run_with_the_components_name() -> None:
    (run,) = runs_of(pipeline())

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [({"city": "Oslo"}, {"t": 25.0}), ({"city": "Oslo"}, "cold")] == [
        (call.arguments, call.result) for call in run.tool_calls
    ]
    assert run.tool_calls[0].parallel_group == run.tool_calls[1].parallel_group is not None
    assert {"get": {"type": "object"}} == dict(run.available_tools or {})


def test_an_agent_outside_a_pipeline_has_the_services_name() -> None:
    assert ["demo"] == [run.agent.name for run in runs_of([span(1, None, "haystack.agent.run", AGENT)])]


def test_a_tool_that_raised_has_a_failure_in_place_of_its_result() -> None:
    spans = [
        span(2, None, "haystack.agent.run", AGENT),
        span(3, 2, "haystack.agent.step", {"haystack.agent.step": 0}),
        tool(5, 10, "boom", captured({"x": 1}, {"error": FAILURE})),
        tool(6, 20, "get", captured({"x": 1}, {"error": "none of this tool's calls failed"})),
    ]

    assert [ToolError(type="", message="kaput"), None] == [
        call.error for call in runs_of(spans)[0].tool_calls
    ]


def test_without_content_names_alone_are_told() -> None:
    spans = [
        span(2, None, "haystack.agent.run", AGENT),
        span(3, 2, "haystack.agent.step", {"haystack.agent.step": 0}),
        tool(5, 10, "get", {}),
    ]

    (run,) = runs_of(spans)

    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)
    assert [("get", ValueState.ABSENT, ValueState.ABSENT)] == [
        (call.name, call.arguments_state, call.result_state) for call in run.tool_calls
    ]


def component(number: int, at: tuple[int, int], kind: str, output: JsonValue = None) -> RawSpan:
    """A component that an agent of version 2 runs; it has no spans of its own for steps and calls."""
    fields: JsonObject = {"haystack.component.name": kind.lower(), "haystack.component.type": kind}
    if output is not None:
        fields["haystack.component.input"] = "{'messages': [ChatMessage(_role=<ChatRole.USER: 'user'>)]}"
        fields["haystack.component.output"] = json.dumps(output)
    return span(number, 2, "haystack.component.run", fields, at=at)


def answered(name: str, call_id: str, result: str, *, error: bool = False) -> JsonObject:
    origin: JsonObject = {"tool_name": name, "arguments": {"city": "Oslo"}, "id": call_id, "extra": None}
    return message("tool", {"tool_call_result": {"result": result, "origin": origin, "error": error}})


def agent_of_version_2(**more: JsonValue) -> list[RawSpan]:
    fields: JsonObject = {"haystack.component.name": "planner", "haystack.component.type": "Agent"}
    return [
        span(1, None, "haystack.component.run", fields, at=(0, 100)),
        span(2, 1, "haystack.agent.run", {**AGENT, **more}, at=(1, 99)),
    ]


def test_before_version_3_calls_are_what_generators_asked_for_and_the_invoker_answered() -> None:
    asked_for = message("assistant", asked("get", "c1"), asked("put", "c2"))
    answers: list[JsonValue] = [
        answered("get", "c1", "{'t': 25}"),
        answered("put", "c2", FAILURE, error=True),
    ]
    spans = [
        *agent_of_version_2(),
        component(3, (2, 10), "OpenAIChatGenerator", {"replies": [asked_for]}),
        component(4, (11, 20), "ToolInvoker", {"tool_messages": answers, "state": {}}),
        component(5, (21, 30), "OpenAIChatGenerator", {"replies": [message("assistant", {"text": "Cold."})]}),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Cold.") == (run.agent.name, run.output)
    assert [("get", {"city": "Oslo"}, {"t": 25}, False), ("put", {"city": "Oslo"}, FAILURE, True)] == [
        (call.name, call.arguments, call.result, call.error is not None) for call in run.tool_calls
    ]
    assert run.tool_calls[0].parallel_group == run.tool_calls[1].parallel_group is not None


def test_before_version_3_an_invoker_that_ended_with_a_tools_error_tells_which_call_failed() -> None:
    asked_for = message("assistant", asked("get", "c1"), asked("get", "c2"))
    given = (
        "{'messages': [ChatMessage(_content=[ToolCall(tool_name='get', arguments={'city': 'Oslo'}, id='c1', "
        "extra=None), ToolCall(tool_name='get', arguments={'city': 'Rome'}, id='c2', extra=None)])]}"
    )
    failed: JsonObject = {"haystack.component.type": "ToolInvoker", "haystack.component.input": given}
    reason = (
        "failed to run:\nError: Failed to invoke Tool `get` with parameters {'city': 'Rome'}. Error: kaput"
    )
    spans = [
        *agent_of_version_2(),
        component(3, (2, 10), "OpenAIChatGenerator", {"replies": [asked_for]}),
        span(4, 2, "haystack.component.run", failed, at=(11, 20), status=(2, reason)),
    ]

    assert [("c1", None), ("c2", ToolError(type="", message="kaput"))] == [
        (call.call_id, call.error) for call in runs_of(spans)[0].tool_calls
    ]


def test_a_tools_span_that_is_marked_as_failed_is_a_failed_call_without_content_too() -> None:
    spans = [
        span(2, None, "haystack.agent.run", AGENT),
        span(3, 2, "haystack.agent.step", {"haystack.agent.step": 0}),
        tool(5, 10, "boom", {"haystack.tool.error": True}),
    ]

    assert [ToolError(type="", message="")] == [call.error for call in runs_of(spans)[0].tool_calls]


def test_an_agent_below_the_invoker_is_a_run_of_its_own() -> None:
    spans = [
        *agent_of_version_2(),
        component(3, (2, 10), "OpenAIChatGenerator", {"replies": [message("assistant", asked("ask", "c1"))]}),
        component(4, (11, 50), "ToolInvoker", {"tool_messages": [answered("ask", "c1", "80")]}),
        span(5, 4, "haystack.agent.run", AGENT, at=(12, 40)),
        span(
            6,
            5,
            "haystack.component.run",
            {
                "haystack.component.type": "OpenAIChatGenerator",
                "haystack.component.output": json.dumps(
                    {"replies": [message("assistant", asked("get", "c2"))]}
                ),
            },
            at=(13, 20),
        ),
    ]

    outer, inner = runs_of(spans)

    assert [("planner", ["ask"]), ("demo", ["get"])] == [
        (run.agent.name, [call.name for call in run.tool_calls]) for run in (outer, inner)
    ]
    assert "planner" == inner.parent_agent


@pytest.mark.parametrize(
    ("told", "complete"),
    [
        ({"haystack.agent.steps_taken": 4}, False),
        ({}, False),
        ({"haystack.agent.steps_taken": 1}, True),
        ({"haystack.agent.input": '{"messages": []}'}, False),
        (
            {
                "haystack.agent.input": '{"messages": []}',
                "haystack.agent.output": json.dumps({"messages": [message("assistant", {"text": "80"})]}),
            },
            True,
        ),
    ],
)
def test_without_content_a_run_of_several_steps_may_have_made_calls(told: JsonObject, complete: bool) -> None:
    (run,) = runs_of(agent_of_version_2(**told))

    assert [] == list(run.tool_calls)
    assert complete is run.complete


def test_an_agent_that_runs_as_a_tool_has_the_tools_name() -> None:
    spans = [
        *agent_of_version_2(),
        span(3, 2, "haystack.agent.step.tool", {"haystack.tool.name": "humid"}, at=(10, 50)),
        span(4, 3, "haystack.agent.run", AGENT, at=(11, 40)),
    ]

    assert [("planner", None), ("humid", "planner")] == [
        (run.agent.name, run.parent_agent) for run in runs_of(spans)
    ]


def test_other_components_are_no_agents() -> None:
    fields: JsonObject = {"haystack.component.name": "retriever", "haystack.component.type": "BM25Retriever"}

    assert [] == runs_of([span(1, None, "haystack.component.run", fields)])


def test_neither_scope_names_nor_other_conventions_change_what_is_read() -> None:
    assert_conditions_change_nothing(pipeline)
