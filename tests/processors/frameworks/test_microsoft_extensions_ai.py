"""Chat clients of .NET: each loop of turns and calls is a run, also where one request has several."""

import json

from processors.model import JsonObject, JsonValue
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span

OF = envelope(service="weather-app", scope="Experimental.Microsoft.Extensions.AI")
USAGE: JsonObject = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 5}


def says(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def loop(number: int, parent: int | None, at: int, asked: str, answer: str) -> list[RawSpan]:
    turn: dict[str, JsonValue] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": says("user", asked),
        "gen_ai.output.messages": says("assistant", answer),
    }
    called: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": f"c{number}",
        "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
        "gen_ai.tool.call.result": "11.5",
    }
    return [
        span(number, parent, "orchestrate_tools", USAGE, at=(at, at + 30), of=OF),
        span(number + 1, number, "execute_tool get", called, at=(at + 5, at + 9), of=OF),
        span(number + 2, number, "chat m", turn, at=(at + 10, at + 20), of=OF),
    ]


def test_each_loop_within_one_request_is_a_run() -> None:
    request = span(1, None, "POST /chat", at=(0, 100), of=envelope(service="weather-app", scope="aspnet"))

    runs = runs_of([request, *loop(2, 1, 10, "A?", "a"), *loop(12, 1, 50, "B?", "b")])

    assert [("weather-app", "A?", "a", ["c2"]), ("weather-app", "B?", "b", ["c12"])] == [
        (run.agent.name, run.input, run.output, [call.call_id for call in run.tool_calls]) for run in runs
    ]


def test_the_loop_of_an_agent_is_the_agents_run() -> None:
    agent: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}

    (run,) = runs_of(
        [span(1, None, "invoke_agent planner(1)", agent, at=(0, 99)), *loop(2, 1, 10, "A?", "a")]
    )

    assert ("planner", ["c2"]) == (run.agent.name, [call.call_id for call in run.tool_calls])


def test_spans_of_that_name_from_elsewhere_are_nobodys() -> None:
    assert [] == runs_of([span(1, None, "orchestrate_tools", USAGE)])
