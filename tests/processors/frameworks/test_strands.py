"""Strands Agents: content blocks in events, or in attributes with the experimental conventions."""

import json
from collections.abc import Callable

import pytest

from processors.model import CallCategory, Decision, JsonObject, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

DETAILS = "gen_ai.client.inference.operation.details"
STARTED: JsonObject = {"gen_ai.event.start_time": "2026-11-22T00:13:55.925044+00:00"}


def operation(name: str, **more: str) -> JsonObject:
    return {**STARTED, "gen_ai.operation.name": name, **more}


def messages(role: str, **part: object) -> str:
    return json.dumps([{"role": role, "parts": [part]}])


def tool_fields(call_id: str, status: str = "success") -> JsonObject:
    return {
        **operation("execute_tool"),
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.status": status,
    }


def by_events(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    arguments = ("gen_ai.tool.message", {"role": "tool", "content": '{"city": "Oslo"}', "id": "c1"})
    result = ("gen_ai.choice", {"message": '[{"text": "{\\"t\\": 25.0}"}]', "id": "c1"})
    asked = ("gen_ai.user.message", {"content": '[{"text": "Weather?"}]'})
    answer = ("gen_ai.choice", {"message": "Cold.\n", "finish_reason": "end_turn"})
    repeated = (
        "gen_ai.choice",
        {"message": '[{"toolUse": {"name": "get", "toolUseId": "c1", "input": {}}}]'},
    )
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner"})
    return [
        span(1, None, "invoke_agent planner", agent, at=(0, 100), events=[asked, answer], of=of),
        span(2, 1, "execute_event_loop_cycle", operation("execute_event_loop_cycle"), at=(1, 90),
             events=[repeated], of=of),
        span(3, 2, "execute_tool get", tool_fields("c1"), at=(10, 20), events=[arguments, result], of=of),
    ]  # fmt: skip


def by_attributes(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    asked = (DETAILS, {"gen_ai.input.messages": messages("user", type="text", content="Weather?")})
    answer = (DETAILS, {"gen_ai.output.messages": messages("assistant", type="text", content="Cold.\n")})
    fields: JsonObject = {
        **tool_fields("c1"),
        "gen_ai.tool.call.arguments": '{"city": "Oslo"}',
        "gen_ai.tool.call.result": '[{"text": "{\\"t\\": 25.0}"}]',
    }
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner"})
    return [
        span(1, None, "invoke_agent planner", agent, at=(0, 100), events=[asked, answer], of=of),
        span(2, 1, "execute_event_loop_cycle", operation("execute_event_loop_cycle"), at=(1, 90), of=of),
        span(3, 2, "execute_tool get", fields, at=(10, 20), of=of),
    ]


@pytest.mark.parametrize("spans", [by_events(), by_attributes()], ids=["events", "attributes"])
def test_both_forms_tell_the_same_run(spans: list[RawSpan]) -> None:
    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [("get", "c1", {"city": "Oslo"}, {"t": 25.0}, None)] == [
        (call.name, call.call_id, call.arguments, call.result, call.error) for call in run.tool_calls
    ]


def test_a_json_block_is_its_value() -> None:
    result = ("gen_ai.choice", {"message": '[{"json": {"t": 1}}]', "id": "c1"})
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner"})

    (run,) = runs_of([span(1, None, "a", agent), span(2, 1, "get", tool_fields("c1"), events=[result])])

    assert [{"t": 1}] == [call.result for call in run.tool_calls]


def test_the_status_of_a_tool_tells_that_it_failed() -> None:
    exception = ("exception", {"exception.type": "ValueError", "exception.message": "kaput"})
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner"})
    spans = [
        span(1, None, "a", agent),
        span(2, 1, "get", tool_fields("c1", "error"), at=(1, 2)),
        span(
            3,
            1,
            "get",
            tool_fields("c2", "error"),
            at=(3, 4),
            events=[exception],
            status=(STATUS_ERROR, "kaput"),
        ),
    ]

    assert [ToolError(type="", message=""), ToolError(type="ValueError", message="kaput")] == [
        call.error for call in runs_of(spans)[0].tool_calls
    ]


def test_the_session_is_the_applications_own_attribute() -> None:
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner", "session.id": "s1"})

    assert ["s1"] == [run.session for run in runs_of([span(1, None, "a", agent)])]


def test_values_that_were_moved_elsewhere_are_not_made_up() -> None:
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner"})

    (run,) = runs_of([span(1, None, "a", agent), span(2, 1, "get", tool_fields("c1"))])

    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)
    assert [(ValueState.ABSENT, ValueState.ABSENT)] == [
        (call.arguments_state, call.result_state) for call in run.tool_calls
    ]


@pytest.mark.parametrize("spans", [by_events, by_attributes])
def test_neither_scope_names_nor_other_conventions_change_what_is_read(
    spans: Callable[[str], list[RawSpan]],
) -> None:
    assert_conditions_change_nothing(spans)


def test_a_failed_call_of_an_older_version_tells_its_error_in_its_result_alone() -> None:
    fields: JsonObject = {
        **operation("execute_tool"),
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "tool.status": "error",
    }
    told = ("gen_ai.choice", {"message": '[{"text": "Error: kaput"}]', "id": "c1"})
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner"})

    (run,) = runs_of(
        [span(1, None, "Agent: planner", agent), span(2, 1, "Tool: get", fields, at=(1, 2), events=[told])]
    )

    assert [ToolError(type="", message="Error: kaput")] == [call.error for call in run.tool_calls]


def test_an_answer_that_was_moved_to_an_attribute_loses_the_line_end_too() -> None:
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner", "output.value": "Cold.\n"})

    (run,) = runs_of([span(1, None, "invoke_agent planner", {**agent, "openinference.span.kind": "AGENT"})])

    assert "Cold." == run.output


def test_the_tool_for_structured_output_gives_the_answer() -> None:
    described = (
        "IMPORTANT: This StructuredOutputTool should only be invoked as the last and final tool before "
        "returning the completed result to the caller. <description>A report</description>"
    )
    fields: JsonObject = {**tool_fields("c1"), "gen_ai.tool.description": described}

    (run,) = runs_of(
        [
            span(1, None, "invoke_agent planner", operation("invoke_agent")),
            span(2, 1, "execute_tool get", fields, at=(1, 2)),
        ]
    )

    assert [CallCategory.FINAL_ANSWER] == [call.category for call in run.tool_calls]


def test_a_list_comes_out_of_the_object_that_was_made_of_it() -> None:
    result = ("gen_ai.choice", {"message": '[{"json":{"$value":[1,2]}}]', "id": "c1"})
    agent = operation("invoke_agent", **{"gen_ai.agent.name": "planner"})

    (run,) = runs_of([span(1, None, "a", agent), span(2, 1, "get", tool_fields("c1"), events=[result])])

    assert [([1, 2], "[1, 2]")] == [(call.result, call.result_text) for call in run.tool_calls]


def test_the_tool_for_structured_output_is_known_by_its_name_where_it_is_not_described() -> None:
    fields: JsonObject = {**tool_fields("c1"), "gen_ai.tool.name": "strands_structured_output"}

    (run,) = runs_of(
        [
            span(1, None, "invoke_agent planner", operation("invoke_agent")),
            span(2, 1, "execute_tool strands_structured_output", fields, at=(1, 2)),
        ]
    )

    assert [CallCategory.FINAL_ANSWER] == [call.category for call in run.tool_calls]


def test_structured_output_without_a_run_is_one_that_answers_with_data() -> None:
    fields: JsonObject = {
        "gen_ai.operation.name": "execute_structured_output",
        "gen_ai.agent.name": "planner",
    }
    events = [
        ("gen_ai.user.message", {"role": "user", "content": '[{"text": "Weather?"}]'}),
        ("gen_ai.choice", {"message": '{"city": "Oslo", "t": 25}'}),
    ]

    (run,) = runs_of([span(1, None, "execute_structured_output", fields, events=events)])

    assert ("planner", "Weather?", {"city": "Oslo", "t": 25}, 0) == (
        run.agent.name,
        run.input,
        run.output,
        len(run.tool_calls),
    )


@pytest.mark.parametrize("kind", ["tool_call", "before_tool_call", "middleware_execute_tool"])
def test_only_the_call_that_an_interrupt_names_waits(kind: str) -> None:
    interrupts = [
        {"id": f"v1:{kind}:c2:225d3982-9eb3-5ce9-93ca-f09a444307f7", "name": "approval", "response": None},
        {"id": "v1:before_tools:225d3982-9eb3-5ce9-93ca-f09a444307f7", "name": "all", "response": None},
        {"id": f"v1:{kind}:c9:225d3982-9eb3-5ce9-93ca-f09a444307f7", "name": "unseen", "response": None},
    ]
    choice = ("gen_ai.choice", {"message": f"{interrupts}\n", "finish_reason": "interrupt"})
    waiting = {key: value for key, value in tool_fields("c2").items() if key != "gen_ai.tool.status"}

    (run,) = runs_of(
        [
            span(1, None, "invoke_agent planner", operation("invoke_agent"), events=[choice]),
            span(2, 1, "execute_tool get_weather", tool_fields("c1"), at=(1, 2)),
            span(3, 1, "execute_tool get_weather", waiting, at=(3, 4)),
        ]
    )

    assert [("c1", True, None), ("c2", False, Decision.PENDING)] == [
        (call.call_id, call.executed, call.decision) for call in run.tool_calls
    ]
    assert run.output_state is ValueState.ABSENT
