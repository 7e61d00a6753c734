"""AG2 before version 1: every reply of an agent is an invocation, and another agent executes the calls."""

import json

from processors.model import JsonObject, JsonValue, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import agent, model, runs_of, span, tool

CHAT: JsonObject = {"gen_ai.operation.name": "conversation", "gen_ai.agent.name": "user"}


def message(role: str, *parts: JsonValue) -> str:
    return json.dumps([{"role": role, "parts": list(parts)}])


def asks(*call_ids: str) -> str:
    calls: list[JsonValue] = [
        {"type": "tool_call", "id": call_id, "name": "get", "arguments": {"city": "Oslo"}}
        for call_id in call_ids
    ]
    return message("assistant", *calls)


def says(text: str) -> str:
    return message("assistant", {"type": "text", "content": text})


def reply(number: int, name: str, at: tuple[int, int], answer: str, asked: str = "") -> list[RawSpan]:
    fields: JsonObject = {"ag2.span.type": "agent", "gen_ai.output.messages": answer}
    if asked:
        fields["gen_ai.input.messages"] = message("user", {"type": "text", "content": asked})
    return [
        agent(number, 1, name, at, **fields),
        model(number + 1, number, (at[0] + 1, at[1] - 1), **{"ag2.span.type": "llm"}),
    ]


def execution(number: int, at: tuple[int, int], *call_ids: str) -> list[RawSpan]:
    answer = message("tool", {"type": "text", "content": "cold"})
    fields: JsonObject = {"ag2.span.type": "agent", "gen_ai.output.messages": answer}
    calls = [
        tool(
            number + place,
            number,
            "get",
            (at[0] + place, at[0] + place + 1),
            call_id,
        )
        for place, call_id in enumerate(call_ids, 1)
    ]
    return [agent(number, 1, "user", at, **fields), *calls]


def conversation() -> RawSpan:
    return span(1, None, "conversation user", CHAT, at=(0, 500))


def test_the_replies_between_which_calls_were_executed_are_one_run() -> None:
    spans = [
        conversation(),
        *reply(10, "weather", (1, 10), asks("c1", "c2"), "Weather?"),
        *execution(20, (11, 20), "c1", "c2"),
        *reply(30, "weather", (21, 30), asks("c3"), "Weather?"),
        *execution(40, (31, 40), "c3"),
        *reply(50, "weather", (41, 50), says("Cold."), "Weather?"),
    ]

    (run,) = runs_of(spans)

    assert ("weather", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [(call_id, {"city": "Oslo"}, {"ok": True}) for call_id in ("c1", "c2", "c3")] == [
        (made.call_id, made.arguments, made.result) for made in run.tool_calls
    ]


def test_what_an_agent_is_asked_next_is_a_run_of_its_own() -> None:
    spans = [
        conversation(),
        *reply(10, "weather", (1, 10), asks("c1"), "A?"),
        *execution(20, (11, 20), "c1"),
        *reply(30, "weather", (21, 30), says("a"), "A?"),
        *reply(40, "weather", (31, 40), says("b"), "B?"),
    ]

    runs = runs_of(spans)

    assert [("a", 1), ("b", 0)] == [(run.output, len(run.tool_calls)) for run in runs]


def test_a_conversation_that_was_passed_on_is_a_run_for_each_agent() -> None:
    spans = [
        conversation(),
        *reply(10, "boss", (1, 10), asks("c1")),
        *execution(20, (11, 20), "c1"),
        *reply(30, "weather", (21, 30), asks("c2")),
        *execution(40, (31, 40), "c2"),
        *reply(50, "weather", (41, 50), says("Cold.")),
        *reply(60, "boss", (51, 60), says("Fine.")),
    ]

    runs = runs_of(spans)

    assert [("boss", ["c1"], None), ("weather", ["c2"], "Cold."), ("boss", [], "Fine.")] == [
        (run.agent.name, [made.call_id for made in run.tool_calls], run.output) for run in runs
    ]


def test_an_agent_that_executes_its_own_calls_is_one_run() -> None:
    fields: JsonObject = {"ag2.span.type": "agent"}
    spans = [
        agent(1, None, "weather", (0, 100), **fields),
        model(2, 1, (1, 10), **{"gen_ai.output.messages": asks("c1")}),
        tool(3, 1, "get", (11, 20), "c1"),
        model(4, 1, (21, 30), **{"gen_ai.output.messages": says("Cold.")}),
    ]

    (run,) = runs_of(spans)

    assert ("Cold.", ["c1"]) == (run.output, [made.call_id for made in run.tool_calls])


def test_a_result_that_was_cut_is_unknown() -> None:
    cut: JsonObject = {
        "gen_ai.tool.call.result": "cold and...[truncated]",
        "ag2.tool.call.result.truncated": True,
    }
    fields: JsonObject = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get", **cut}
    spans = [agent(1, None, "weather", (0, 100)), span(2, 1, "execute_tool get", fields, at=(10, 20))]

    (run,) = runs_of(spans)

    assert [ValueState.TRUNCATED] == [made.result_state for made in run.tool_calls]
