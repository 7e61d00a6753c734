"""A hosted agent whose tools the caller executes: one invocation span for each turn of the run."""

import json

from processors.model.json_values import JsonValue
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, runs_of, span, tool


def asks(call_id: str, text: str = "") -> JsonValue:
    parts: list[JsonValue] = [{"type": "text", "content": text}] if text else []
    parts.append({"type": "tool_call", "id": call_id, "name": "get", "arguments": '{"city": "Oslo"}'})
    return json.dumps([{"role": "assistant", "parts": parts}])


def says(text: str, role: str = "assistant") -> JsonValue:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def brings(call_id: str, result: JsonValue) -> JsonValue:
    part = {"type": "tool_call_response", "id": call_id, "result": result}
    return json.dumps([{"role": "tool", "parts": [part]}])


def turn(
    number: int, at: tuple[int, int], told: JsonValue, answered: JsonValue, parent: int | None = 1
) -> RawSpan:
    fields = {"gen_ai.input.messages": told, "gen_ai.output.messages": answered}
    return agent(number, parent, "weather", at, **fields)


def test_turns_that_bring_the_results_that_were_asked_for_are_one_run() -> None:
    spans = [
        span(1, None, "main", at=(0, 100)),
        turn(2, (1, 10), says("Weather?", "user"), asks("c1", "let me look")),
        turn(3, (20, 30), brings("c1", {"t": 1}), asks("c2")),
        turn(4, (40, 50), brings("c2", {"t": 2}), says("Cold.")),
    ]

    (run,) = runs_of(spans)

    assert ("weather", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert (1_000_000, 50_000_000) == (run.start_unix_nano, run.end_unix_nano)
    assert [("c1", {"city": "Oslo"}, {"t": 1}), ("c2", {"city": "Oslo"}, {"t": 2})] == [
        (call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]
    assert ["Weather?", "let me look", '{"t": 1}', '{"t": 2}', "Cold."] == [
        message.content for message in run.messages if message.content
    ]


def test_what_a_user_asks_next_is_a_run_of_its_own() -> None:
    spans = [
        span(1, None, "POST /chat", at=(0, 100)),
        turn(2, (1, 10), says("A?", "user"), asks("c1")),
        turn(3, (2, 12), says("B?", "user"), asks("c2")),
        turn(4, (20, 30), brings("c2", 2), says("b")),
        turn(5, (21, 31), brings("c1", 1), says("a")),
        turn(6, (40, 50), says("C?", "user"), says("c")),
    ]

    assert [("A?", "a", ["c1"]), ("B?", "b", ["c2"]), ("C?", "c", [])] == [
        (run.input, run.output, [call.call_id for call in run.tool_calls]) for run in runs_of(spans)
    ]


def test_results_that_nobody_asked_for_and_runs_with_spans_of_their_own_join_nothing() -> None:
    spans = [
        span(1, None, "main", at=(0, 100)),
        turn(2, (1, 10), says("Weather?", "user"), asks("c1")),
        turn(3, (20, 30), brings("c9", 1), says("Cold.")),
        turn(4, (40, 50), brings("c1", 1), says("Warm.")),
        tool(5, 4, "get", (41, 42)),
    ]

    assert 3 == len(runs_of(spans))


def test_calls_of_which_only_the_ids_are_told_are_hidden_and_not_missing() -> None:
    def part(kind: str) -> JsonValue:
        return json.dumps([{"role": "assistant", "parts": [{"type": kind, "id": "c1"}]}])

    spans = [
        span(1, None, "main", at=(0, 100)),
        turn(2, (1, 10), json.dumps([{"role": "user", "parts": [{"type": "text"}]}]), part("tool_call")),
        turn(3, (20, 30), part("tool_call_response"), part("text")),
    ]

    (run,) = runs_of(spans)

    assert (False, "content_not_captured", 0) == (run.complete, run.incomplete_reason, len(run.tool_calls))


def test_a_run_of_thousands_of_turns_is_read_as_one_of_three() -> None:
    count = 3000
    turns = [turn(n, (2 * n, 2 * n + 1), brings(f"c{n - 1}", n), asks(f"c{n}")) for n in range(3, count)]
    spans = [
        span(1, None, "main", at=(0, 3 * count)),
        turn(2, (1, 5), says("Weather?", "user"), asks("c2")),
        *turns,
    ]

    (run,) = runs_of(spans)

    assert ("Weather?", None, count - 2) == (run.input, run.output, len(run.tool_calls))
