"""Pydantic AI's formats: keys of its own up to 2, the GenAI names after that, one history in all of them."""

import json

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

ASKED = {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
CALLED = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {"city": "Oslo"}}],
}
WITHHELD = {"role": "user", "parts": [{"type": "text"}]}
ANSWERED = {"role": "assistant", "parts": [{"type": "text", "content": "Cold."}]}
EARLIER = [
    {"role": "user", "parts": [{"type": "text", "content": "Hello?"}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c0", "name": "greet", "arguments": {}}],
    },
]
FORMATS = {
    2: ("agent run", "running tool", "tool_arguments", "tool_response"),
    3: ("invoke_agent planner", "execute_tool get", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
}


def responded(role: str, content: bool = True) -> JsonObject:
    part: JsonObject = {"type": "tool_call_response", "id": "c1", "name": "get"}
    if content:
        part["result"] = {"t": 25.0}
    return {"role": role, "parts": [part]}


def run_in(number: int, *, role: str = "user", content: bool = True, scope: str = "") -> list[RawSpan]:
    agent_name, tool_name, arguments, result = FORMATS[number]
    history = [*EARLIER, ASKED, CALLED, responded(role, content), ANSWERED]
    agent: JsonObject = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        "agent_name": "planner",
        "model_name": "m",
        "gen_ai.agent.call.id": "01a20099-7149-71b9-aec7-a02064a8286f",
        "gen_ai.conversation.id": "s1",
        "pydantic_ai.all_messages": json.dumps(history) if content else "[]",
        "pydantic_ai.new_message_index": len(EARLIER),
        **({"final_result": "Cold."} if content else {}),
    }
    turn: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": json.dumps(
            [*EARLIER, ASKED, CALLED, responded(role)] if content else [WITHHELD, responded(role, content)]
        ),
        "gen_ai.output.messages": json.dumps([ANSWERED] if content else []),
    }
    tool: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.agent.name": "planner",
        **({arguments: '{"city":"Oslo"}', result: '{"t":25.0}'} if content else {}),
    }
    of = envelope(scope=scope)
    return [
        span(1, None, agent_name, agent, at=(0, 100), of=of),
        span(2, 1, tool_name, tool, at=(10, 20), of=of),
        span(3, 1, "chat m", turn, at=(30, 40), of=of),
    ]


@pytest.mark.parametrize(("number", "role"), [(2, "user"), (3, "user"), (3, "tool")])
def test_every_format_tells_the_run_and_its_own_calls_alone(number: int, role: str) -> None:
    (run,) = runs_of(run_in(number, role=role))

    assert ("planner", "s1", "Weather?", "Cold.") == (run.agent.name, run.session, run.input, run.output)
    assert [("get", "c1", {"city": "Oslo"}, {"t": 25.0}, None)] == [
        (call.name, call.call_id, call.arguments, call.result, call.error) for call in run.tool_calls
    ]


@pytest.mark.parametrize("number", FORMATS)
def test_without_content_names_and_ids_remain_and_no_value_is_made_up(number: int) -> None:
    (run,) = runs_of(run_in(number, content=False))

    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)
    assert [("get", "c1", ValueState.ABSENT, ValueState.ABSENT)] == [
        (call.name, call.call_id, call.arguments_state, call.result_state) for call in run.tool_calls
    ]


def test_a_request_to_try_again_is_a_failed_call_with_a_result() -> None:
    retried: JsonObject = {
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "tool_arguments": "{}",
        "tool_response": "again",
        "pydantic_ai.tool.retry.attempt": 1,
    }
    exception = ("exception", {"exception.type": "ToolRetryError", "exception.message": "again"})
    spans = [
        span(1, None, "agent run", {"agent_name": "planner", "model_name": "m", "final_result": "ok"}),
        span(2, 1, "running tool", retried, at=(10, 20), events=[exception], status=(STATUS_ERROR, "")),
        span(
            3,
            1,
            "running tool",
            {**retried, "gen_ai.tool.call.id": "c2", "tool_response": "fine"},
            at=(30, 40),
        ),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "ok") == (run.agent.name, run.output)
    assert [("c1", "again", ToolError(type="ToolRetryError", message="again")), ("c2", "fine", None)] == [
        (call.call_id, call.result, call.error) for call in run.tool_calls
    ]


def test_an_output_function_gives_the_answer_and_is_no_function_call() -> None:
    fields: JsonObject = {"gen_ai.tool.name": "report", "tool_arguments": '{"text": "Cold."}'}
    spans = [
        span(1, None, "agent run", {"agent_name": "planner", "model_name": "m", "final_result": "Cold."}),
        span(2, 1, "running output function", fields),
    ]

    assert [("report", CallCategory.FINAL_ANSWER)] == [
        (call.name, call.category) for call in runs_of(spans)[0].tool_calls
    ]


def test_format_1_tells_messages_as_a_list_of_events() -> None:
    asked = {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"}
    call = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"city": "Oslo"}'}}
    chosen = {
        "event.name": "gen_ai.choice",
        "index": 0,
        "message": {"role": "assistant", "tool_calls": [call]},
    }
    turn: JsonObject = {
        "gen_ai.request.model": "m",
        "model_request_parameters": "{}",
        "events": json.dumps([asked, chosen]),
    }
    returned = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "cold"}
    answer = {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Cold."}}
    last: JsonObject = {**turn, "events": json.dumps([asked, returned, answer])}
    history = [asked, {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Cold."}]
    agent: JsonObject = {
        "agent_name": "planner",
        "model_name": "m",
        "final_result": "Cold.",
        "all_messages_events": json.dumps(history),
    }
    spans = [
        span(1, None, "agent run", agent, at=(0, 100)),
        span(2, 1, "chat m", turn, at=(1, 10)),
        span(3, 1, "chat m", last, at=(20, 30)),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [("get", "c1", {"city": "Oslo"}, "cold")] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


@pytest.mark.parametrize("number", FORMATS)
def test_neither_scope_names_nor_other_conventions_change_what_is_read(number: int) -> None:
    assert_conditions_change_nothing(lambda scope: run_in(number, scope=scope))


def answering(**fields: JsonValue) -> JsonObject:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner", **fields}


def test_what_makes_the_answer_out_of_a_text_is_no_function_call_and_its_result_is_the_answer() -> None:
    history = [ASKED, ANSWERED]
    fields: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "shout",
        "gen_ai.tool.call.arguments": '"Cold."',
        "gen_ai.tool.call.result": "COLD.",
        "logfire.msg": "running output function: shout",
    }
    agent = answering(**{"pydantic_ai.all_messages": json.dumps(history), "final_result": "COLD."})

    (run,) = runs_of([span(1, None, "invoke_agent planner", agent), span(2, 1, "execute_tool shout", fields)])

    assert "COLD." == run.output
    assert [("shout", CallCategory.FINAL_ANSWER)] == [(call.name, call.category) for call in run.tool_calls]


def test_an_object_is_the_answer_though_the_model_said_something_before() -> None:
    thinking = {"role": "assistant", "parts": [{"type": "text", "content": "Let me see."}, *CALLED["parts"]]}
    history = [ASKED, thinking, responded("user")]
    agent = answering(
        **{"pydantic_ai.all_messages": json.dumps(history), "final_result": '{"city": "Oslo"}'},
    )

    (run,) = runs_of([span(1, None, "invoke_agent planner", agent)])

    assert {"city": "Oslo"} == run.output


def test_what_a_model_said_with_a_call_is_no_answer_of_a_run_that_ended_there() -> None:
    thinking = {"role": "assistant", "parts": [{"type": "text", "content": "Let me see."}, *CALLED["parts"]]}
    agent = answering(**{"pydantic_ai.all_messages": json.dumps([ASKED, thinking])})

    (run,) = runs_of([span(1, None, "invoke_agent planner", agent)])

    assert ("Weather?", None, ValueState.ABSENT) == (run.input, run.output, run.output_state)


def test_of_a_result_with_more_for_the_model_the_value_is_the_result() -> None:
    wrapped = {"return_value": {"t": 1}, "content": "more", "metadata": {"m": 2}, "kind": "tool-return"}
    fields: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.result": json.dumps(wrapped),
    }

    (run,) = runs_of(
        [span(1, None, "invoke_agent planner", answering()), span(2, 1, "execute_tool get", fields)]
    )

    assert [{"t": 1}] == [call.result for call in run.tool_calls]


@pytest.mark.parametrize("is_told_by_the_call", [True, False])
def test_older_releases_mark_a_request_to_try_again_by_its_text_alone(is_told_by_the_call: bool) -> None:
    again = "sensor offline\n\nFix the errors and try again."
    call: JsonObject = {
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "tool_arguments": "{}",
        **({"tool_response": again} if is_told_by_the_call else {}),
    }
    returned = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": again}
    turn: JsonObject = {
        "gen_ai.request.model": "m",
        "model_request_parameters": "{}",
        "events": json.dumps([returned]),
    }
    spans = [
        span(1, None, "agent run", {"agent_name": "planner", "model_name": "m", "final_result": "ok"}),
        span(2, 1, "running tool", call, at=(10, 20)),
        span(3, 1, "chat m", turn, at=(30, 40)),
    ]

    (run,) = runs_of(spans)

    assert [(again, ToolError(type="", message="sensor offline" if is_told_by_the_call else again))] == [
        (made.result, made.error) for made in run.tool_calls
    ]


def test_what_a_scrubber_took_out_of_a_call_or_an_answer_is_read_where_it_was_left() -> None:
    asked = {"type": "tool_call", "id": "c1", "name": "open", "arguments": {"session": "s1"}}
    returned = {"type": "tool_call_response", "id": "c1", "result": {"cookie": "x"}}
    said = {"role": "assistant", "parts": [{"type": "text", "content": "Your session is open."}]}
    first: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asked]}]),
    }
    second: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [returned]}]),
        "gen_ai.output.messages": json.dumps([said]),
    }
    call: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "open",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": """{"session": "[Scrubbed due to 'session']"}""",
        "gen_ai.tool.call.result": "[Scrubbed due to 'cookie']",
    }
    agent = answering(
        **{
            "pydantic_ai.all_messages": json.dumps([ASKED, said]),
            "final_result": "[Scrubbed due to 'session']",
        }
    )
    spans = [
        span(1, None, "invoke_agent planner", agent, at=(0, 100)),
        span(2, 1, "chat m", first, at=(1, 5)),
        span(3, 1, "execute_tool open", call, at=(10, 20)),
        span(4, 1, "chat m", second, at=(30, 40)),
    ]

    (run,) = runs_of(spans)
    (alone,) = runs_of([spans[0], spans[2]])

    assert "Your session is open." == run.output
    assert [({"session": "s1"}, {"cookie": "x"})] == [
        (made.arguments, made.result) for made in run.tool_calls
    ]
    assert [(ValueState.REDACTED, None, ValueState.REDACTED, None)] == [
        (made.arguments_state, made.arguments, made.result_state, made.result) for made in alone.tool_calls
    ]


def test_where_there_is_a_tool_for_each_kind_of_answer_it_is_no_function_either() -> None:
    chosen = {"type": "tool_call", "id": "c1", "name": "final_result_Report", "arguments": {"text": "Cold."}}
    turn: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [chosen]}]),
    }
    spans = [span(1, None, "invoke_agent planner", answering()), span(2, 1, "chat m", turn, at=(1, 5))]

    assert [CallCategory.FINAL_ANSWER] == [call.category for call in runs_of(spans)[0].tool_calls]


@pytest.mark.parametrize("blank", ["", " "])
def test_a_tool_for_the_answer_with_a_name_of_its_own_is_no_function(blank: str) -> None:
    offered: JsonValue = {"function_tools": [{"name": "get"}], "output_tools": [{"name": "give_report"}]}
    asks: JsonValue = {"type": "tool_call", "id": "c1", "name": "give_report", "arguments": {"city": "Oslo"}}
    told: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asks]}]),
        "model_request_parameters": json.dumps(offered, separators=("," + blank, ":" + blank)),
    }
    root: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}

    (run,) = runs_of([span(1, None, "invoke_agent planner", root), span(2, 1, "chat m", told, at=(10, 20))])

    assert [("give_report", CallCategory.FINAL_ANSWER)] == [
        (call.name, call.category) for call in run.tool_calls
    ]
    assert {"city": "Oslo"} == run.output


def test_a_tool_for_the_answer_that_runs_nowhere_was_not_left_out() -> None:
    offered: JsonValue = {"function_tools": [{"name": "get"}], "output_tools": [{"name": "give_report"}]}
    asks: JsonValue = {"type": "tool_call", "id": "c2", "name": "give_report", "arguments": {}}
    told: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asks]}]),
        "model_request_parameters": json.dumps(offered),
    }
    get: JsonObject = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"}
    root: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}

    (run,) = runs_of(
        [
            span(1, None, "invoke_agent planner", root),
            span(2, 1, "execute_tool get", get, at=(5, 8)),
            span(3, 1, "chat m", told, at=(10, 20)),
        ]
    )

    assert [] == list(run.requested_calls)
