"""Logfire's spans of the OpenAI Agents SDK: templates as names, the real names in `name`."""

import json

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing


def templated(template: str, **more: JsonValue) -> JsonObject:
    return {
        "logfire.msg_template": template,
        "logfire.span_type": "span",
        "gen_ai.system": "openai",
        **more,
    }


def recorded(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    run, function = "Agent run: {name!r}", "Function: {name}"
    chat = "Chat completion with {gen_ai.request.model!r}"
    asked = {
        "arguments": '{"city":"Oslo"}',
        "call_id": "c1",
        "name": "get",
        "type": "function_call",
        "id": "fc",
    }
    error = {"message": "Error running tool (non-fatal)", "data": {"tool_name": "get", "error": "kaput"}}
    turn = templated(chat, **{
        "gen_ai.request.model": "m",
        "input": '[{"content": "Weather?", "role": "user"}]',
        "output": json.dumps([asked, {**asked, "call_id": "c2"}]),
    })  # fmt: skip
    last = templated(chat, **{
        "gen_ai.request.model": "m", "input": "[]", "output": '[{"role": "assistant", "content": "Cold."}]'
    })  # fmt: skip
    good = templated(function, name="get", input='{"city":"Oslo"}', output='{"t":25.0}')
    bad = templated(function, name="get", input="{}", output="An error occurred.", error=json.dumps(error))
    handoff = templated("Handoff: {from_agent} → {to_agent}", from_agent="Planner", to_agent="Support")
    return [
        span(1, None, "trace", templated("OpenAI Agents trace: {name}", name="Agent workflow"),
             at=(0, 100), of=of),
        span(2, 1, run, templated(run, name="Planner"), at=(1, 90), of=of),
        span(3, 2, "Turn {turn}", templated("Turn {turn}", agent_name="Planner"), at=(2, 60), of=of),
        span(4, 3, chat, turn, at=(3, 10), of=of),
        span(5, 3, function, good, at=(11, 20), of=of),
        span(6, 3, function, bad, at=(12, 21), status=(STATUS_ERROR, ""), of=of),
        span(7, 2, chat, last, at=(70, 80), of=of),
        span(8, 2, "Handoff", handoff, at=(81, 82), of=of),
    ]  # fmt: skip


def test_a_run_is_read_with_its_calls() -> None:
    (run,) = runs_of(recorded())

    assert ("Planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [
        ("get", {"city": "Oslo"}, {"t": 25.0}, None, CallCategory.FUNCTION),
        ("get", {}, "An error occurred.", ToolError(type="", message="kaput"), CallCategory.FUNCTION),
        ("handoff to Support", None, None, None, CallCategory.HANDOFF),
    ] == [(call.name, call.arguments, call.result, call.error, call.category) for call in run.tool_calls]
    assert run.tool_calls[0].parallel_group == run.tool_calls[1].parallel_group is not None


def test_turns_may_tell_their_messages_as_events() -> None:
    template = "Responses API with {gen_ai.request.model!r}"
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Cold."}},
    ]
    turn = templated(template, **{"gen_ai.request.model": "m", "events": json.dumps(events)})
    run = "Agent run: {name!r}"

    (told,) = runs_of([span(1, None, run, templated(run, name="Planner")), span(2, 1, template, turn)])

    assert ("Weather?", "Cold.") == (told.input, told.output)


def test_the_answer_of_a_streamed_turn_stands_in_the_whole_response() -> None:
    template = "Chat completion with {gen_ai.request.model!r}"
    text = {"type": "output_text", "text": "Cold."}
    answer = {"type": "message", "role": "assistant", "content": [text]}
    output = json.dumps([{"object": "response", "output": [answer], "usage": {}}])
    turn = templated(template, **{"gen_ai.request.model": "m", "input": "[]", "output": output})
    run = "Agent run: {name!r}"

    (told,) = runs_of([span(1, None, run, templated(run, name="Planner")), span(2, 1, template, turn)])

    assert "Cold." == told.output


def test_a_record_of_a_span_that_has_only_begun_is_no_call() -> None:
    run, function = "Agent run: {name!r}", "Function: {name}"
    pending: JsonObject = {"logfire.span_type": "pending_span"}
    native: JsonObject = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"}
    spans = [
        span(1, None, run, templated(run, name="Planner")),
        span(2, 1, "execute_tool get", {**native, **pending}),
        span(3, 1, function, {**templated(function, name="get"), **pending}),
    ]

    assert [] == list(runs_of(spans)[0].tool_calls)


def test_values_that_were_not_captured_are_not_made_up() -> None:
    run, function = "Agent run: {name!r}", "Function: {name}"
    spans = [
        span(1, None, run, templated(run, name="Planner")),
        span(2, 1, function, templated(function, name="get")),
    ]

    assert [(ValueState.ABSENT, ValueState.ABSENT)] == [
        (call.arguments_state, call.result_state) for call in runs_of(spans)[0].tool_calls
    ]


def test_other_spans_of_the_same_library_are_not_read() -> None:
    assert [] == runs_of([span(1, None, "work {x}", templated("work {x}", name="Planner", x=1))])


def test_neither_scope_names_nor_other_conventions_change_what_is_read() -> None:
    assert_conditions_change_nothing(recorded)


def response_turn(*events: JsonObject) -> JsonObject:
    """A turn of an API that answers in messages: the answer stands after what was asked, as its like."""
    template = "Responses API with {gen_ai.request.model!r}"
    return templated(template, **{"gen_ai.request.model": "m", "events": json.dumps(events)})


def test_the_assistants_messages_at_the_end_of_a_turn_are_what_it_answered() -> None:
    user: JsonObject = {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"}
    request: JsonObject = {
        "event.name": "gen_ai.assistant.message",
        "role": "assistant",
        "tool_calls": [{"id": "c1", "function": {"name": "get", "arguments": '{"city": "Oslo"}'}}],
    }
    result: JsonObject = {
        "event.name": "gen_ai.tool.message",
        "role": "tool",
        "id": "c1",
        "content": "cold",
    }
    answer: JsonObject = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Cold."}

    (run,) = runs_of(
        [
            span(1, None, "Agent run: {name!r}", templated("Agent run: {name!r}", name="planner")),
            span(2, 1, "turn", response_turn(user, request), at=(1, 5)),
            span(3, 1, "turn", response_turn(user, request, result, answer), at=(10, 20)),
        ]
    )

    assert ("Weather?", "Cold.") == (run.input, run.output)
    assert [("get", "c1", {"city": "Oslo"}, "cold")] == [
        (made.name, made.call_id, made.arguments, made.result) for made in run.tool_calls
    ]


def requested(number: int, parent: int, method: str = "tools/call get", **answer: JsonValue) -> RawSpan:
    request = {"method": "tools/call", "params": {"task": None, "name": "get", "arguments": {"city": "Oslo"}}}
    response = {"meta": None, "content": [{"type": "text", "text": "cold"}], "isError": False, **answer}
    fields = templated(f"MCP request: {method}", request=json.dumps(request), response=json.dumps(response))
    return span(number, parent, f"MCP request: {method}", fields, at=(12, 19))


def handled(number: int, parent: int | None) -> RawSpan:
    fields = templated("MCP server handle request: tools/call", request="{}", response="{}")
    return span(number, parent, "MCP server handle request: tools/call", fields, at=(13, 18))


def test_a_request_to_a_tool_server_is_a_call_with_what_was_sent() -> None:
    run = span(1, None, "Agent run: {name!r}", templated("Agent run: {name!r}", name="Planner"), at=(0, 90))
    listed = requested(4, 1, "tools/list")

    (told,) = runs_of([run, requested(2, 1), handled(3, 2), listed])

    assert [("get", {"city": "Oslo"}, "cold", None, CallCategory.MCP)] == [
        (call.name, call.arguments, call.result, call.error, call.category) for call in told.tool_calls
    ]


def test_a_response_that_is_an_error_is_the_failure_of_the_call_around_it() -> None:
    run = span(1, None, "Agent run: {name!r}", templated("Agent run: {name!r}", name="Planner"), at=(0, 90))
    function = span(5, 1, "Function: {name}", templated("Function: {name}", name="get", output="no station"),
                    at=(11, 20))  # fmt: skip
    text: JsonValue = [{"type": "text", "text": "no station"}]

    (told,) = runs_of([run, function, requested(2, 5, content=text, isError=True)])

    assert [("get", "no station", ToolError(type="", message="no station"))] == [
        (call.name, call.result, call.error) for call in told.tool_calls
    ]


def test_what_a_tool_server_handled_tells_of_no_agent() -> None:
    assert [] == runs_of([handled(3, None)])
