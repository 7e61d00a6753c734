"""Pipecat's conversations, whose calls stand only in the histories of later turns of the model."""

import json

from processors.model import JsonObject, JsonValue, ToolCall, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span

SYSTEM: JsonObject = {"role": "system", "content": "You tell the weather."}
ASKED: JsonObject = {"role": "user", "content": "What is the weather in Oslo?"}
CONVERSATION: JsonObject = {"conversation.id": "c-1", "conversation.type": "voice"}


def request(call_id: str, name: str = "get_temperature") -> JsonObject:
    function: JsonObject = {"name": name, "arguments": '{"city": "Oslo"}'}
    return {"role": "assistant", "tool_calls": [{"id": call_id, "function": function, "type": "function"}]}


def result(call_id: str, content: str) -> JsonObject:
    return {"role": "tool", "content": content, "tool_call_id": call_id}


def conversation() -> list[RawSpan]:
    of = envelope(service="weather", scope="pipecat.turn")
    turn: JsonObject = {"conversation.id": "c-1", "turn.type": "conversation"}
    return [span(1, None, "conversation", CONVERSATION, of=of), span(2, 1, "turn", turn, of=of)]


def model(number: int, history: list[JsonValue], output: str = "") -> RawSpan:
    fields: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "input": json.dumps(history),
        "tools": json.dumps([{"type": "function", "function": {"name": "get_temperature"}}]),
        **({"output": output} if output else {}),
    }
    at = (number * 10, number * 10 + 5)
    return span(number, 2, "llm", fields, at=at, of=envelope(service="weather", scope="pipecat"))


def calls_of(spans: list[RawSpan]) -> list[ToolCall]:
    (run,) = runs_of([*conversation(), *spans])
    return list(run.tool_calls)


def test_a_conversation_is_a_run_with_the_calls_of_its_histories() -> None:
    first: list[JsonValue] = [SYSTEM, ASKED]
    second = [*first, request("c1"), result("c1", '"it is cold"')]
    third = [*second, request("c2", "get_humidity"), result("c2", '{"humidity": 80}')]

    (run,) = runs_of([*conversation(), model(3, first), model(4, second), model(5, third, "Cold.")])

    assert ("weather", "c-1", "What is the weather in Oslo?", "Cold.", {"get_temperature": None}) == (
        run.agent.name,
        run.session,
        run.input,
        run.output,
        run.available_tools,
    )
    assert [
        ("get_temperature", "c1", {"city": "Oslo"}, "it is cold", None),
        ("get_humidity", "c2", {"city": "Oslo"}, {"humidity": 80}, None),
    ] == [
        (call.name, call.call_id, call.arguments, call.result, call.parallel_group) for call in run.tool_calls
    ]


def test_calls_asked_for_together_are_a_group() -> None:
    first: list[JsonValue] = [SYSTEM, ASKED]
    second = [*first, request("c1"), result("c1", "7"), request("c2"), result("c2", "8")]

    calls = calls_of([model(3, first), model(4, second, "Done.")])

    assert [("c1", 7, 0), ("c2", 8, 0)] == [
        (call.call_id, call.result, call.parallel_group) for call in calls
    ]


def test_a_call_asked_for_beside_a_text_is_found() -> None:
    first: list[JsonValue] = [SYSTEM, ASKED]
    said: JsonObject = {"role": "assistant", "content": "I look it up."}
    second = [*first, said, request("c1"), result("c1", "7")]

    calls = calls_of([model(3, first, "I look it up."), model(4, second, "Seven.")])

    assert ["c1"] == [call.call_id for call in calls]


def test_the_words_for_a_result_that_is_not_there_are_no_results() -> None:
    first: list[JsonValue] = [SYSTEM, ASKED]
    asked = [*first, request("c1"), result("c1", "IN_PROGRESS"), request("c2"), result("c2", "COMPLETED")]
    later = [*first, request("c1"), result("c1", '"done"'), request("c2"), result("c2", "COMPLETED")]
    cancelled = [*later, request("c3"), result("c3", "CANCELLED")]

    calls = calls_of([model(3, first), model(4, asked), model(5, later), model(6, cancelled, "Done.")])

    assert [
        ("c1", "done", ValueState.PRESENT, None),
        ("c2", None, ValueState.ABSENT, None),
        ("c3", "CANCELLED", ValueState.PRESENT, ToolError(type="", message="CANCELLED")),
    ] == [(call.call_id, call.result, call.result_state, call.error) for call in calls]


def test_spans_of_other_scopes_with_such_attributes_are_left_alone() -> None:
    assert [] == runs_of([span(1, None, "conversation", CONVERSATION)])
