"""Messages in the content of events: one JSON text for each, as the older conventions' SDKs write them."""

import json

from processors.model import JsonObject, JsonValue, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import agent, model, runs_of, span, tool

CONTENT = "gen_ai.event.content"
Event = tuple[str, JsonObject]


def told(name: str, body: JsonValue) -> Event:
    return name, {"gen_ai.system": "openai", CONTENT: body if isinstance(body, str) else json.dumps(body)}


def asks(call_id: str, name: str, arguments: JsonValue) -> JsonObject:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, "type": "function"}


def chat(number: int, at: tuple[int, int], *events: Event, parent: int | None = 1) -> RawSpan:
    return span(number, parent, "chat m", {"gen_ai.operation.name": "chat"}, at=at, events=events)


def test_messages_in_the_content_of_events_are_read() -> None:
    asked = told(
        "gen_ai.user.message", {"role": "user", "name": None, "content": "Weather?", "tool_calls": []}
    )
    call = asks("c1", "get", {"city": "Oslo"})
    request: JsonObject = {"role": "assistant", "name": None, "content": None, "tool_calls": [call]}
    chosen = told("gen_ai.choice", {"index": 0, "message": request, "tool_calls": [call]})
    returned = told("gen_ai.tool.message", {"content": "11.5", "id": "c1"})
    answered = told(
        "gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": "Cold."}, "tool_calls": []}
    )

    (run,) = runs_of(
        [
            span(1, None, "POST /chat", at=(0, 100)),
            chat(2, (1, 10), asked, chosen),
            chat(3, (20, 30), asked, told("gen_ai.assistant.message", request), returned, answered),
        ]
    )

    assert ("Weather?", "Cold.") == (run.input, run.output)
    assert [("get", "c1", {"city": "Oslo"}, 11.5)] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_a_call_seen_as_a_span_gets_its_id_and_arguments_from_the_content_of_an_event() -> None:
    call = asks("c1", "get", {"city": "Oslo"})
    chosen = told("gen_ai.choice", {"index": 0, "message": {"content": None, "tool_calls": [call]}})

    (run,) = runs_of(
        [
            agent(1, None, "planner", (0, 100)),
            chat(2, (1, 10), chosen),
            tool(3, 1, "get", (20, 30), arguments=None),
        ]
    )

    assert [("c1", {"city": "Oslo"}, {"ok": True})] == [
        (call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_content_that_is_no_object_is_the_text() -> None:
    asked = told("gen_ai.user.message", "Weather?")
    answered = told("gen_ai.choice", {"index": 0, "message": "Cold.", "finish_reason": "stop"})

    (run,) = runs_of([agent(1, None, "planner", (0, 100)), chat(2, (1, 10), asked, answered)])

    assert ("Weather?", "Cold.") == (run.input, run.output)


def test_content_that_was_left_out_is_not_made_up() -> None:
    chosen = told("gen_ai.choice", {"role": "assistant"})

    (run,) = runs_of([agent(1, None, "planner", (0, 100)), chat(2, (1, 10), chosen), model(3, 1, (20, 30))])

    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)
