"""Evidence that stands beside a run's own spans: echoes of a run, late turns, histories, withheld results."""

import json

import pytest

from processors.model.agent_run import CallCategory, ValueState
from processors.model.json_values import JsonObject, JsonValue
from processors.shapes.messages import last_text, read_messages
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, model, runs_of, span, tool


def history(*call_ids: str) -> str:
    parts: JsonValue = [{"type": "tool_call", "id": call_id, "name": "get"} for call_id in call_ids]
    return json.dumps([{"role": "assistant", "parts": parts}])


def test_an_empty_agent_span_around_a_run_of_the_same_agent_is_that_run() -> None:
    spans = [
        agent(1, None, "outer", (0, 100)),
        tool(2, 1, "ask", (10, 50)),
        agent(3, 2, "inner", (11, 49), **{"gen_ai.agent.version": "7"}),
        agent(4, 2, "inner", (12, 48)),
        tool(5, 4, "get", (20, 30)),
    ]

    _, inner = runs_of(spans)

    assert ("inner", "7", ["get"]) == (
        inner.agent.name,
        inner.agent.version,
        [call.name for call in inner.tool_calls],
    )


@pytest.mark.parametrize(
    ("name", "at"),
    [("another", (11, 49)), ("inner", (11, 40)), ("inner", (13, 49))],
    ids=["of another agent", "that ended before", "that began within"],
)
def test_an_empty_agent_span_that_is_no_echo_is_a_run(name: str, at: tuple[int, int]) -> None:
    spans = [
        agent(1, None, "outer", (0, 100)),
        agent(3, 1, name, at),
        agent(4, 1, "inner", (12, 48)),
        tool(5, 4, "get", (20, 30)),
    ]

    assert 3 == len(runs_of(spans))


def test_two_empty_runs_of_one_agent_stay_two() -> None:
    spans = [agent(1, None, "outer"), agent(2, 1, "inner", (10, 40)), agent(3, 1, "inner", (11, 39))]

    assert ["outer", "inner", "inner"] == [run.agent.name for run in runs_of(spans)]


def test_calls_within_a_turn_are_of_that_turn_and_not_of_the_one_before() -> None:
    spans = [
        agent(1, None, "a", (0, 100)),
        model(2, 1, (1, 30)),
        tool(3, 1, "first", (10, 11)),
        tool(4, 1, "second", (20, 21)),
        model(5, 1, (31, 60)),
        tool(6, 1, "third", (40, 41)),
        tool(7, 1, "fourth", (50, 51)),
    ]

    groups = [call.parallel_group for call in runs_of(spans)[0].tool_calls]

    assert groups[0] == groups[1] is not None
    assert groups[2] == groups[3] is not None
    assert groups[0] != groups[2]


def test_a_model_that_runs_beside_a_turn_did_not_ask_for_its_calls() -> None:
    spans = [
        agent(1, None, "a", (0, 100)),
        model(2, 1, (1, 10)),
        model(3, 1, (5, 60)),
        tool(4, 1, "first", (20, 21)),
        tool(5, 1, "second", (70, 71)),
    ]

    assert [None, None] == [call.parallel_group for call in runs_of(spans)[0].tool_calls]


def test_without_turns_a_history_tells_what_was_asked_for_at_once() -> None:
    spans = [
        agent(1, None, "a", (0, 100), **{"gen_ai.input.messages": history("c1", "c2")}),
        tool(2, 1, "get", (10, 11), "c1"),
        tool(3, 1, "get", (20, 21), "c2"),
        tool(4, 1, "get", (30, 31), "c3"),
    ]

    groups = [call.parallel_group for call in runs_of(spans)[0].tool_calls]

    assert groups[0] == groups[1] is not None
    assert groups[2] is None


def test_a_response_without_its_result_leaves_the_result_unknown() -> None:
    response: JsonObject = {"type": "tool_call_response", "id": "c1", "name": "get"}
    later = json.dumps([{"role": "user", "parts": [response]}])
    spans = [
        agent(1, None, "a", (0, 100)),
        tool(2, 1, "get", (10, 20), "c1", result=None),
        model(3, 1, (30, 40), **{"gen_ai.input.messages": later}),
    ]

    assert [ValueState.ABSENT] == [call.result_state for call in runs_of(spans)[0].tool_calls]


def test_a_response_of_null_is_a_result() -> None:
    response: JsonObject = {"type": "tool_call_response", "id": "c1", "response": None}
    later = json.dumps([{"role": "tool", "parts": [response]}])
    spans = [
        agent(1, None, "a", (0, 100)),
        tool(2, 1, "get", (10, 20), "c1", result=None),
        model(3, 1, (30, 40), **{"gen_ai.input.messages": later}),
    ]

    assert [(ValueState.PRESENT, None)] == [
        (call.result_state, call.result) for call in runs_of(spans)[0].tool_calls
    ]


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        ([["user", "Weather?"]], "Weather?"),
        ([["system", "Be brief."], ["human", "Weather?"]], "Weather?"),
        ([["one", "two"]], "two"),
    ],
    ids=["one pair", "two pairs", "no pair of a role"],
)
def test_a_message_may_be_a_pair_of_role_and_text(listed: JsonValue, text: str) -> None:
    assert text == last_text(read_messages(listed), "user")


def test_a_run_may_be_asked_by_pairs_of_role_and_text() -> None:
    run: JsonObject = {
        "openinference.span.kind": "AGENT",
        "agent.name": "a",
        "input.value": '{"messages": [["user", "Weather?"]]}',
    }

    assert ["Weather?"] == [told.input for told in runs_of([span(1, None, "a", run)])]


def _asks(*names: str) -> str:
    parts: JsonValue = [
        {"type": "tool_call", "name": name, "arguments": {"task": f"for {name}"}} for name in names
    ]
    return json.dumps([{"role": "assistant", "parts": parts}])


def _answers(text: str) -> str:
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])


def test_an_agent_that_a_model_asked_for_is_a_call_where_only_its_own_span_tells() -> None:
    spans = [
        agent(1, None, "boss", (0, 100)),
        model(2, 1, (1, 10), **{"gen_ai.output.messages": _asks("humid")}),
        agent(3, 1, "humid", (11, 30), **{"gen_ai.output.messages": _answers("80")}),
        model(4, 1, (31, 40), **{"gen_ai.output.messages": _asks("get_forecast")}),
        tool(5, 1, "get_forecast", (41, 42)),
        model(6, 1, (50, 60), **{"gen_ai.output.messages": _answers("done")}),
    ]

    boss, humid = runs_of(spans)

    asked, forecast = boss.tool_calls
    assert ("humid", CallCategory.AGENT, {"task": "for humid"}, "80") == (
        asked.name,
        asked.category,
        asked.arguments,
        asked.result,
    )
    assert ("get_forecast", CallCategory.FUNCTION) == (forecast.name, forecast.category)
    assert ("humid", "boss") == (humid.agent.name, humid.parent_agent)


@pytest.mark.parametrize(
    ("asked", "called"),
    [("get_forecast", "get_forecast"), ("humid", "humid")],
    ids=["for something else", "by a call that has a span"],
)
def test_an_agent_within_a_run_is_no_call_of_its_own_where_a_model_did_not_ask(
    asked: str, called: str
) -> None:
    spans = [
        agent(1, None, "boss", (0, 100)),
        model(2, 1, (1, 10), **{"gen_ai.output.messages": _asks(asked)}),
        tool(3, 1, called, (11, 12)),
        agent(4, 1, "humid", (13, 30)),
        model(5, 1, (50, 60), **{"gen_ai.output.messages": _answers("done")}),
    ]

    boss = runs_of(spans)[0]

    assert [called] == [call.name for call in boss.tool_calls]


def test_the_arguments_of_the_tool_for_the_answer_are_the_answer_where_nothing_else_tells_it() -> None:
    spans = [
        agent(1, None, "a"),
        tool(2, 1, "get", (10, 20)),
        tool(3, 1, "set_model_response", (30, 40), arguments='{"degrees": 11}', result='{"degrees": 11}'),
    ]

    assert {"degrees": 11} == runs_of(spans)[0].output


@pytest.mark.parametrize(
    "last",
    [
        tool(3, 1, "set_model_response", (30, 40), arguments=None),
        tool(3, 1, "set_model_response", (30, 40), arguments="{}"),
        tool(3, 1, "set_model_response", (30, 40), **{"error.type": "ValidationError"}),
        tool(3, 1, "get", (60, 70)),
    ],
    ids=["without content", "without arguments", "that failed", "before another call"],
)
def test_a_tool_for_the_answer_that_gave_none_makes_none_up(last: RawSpan) -> None:
    spans = [agent(1, None, "a"), tool(2, 1, "final_result", (10, 20), **{"error.type": "X"}), last]

    assert runs_of(spans)[0].output is None


def test_what_a_run_says_itself_goes_before_what_its_answer_tool_was_given() -> None:
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "11 degrees"}]}])
    spans = [
        agent(1, None, "a", (0, 100), **{"gen_ai.output.messages": said}),
        tool(2, 1, "final_result", (10, 20), arguments='{"degrees": 11}'),
    ]

    assert "11 degrees" == runs_of(spans)[0].output
