"""Google ADK: today's GenAI names, the `gcp.vertex.agent` names before them, and OpenInference on top."""

import json
from collections.abc import Callable

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import agent, envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

EVENT: JsonObject = {"gcp.vertex.agent.event_id": "df3490dc-09c2-499f-906c-eaaf5bff9bf4"}


def tool(
    number: int, name: str, call_id: str, at: int, more: JsonObject | None = None, scope: str = ""
) -> RawSpan:
    fields: JsonObject = {
        **EVENT,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "planner",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.type": "FunctionTool",
        **(more or {}),
    }
    return span(number, 2, f"execute_tool {name}", fields, at=(at, at + 1), of=envelope(scope=scope))


def captured(arguments: JsonValue, result: JsonValue) -> JsonObject:
    return {
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": json.dumps(result),
    }


def turn(number: int, at: tuple[int, int], scope: str = "", parent: int = 2) -> RawSpan:
    fields: JsonObject = {**EVENT, "gen_ai.operation.name": "generate_content", "gen_ai.request.model": "m"}
    return span(number, parent, "generate_content m", fields, at=at, of=envelope(scope=scope))


def current(scope: str = "") -> list[RawSpan]:
    """An agent with two calls of one turn and another agent as a tool; turns end after their calls."""
    of = envelope(scope=scope)
    workflow: JsonObject = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "planner"}
    merged: JsonObject = {
        **EVENT,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "(merged tools)",
    }
    invoked: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    inner: JsonObject = {**invoked, "gen_ai.agent.name": "billing", "gen_ai.conversation.id": "other"}
    asked = captured({"request": "pay"}, {"result": "paid"})
    return [
        span(1, None, "invoke_workflow planner", workflow, at=(0, 100), of=of),
        span(2, 1, "invoke_agent planner", {**invoked, "gen_ai.conversation.id": "s1"}, at=(1, 99), of=of),
        turn(3, (10, 30), scope),
        tool(4, "get_temperature", "c1", 12, captured({"city": "Oslo"}, {"t": 25.0}), scope),
        tool(5, "get_forecast", "c2", 14, captured({"city": "Oslo"}, {"result": "two"}), scope),
        span(6, 2, "execute_tool (merged)", merged, at=(16, 17), of=of),
        turn(7, (31, 60), scope),
        tool(8, "billing", "c3", 35, {**asked, "gen_ai.tool.type": "AgentTool"}, scope),
        span(9, 8, "invoke_agent billing", inner, at=(35, 36), of=of),
        turn(10, (61, 70), scope),
    ]  # fmt: skip


def test_a_run_is_read_with_what_its_functions_returned() -> None:
    planner, billing = runs_of(current())

    assert [("planner", "s1", None), ("billing", "s1", "planner")] == [
        (run.agent.name, run.session, run.parent_agent) for run in (planner, billing)
    ]
    assert [
        ("get_temperature", "c1", {"city": "Oslo"}, {"t": 25.0}, CallCategory.FUNCTION),
        ("get_forecast", "c2", {"city": "Oslo"}, "two", CallCategory.FUNCTION),
        ("billing", "c3", {"request": "pay"}, "paid", CallCategory.AGENT),
    ] == [
        (call.name, call.call_id, call.arguments, call.result, call.category) for call in planner.tool_calls
    ]


def test_calls_within_the_span_of_their_turn_belong_to_that_turn() -> None:
    groups = [call.parallel_group for call in runs_of(current())[0].tool_calls]

    assert groups[0] is not None
    assert [groups[0], groups[0], None] == groups


def test_an_object_under_the_name_result_is_the_tools_own() -> None:
    spans = [agent(2, None, "planner"), tool(3, "get", "c1", 5, captured({}, {"result": {"t": 1}}))]

    assert [{"result": {"t": 1}}] == [call.result for call in runs_of(spans)[0].tool_calls]


def test_a_returned_error_and_a_raised_one_are_errors() -> None:
    returned = captured({}, {"error": "no such city"})
    raised: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "<not specified>",
        "error.type": "ValueError",
    }
    exception = ("exception", {"exception.type": "ValueError", "exception.message": "kaput"})
    spans = [
        agent(2, None, "planner"),
        tool(3, "get", "c1", 5, {**returned, "error.type": "TOOL_ERROR"}),
        span(4, 2, "execute_tool get", {**EVENT, **raised}, at=(7, 8), events=[exception, exception],
             status=(STATUS_ERROR, "kaput")),
    ]  # fmt: skip

    first, second = runs_of(spans)[0].tool_calls

    assert ToolError(type="TOOL_ERROR", message="no such city") == first.error
    assert (ToolError(type="ValueError", message="kaput"), None) == (second.error, second.call_id)


def test_content_that_is_not_switched_on_is_absent() -> None:
    spans = [agent(2, None, "planner"), tool(3, "get", "c1", 5)]

    assert [(ValueState.ABSENT, ValueState.ABSENT)] == [
        (call.arguments_state, call.result_state) for call in runs_of(spans)[0].tool_calls
    ]


def legacy(arguments: JsonValue, response: JsonValue) -> JsonObject:
    return {
        **EVENT,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gcp.vertex.agent.llm_request": "{}",
        "gcp.vertex.agent.llm_response": "{}",
        "gcp.vertex.agent.tool_call_args": json.dumps(arguments),
        "gcp.vertex.agent.tool_response": json.dumps(response),
    }


@pytest.mark.parametrize(
    ("response", "call_id", "result"),
    [
        ({"t": 25.0}, None, {"t": 25.0}),
        ({"result": "two"}, None, "two"),
        (
            {"content": {"parts": [{"function_response": {"id": "c1", "response": {"result": "two"}}}]}},
            "c1",
            "two",
        ),
    ],
)
def test_the_older_names_are_read(response: JsonValue, call_id: str | None, result: JsonValue) -> None:
    fields = legacy({"city": "Oslo"}, response)
    spans = [span(1, None, "invocation"), span(2, 1, "execute_tool get", fields)]

    (run,) = runs_of(spans)

    assert [("get", call_id, {"city": "Oslo"}, result)] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_two_empty_objects_stand_for_content_that_was_left_out() -> None:
    (run,) = runs_of([span(1, None, "invocation"), span(2, 1, "execute_tool get", legacy({}, {}))])

    assert [(ValueState.ABSENT, ValueState.ABSENT)] == [
        (call.arguments_state, call.result_state) for call in run.tool_calls
    ]


def test_the_older_turns_tell_the_conversation() -> None:
    asked = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}]}
    answer = {"content": {"role": "model", "parts": [{"text": "Cold."}]}}
    fields: JsonObject = {
        "gen_ai.request.model": "m",
        "gcp.vertex.agent.llm_request": json.dumps(asked),
        "gcp.vertex.agent.llm_response": json.dumps(answer),
    }
    spans = [
        span(1, None, "invocation", at=(0, 100)),
        span(2, 1, "execute_tool get", legacy({}, {"t": 1}), at=(1, 5)),
        span(3, 1, "call_llm", fields, at=(10, 20)),
    ]

    (run,) = runs_of(spans)

    assert ("Weather?", "Cold.") == (run.input, run.output)


def overwritten(scope: str = "") -> list[RawSpan]:
    """OpenInference over the native spans: the agent's span has become a model's, with the whole history."""
    of = envelope(scope=scope)
    history: JsonObject = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.text": "Weather?",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.role": "model",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "get",
        "llm.input_messages.1.message.tool_calls.1.tool_call.id": "c2",
        "llm.input_messages.1.message.tool_calls.1.tool_call.function.name": "get",
    }
    model: JsonObject = {
        **EVENT,
        **history,
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "generate_content",
        "gen_ai.agent.name": "planner",
        "input.value": '{"model": "m", "contents": []}',
    }
    answer = '{"content": {"parts": [{"text": "Cold."}], "role": "model"}, "author": "planner"}'
    run: JsonObject = {
        "openinference.span.kind": "AGENT",
        "agent.name": "planner",
        "session.id": "s1",
        "output.value": answer,
    }
    calls = []
    for number, call_id, at in ((4, "c1", 10), (5, "c2", 20)):
        fields: JsonObject = {
            **EVENT,
            "openinference.span.kind": "TOOL",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get",
            "gen_ai.tool.call.id": call_id,
            "tool.name": "get",
            "tool.id": call_id,
            "tool.parameters": '{"city": "Oslo"}',
            "input.value": '{"city": "Oslo"}',
            "output.value": json.dumps({"id": call_id, "name": "get", "response": {"result": "cold"}}),
        }
        calls.append(span(number, 3, "execute_tool get", fields, at=(at, at + 1), of=of))
    return [
        span(1, None, "invocation [demo]", {"openinference.span.kind": "CHAIN"}, at=(0, 100), of=of),
        span(2, 1, "agent_run [planner]", run, at=(1, 99), of=of),
        span(3, 2, "invoke_agent planner", model, at=(2, 98), of=of),
        *calls,
    ]


def test_an_overwritten_agent_span_is_a_run_and_its_history_tells_what_ran_side_by_side() -> None:
    (run,) = runs_of(overwritten())

    assert ("planner", "s1", "Weather?", "Cold.") == (run.agent.name, run.session, run.input, run.output)
    assert [("c1", {"city": "Oslo"}, "cold"), ("c2", {"city": "Oslo"}, "cold")] == [
        (call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]
    assert 1 == len({call.parallel_group for call in run.tool_calls})
    assert run.tool_calls[0].parallel_group is not None


@pytest.mark.parametrize("spans", [current, overwritten])
def test_neither_scope_names_nor_other_conventions_change_what_is_read(
    spans: Callable[[str], list[RawSpan]],
) -> None:
    assert_conditions_change_nothing(spans)


def test_runs_and_failed_calls_without_attributes_are_known_by_their_scope() -> None:
    of = envelope(scope="gcp.vertex.agent")
    model: JsonObject = {"gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}"}
    spans = [
        span(1, None, "invocation", of=of),
        span(2, 1, "agent_run [planner]", at=(1, 99), of=of),
        span(3, 2, "call_llm", model, at=(2, 50), of=of),
        span(4, 3, "execute_tool get", at=(10, 20), status=(STATUS_ERROR, "ValueError: kaput"), of=of),
    ]

    (run,) = runs_of(spans)

    assert "planner" == run.agent.name
    assert [("get", ValueState.ABSENT, "ValueError: kaput")] == [
        (call.name, call.arguments_state, call.error and call.error.message) for call in run.tool_calls
    ]


def test_bare_spans_of_another_scope_are_nobodys() -> None:
    assert [] == runs_of([span(1, None, "agent_run [planner]"), span(2, 1, "execute_tool get")])


def test_a_result_that_stands_for_none_is_absent() -> None:
    fields = legacy({"city": "Oslo"}, {"result": "<not specified>"})

    (run,) = runs_of([span(1, None, "invocation"), span(2, 1, "execute_tool get", fields)])

    assert [(ValueState.ABSENT, {"city": "Oslo"})] == [
        (call.result_state, call.arguments) for call in run.tool_calls
    ]


def test_what_a_tool_server_marks_as_an_error_is_one() -> None:
    told: JsonObject = {"content": [{"type": "text", "text": "no such city"}], "isError": True}

    (run,) = runs_of([span(1, None, "invocation"), span(2, 1, "execute_tool get", legacy({"c": 1}, told))])

    assert [ToolError(type="", message="no such city")] == [call.error for call in run.tool_calls]


def instrumented(name: str, **more: JsonValue) -> RawSpan:
    """A call as OpenInference's instrumentor completes it, which never writes empty arguments."""
    response = {"id": "c1", "name": name, "response": {"result": 42}}
    fields: JsonObject = {
        **EVENT,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "tool.name": name,
        "openinference.span.kind": "TOOL",
        "output.value": json.dumps(response),
        **more,
    }
    return span(4, 2, f"execute_tool {name}", fields, at=(5, 6))


def test_arguments_that_the_instrumentor_left_out_are_none_at_all() -> None:
    (run,) = runs_of([agent(2, None, "planner"), instrumented("get")])

    assert [(ValueState.PRESENT, {}, 42)] == [
        (call.arguments_state, call.arguments, call.result) for call in run.tool_calls
    ]


def test_arguments_that_the_instrumentor_hides_stay_hidden() -> None:
    (run,) = runs_of([agent(2, None, "planner"), instrumented("get", **{"input.value": "__REDACTED__"})])

    assert [ValueState.REDACTED] == [call.arguments_state for call in run.tool_calls]


def test_a_tool_servers_result_comes_out_of_both_envelopes() -> None:
    content: JsonObject = {"content": [{"type": "text", "text": '{"t": 25}'}], "isError": False}
    reported: JsonObject = {"id": "c1", "name": "get", "response": content}

    (run,) = runs_of(
        [agent(2, None, "planner"), instrumented("get", **{"output.value": json.dumps(reported)})]
    )

    assert [("c1", {"t": 25}, None)] == [(call.call_id, call.result, call.error) for call in run.tool_calls]


def test_a_last_event_that_asks_for_a_call_is_no_answer() -> None:
    asked = {"content": {"role": "model", "parts": [{"function_call": {"name": "get", "args": {}}}]}}
    fields: JsonObject = {
        "openinference.span.kind": "AGENT",
        "agent.name": "planner",
        "output.value": json.dumps(asked),
    }

    (run,) = runs_of([span(1, None, "agent_run [planner]", fields)])

    assert (ValueState.ABSENT, None) == (run.output_state, run.output)


def test_the_tool_for_structured_output_gives_the_answer() -> None:
    spans = [agent(2, None, "planner"), tool(3, "set_model_response", "c1", 5, captured({"t": 1}, {"t": 1}))]

    assert [CallCategory.FINAL_ANSWER] == [call.category for call in runs_of(spans)[0].tool_calls]


def test_a_list_comes_out_of_the_envelope_that_the_javascript_sdk_puts_around_it() -> None:
    def called(response: str) -> list[JsonValue]:
        fields: JsonObject = {**legacy({"city": "Oslo"}, {}), "gcp.vertex.agent.tool_response": response}
        (run,) = runs_of([span(1, None, "invocation"), span(2, 1, "execute_tool get", fields)])
        return [call.result for call in run.tool_calls]

    assert [[1, "two"]] == called('{"results":[1,"two"]}')
    assert [{"results": [1, "two"]}] == called('{"results": [1, "two"]}')
    assert [{"results": [1], "total": 1}] == called('{"results":[1],"total":1}')
    assert [{"results": "none"}] == called('{"results":"none"}')


def test_a_call_without_attributes_failed_also_where_its_status_does_not_tell() -> None:
    of = envelope(scope="gcp.vertex.agent")
    spans = [
        agent(2, None, "planner"),
        span(3, 2, "execute_tool get", at=(10, 20), of=of),
        tool(4, "get", "c2", 30, captured({}, {"result": "two"})),
    ]

    (run,) = runs_of(spans)

    assert [ToolError(type="", message=""), None] == [call.error for call in run.tool_calls]


def test_a_placeholder_in_place_of_a_response_is_no_result() -> None:
    of_go: JsonObject = {
        **legacy({"city": "Oslo"}, {}),
        "gen_ai.tool.call.id": "<not specified>",
        "gcp.vertex.agent.tool_response": "<not specified>",
    }
    of_java: JsonObject = {**legacy({"city": "Oslo"}, {}), "gen_ai.tool_call.id": "<not specified>"}
    spans = [
        span(1, None, "invocation"),
        span(2, 1, "execute_tool get", of_go, at=(1, 2), status=(STATUS_ERROR, "kaput")),
        span(3, 1, "execute_tool get", of_java, at=(3, 4), status=(STATUS_ERROR, "kaput")),
    ]

    (run,) = runs_of(spans)

    assert [({"city": "Oslo"}, ValueState.ABSENT, None)] * 2 == [
        (call.arguments, call.result_state, call.call_id) for call in run.tool_calls
    ]


def test_the_sdk_for_java_has_a_name_of_its_own_for_the_call_id() -> None:
    fields: JsonObject = {**legacy({}, {"result": {}}), "gen_ai.tool_call.id": "c1"}

    (run,) = runs_of([span(1, None, "invocation"), span(2, 1, "execute_tool get", fields)])

    assert ["c1"] == [call.call_id for call in run.tool_calls]


def test_requests_that_are_written_in_go_name_their_messages_with_a_capital() -> None:
    asked = {"Model": "m", "Contents": [{"role": "user", "parts": [{"text": "Weather?"}]}]}
    turn: JsonObject = {
        "gen_ai.operation.name": "generate_content",
        "gcp.vertex.agent.llm_request": json.dumps(asked),
        "gcp.vertex.agent.llm_response": '{"content":{"parts":[{"text":"Cold."}],"role":"model"}}',
    }
    run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    called = legacy({"city": "Oslo"}, {"result": "cold"})
    spans = [
        span(1, None, "invoke_agent planner", run),
        span(2, 1, "execute_tool get", called, at=(1, 2)),
        span(3, 1, "generate_content m", turn, at=(3, 4)),
    ]

    (made,) = runs_of(spans)

    assert ("planner", "Weather?", "Cold.") == (made.agent.name, made.input, made.output)
