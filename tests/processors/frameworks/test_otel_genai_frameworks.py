"""Whole runs of frameworks that write the GenAI conventions themselves, each with its own quirks."""

import json
from collections.abc import Callable

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

KAPUT = ("exception", {"exception.type": "ValueError", "exception.message": "kaput"})


def operation(name: str, **more: JsonValue) -> JsonObject:
    return {"gen_ai.operation.name": name, **{f"gen_ai.{key}": value for key, value in more.items()}}


def tool(name: str, call_id: str, arguments: str = "", result: str = "") -> JsonObject:
    fields: JsonObject = {
        **operation("execute_tool"),
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        **({"gen_ai.tool.call.id": call_id} if call_id else {}),
        **({"gen_ai.tool.call.arguments": arguments} if arguments else {}),
        **({"gen_ai.tool.call.result": result} if result else {}),
    }
    return fields


def agent_framework(scope: str = "") -> list[RawSpan]:
    """The agent's own messages hold the whole trajectory; arguments in them are texts."""
    of = envelope(scope=scope)
    call = {"type": "tool_call", "id": "c1", "name": "get", "arguments": '{"city": "Oslo"}'}
    response = {"type": "tool_call_response", "id": "c1", "response": "cold"}
    trajectory = [
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [response]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Cold."}]},
    ]
    run: JsonObject = {
        **operation("invoke_agent"),
        "gen_ai.agent.name": "planner",
        "gen_ai.agent.id": "0196c4d0-85a0-41f4-b30b-466a03d685f4",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}]',
        "gen_ai.output.messages": json.dumps(trajectory),
    }
    return [
        span(1, None, "invoke_agent planner", run, at=(0, 100), of=of),
        span(2, 1, "execute_tool get", tool("get", "c1", '{"city": "Oslo"}', "cold"), at=(10, 20), of=of),
    ]


def semantic_kernel(scope: str = "") -> list[RawSpan]:
    """Results are printed, messages have a text as content, and the loop's span says nothing."""
    of = envelope(scope=scope)
    run: JsonObject = {
        **operation("invoke_agent"),
        "gen_ai.agent.name": "planner",
        "gen_ai.agent.id": "0196c4d0-85a0-41f4-b30b-466a03d685f4",
        "gen_ai.input.messages": "[]",
        "gen_ai.output.messages": '[{"role": "assistant", "content": "Cold.", "name": "planner"}]',
    }
    turn: JsonObject = {
        **operation("chat"),
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": '[{"role": "user", "content": "Weather?"}]',
    }
    printed = tool("Weather-get", "c1", '{"city": "Oslo"}', "{'t': 25.0, 'ok': True}")
    failed: JsonObject = {**tool("Weather-get", "c2", '{"city": "Rome"}'), "error.type": "ValueError"}
    return [
        span(1, None, "invoke_agent planner", run, at=(0, 100), of=of),
        span(2, 1, "AutoFunctionInvocationLoop", {"sk.functions": "get"}, at=(1, 99), of=of),
        span(3, 2, "chat m", turn, at=(2, 9), of=of),
        span(4, 2, "execute_tool Weather-get", printed, at=(10, 20), of=of),
        span(5, 2, "execute_tool Weather-get", failed, at=(21, 30), events=[KAPUT, KAPUT],
             status=(STATUS_ERROR, "ValueError: kaput"), of=of),
    ]  # fmt: skip


def openai_agents_v2(scope: str = "") -> list[RawSpan]:
    """Every span but the agent's bears a placeholder for the agent's name."""
    of = envelope(scope=scope)
    placeholder: JsonObject = {"gen_ai.agent.name": "OpenAI Agent", "gen_ai.agent.id": "agent"}
    run: JsonObject = {
        **operation("invoke_agent"),
        **placeholder,
        "gen_ai.agent.name": "planner",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}]',
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Cold."}]}]',
    }
    handoff: JsonObject = {**operation("agent_handoff"), "gen_ai.handoff.to_agent": "support", **placeholder}
    fields: JsonObject = {**tool("get", "", '{"city": "Oslo"}', "cold"), **placeholder}
    return [
        span(1, None, "Agent workflow", {**operation("invoke_agent"), **placeholder}, at=(0, 100), of=of),
        span(2, 1, "unknown", {**operation("unknown"), **placeholder}, at=(1, 99), of=of),
        span(3, 2, "invoke_agent planner", run, at=(2, 98), of=of),
        span(4, 3, "execute_tool get", fields, at=(10, 20), of=of),
        span(5, 3, "agent_handoff support", handoff, at=(30, 31), of=of),
    ]


def autogen(scope: str = "") -> list[RawSpan]:
    """Names, ids and errors alone: this framework's own spans never hold a value."""
    of = envelope(scope=scope)
    run: JsonObject = {
        **operation("invoke_agent"),
        "gen_ai.agent.name": "planner",
        "gen_ai.agent.id": "planner_39d2bd88-0a4e-4891-a385-7ada517ec92f",
    }
    failed: JsonObject = {**tool("get", "c2"), "error.type": "ValueError"}
    return [
        span(1, None, "autogen publish planner", {"messaging.operation": "publish"}, at=(0, 100), of=of),
        span(2, 1, "invoke_agent planner", run, at=(1, 99), of=of),
        span(3, 2, "execute_tool get", tool("get", "c1"), at=(10, 20), of=of),
        span(4, 2, "execute_tool get", failed, at=(30, 40), events=[KAPUT, KAPUT],
             status=(STATUS_ERROR, "ValueError: kaput"), of=of),
    ]  # fmt: skip


FRAMEWORKS = [agent_framework, semantic_kernel, openai_agents_v2, autogen]


@pytest.mark.parametrize("spans", FRAMEWORKS, ids=lambda spans: str(spans.__name__))
def test_the_agent_is_named_and_its_id_does_not_change_from_run_to_run(
    spans: Callable[[], list[RawSpan]],
) -> None:
    (run,) = runs_of(spans())

    assert ("planner", None) == (run.agent.name, run.agent.id)


@pytest.mark.parametrize("spans", FRAMEWORKS[:3], ids=lambda spans: str(spans.__name__))
def test_the_run_tells_what_was_asked_and_answered(spans: Callable[[], list[RawSpan]]) -> None:
    (run,) = runs_of(spans())

    assert ("Weather?", "Cold.") == (run.input, run.output)


@pytest.mark.parametrize(
    ("spans", "calls"),
    [
        (agent_framework, [("get", "c1", {"city": "Oslo"}, "cold")]),
        (
            semantic_kernel,
            [
                ("Weather-get", "c1", {"city": "Oslo"}, {"t": 25.0, "ok": True}),
                ("Weather-get", "c2", {"city": "Rome"}, None),
            ],
        ),
        (
            openai_agents_v2,
            [("get", None, {"city": "Oslo"}, "cold"), ("handoff to support", None, None, None)],
        ),
        (autogen, [("get", "c1", None, None), ("get", "c2", None, None)]),
    ],
    ids=lambda value: str(getattr(value, "__name__", "")),
)
def test_calls_are_what_they_were(
    spans: Callable[[], list[RawSpan]], calls: list[tuple[str, str | None, JsonValue, JsonValue]]
) -> None:
    (run,) = runs_of(spans())

    assert calls == [(call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls]


@pytest.mark.parametrize("spans", [semantic_kernel, autogen], ids=lambda spans: str(spans.__name__))
def test_a_tool_that_raised_failed_and_no_other(spans: Callable[[], list[RawSpan]]) -> None:
    (run,) = runs_of(spans())

    assert [None, ToolError(type="ValueError", message="kaput")] == [call.error for call in run.tool_calls]


def test_what_no_span_holds_is_not_made_up() -> None:
    (run,) = runs_of(autogen())

    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)
    assert {(ValueState.ABSENT, ValueState.ABSENT)} == {
        (call.arguments_state, call.result_state) for call in run.tool_calls
    }


def test_a_handoff_is_no_function() -> None:
    assert [CallCategory.FUNCTION, CallCategory.HANDOFF] == [
        call.category for call in runs_of(openai_agents_v2())[0].tool_calls
    ]


@pytest.mark.parametrize("spans", FRAMEWORKS, ids=lambda spans: str(spans.__name__))
def test_neither_scope_names_nor_other_conventions_change_what_is_read(
    spans: Callable[[str], list[RawSpan]],
) -> None:
    assert_conditions_change_nothing(spans)


PRINTED_CALL = (
    "ResponseFunctionToolCall(arguments='{\"city\": \"Oslo\"}', call_id='c1', name='get', "
    "type='function_call', id='fc_1', status='completed')"
)
PRINTED_REASONING = "ResponseReasoningItem(id='rs_1', summary=[], type='reasoning', status=None)"
PRINTED_MESSAGE = (
    "{'content': None, 'role': 'assistant', 'tool_calls': [{'id': 'c1', 'type': 'function', "
    "'function': {'name': 'get', 'arguments': '{\"city\": \"Oslo\"}'}}]}"
)
PRINTED_RESPONSE = (
    "{'object': 'response', 'output': [{'type': 'message', 'role': 'assistant', "
    "'content': [{'type': 'output_text', 'text': 'Cold.'}]}]}"
)


@pytest.mark.parametrize(
    ("printed", "requested", "output"),
    [
        ([PRINTED_CALL], ["get"], None),
        ([PRINTED_REASONING, PRINTED_CALL, PRINTED_CALL.replace("c1", "c2")], ["get", "get"], None),
        ([PRINTED_MESSAGE], ["get"], None),
        ([PRINTED_RESPONSE], [], "Cold."),
        (["Response times are fine.\nBye."], [], "Response times are fine.\nBye."),
        (["{'city': 'Oslo'}"], [], "{'city': 'Oslo'}"),
    ],
)
def test_what_a_model_answered_is_no_text_where_its_objects_were_printed(
    printed: list[str], requested: list[str], output: str | None
) -> None:
    parts = [{"type": "text", "content": text} for text in printed]
    told = json.dumps([{"role": "assistant", "parts": parts}])
    fields: JsonObject = {**operation("chat"), "gen_ai.output.messages": told}
    agents: JsonObject = {
        **operation("invoke_agent"),
        "gen_ai.agent.name": "a",
        "gen_ai.output.messages": told,
    }

    (run,) = runs_of([span(1, None, "invoke_agent a", agents), span(2, 1, "chat", fields, at=(10, 20))])

    assert output == run.output
    assert requested == [call.name for call in run.tool_calls]
    assert all(call.arguments == {"city": "Oslo"} for call in run.tool_calls)


def handing_off(*calls: RawSpan) -> list[RawSpan]:
    request = {"type": "tool_call", "id": "c9", "name": "handoff_to_weather_agent", "arguments": "{}"}
    turn: JsonObject = {
        **operation("chat"),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [request]}]),
    }
    run: JsonObject = {**operation("invoke_agent"), "gen_ai.agent.name": "triage"}
    return [
        span(1, None, "invoke_agent triage", run, at=(0, 100)),
        span(2, 1, "execute_tool get", tool("get", "c1", "{}", "cold"), at=(10, 20)),
        span(3, 1, "chat m", turn, at=(30, 40)),
        *calls,
    ]


def test_a_handoff_that_only_the_last_turn_asks_for_is_a_call_of_its_category() -> None:
    (run,) = runs_of(handing_off())

    assert [
        ("get", CallCategory.FUNCTION, True),
        ("handoff_to_weather_agent", CallCategory.HANDOFF, True),
    ] == [(call.name, call.category, call.executed) for call in run.tool_calls]


@pytest.mark.parametrize("name", ["handoff_to_weather_agent", "handoff to weather_agent"])
def test_a_handoff_with_a_span_of_its_own_is_told_once(name: str) -> None:
    own = span(4, 1, f"execute_tool {name}", tool(name, ""), at=(50, 60))

    (run,) = runs_of(handing_off(own))

    assert ["get", name] == [call.name for call in run.tool_calls]


@pytest.mark.parametrize(
    "name",
    [
        "22de137e-1f68-4e44-84ba-b105f68b4fe1",
        "22de137e1f684e4484bab105f68b4fe1",
        "agent_srAsTQJicMuoUOjL",
        "UnnamedAgent",
    ],
)
def test_a_name_drawn_for_an_agent_that_has_none_is_no_name(name: str) -> None:
    run: JsonObject = {**operation("invoke_agent"), "gen_ai.agent.name": name, "gen_ai.agent.id": name}

    assert ["demo"] == [told.agent.name for told in runs_of([span(1, None, f"invoke_agent {name}", run)])]


def test_a_printed_object_tells_no_result_but_a_message_may() -> None:
    response = {"type": "tool_call_response", "id": "c1", "response": ""}
    turn: JsonObject = {
        **operation("chat"),
        "gen_ai.input.messages": json.dumps([{"role": "tool", "parts": [response]}]),
    }
    run: JsonObject = {**operation("invoke_agent"), "gen_ai.agent.name": "planner"}
    printed = "[<agent_framework._types.Content object at 0x7f09e02811d0>]"
    spans = [
        span(1, None, "invoke_agent planner", run, at=(0, 100)),
        span(2, 1, "execute_tool get", tool("get", "c1", "{}", printed), at=(10, 20)),
        span(3, 1, "chat m", turn, at=(30, 40)),
    ]

    assert [("", ValueState.PRESENT)] == [
        (call.result, call.result_state) for call in runs_of(spans)[0].tool_calls
    ]
    assert [(None, ValueState.ABSENT)] == [
        (call.result, call.result_state) for call in runs_of(spans[:2])[0].tool_calls
    ]


@pytest.mark.parametrize("name", ["chat", "chat.completions", "chat.streaming_completions"])
def test_calls_after_a_turn_are_of_that_turn_whatever_older_releases_called_it(name: str) -> None:
    run: JsonObject = {**operation("invoke_agent"), "gen_ai.agent.name": "planner"}
    spans = [
        span(1, None, "invoke_agent planner", run, at=(0, 100)),
        span(2, 1, f"{name} m", operation(name), at=(1, 5)),
        span(3, 1, "execute_tool get", tool("get", "c1"), at=(10, 20)),
        span(4, 1, "execute_tool get", tool("get", "c2"), at=(30, 40)),
        span(5, 1, f"{name} m", operation(name), at=(50, 60)),
    ]

    assert [0, 0] == [call.parallel_group for call in runs_of(spans)[0].tool_calls]


def test_a_run_that_bears_the_call_that_started_it_is_both() -> None:
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "It is 21."}]}]
    delegated: JsonObject = {
        **tool("ask_expert", "c1", '{"question": "How warm?"}', "21"),
        **operation("invoke_agent"),
        "gen_ai.agent.name": "expert",
        "gen_ai.output.messages": json.dumps(answer),
    }
    planner: JsonObject = {**operation("invoke_agent"), "gen_ai.agent.name": "planner"}
    spans = [
        span(1, None, "invoke_agent planner", planner, at=(0, 100)),
        span(2, 1, "invoke_agent expert", delegated, at=(10, 50)),
        span(3, 2, "execute_tool get", tool("get", "c2", "{}", "21"), at=(20, 30)),
        span(4, 1, "execute_tool get", tool("get", "c3", "{}", "22"), at=(60, 70)),
    ]

    outer, inner = runs_of(spans)

    assert [
        ("ask_expert", "c1", {"question": "How warm?"}, 21, CallCategory.AGENT),
        ("get", "c3", {}, 22, CallCategory.FUNCTION),
    ] == [(call.name, call.call_id, call.arguments, call.result, call.category) for call in outer.tool_calls]
    assert ("expert", "planner", "It is 21.", ["c2"]) == (
        inner.agent.name,
        inner.parent_agent,
        inner.output,
        [call.call_id for call in inner.tool_calls],
    )
