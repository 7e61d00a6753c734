"""Turns that hang at another run than the calls that they asked for."""

import json
from collections.abc import Callable

import pytest

from processors.model.agent_run import AgentRun
from processors.model.json_values import JsonObject, JsonValue
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, model, runs_of, span, tool

ASKED: JsonObject = {"city": "Oslo"}


def genai_turn(number: int, parent: int, at: tuple[int, int], name: str, call_id: str) -> RawSpan:
    """A model that asks for one call, as the GenAI conventions tell it."""
    part: JsonObject = {"type": "tool_call", "id": call_id, "name": name, "arguments": ASKED}
    answer: JsonValue = [{"role": "assistant", "parts": [part]}]
    return model(number, parent, at, **{"gen_ai.output.messages": json.dumps(answer)})


def openinference_turn(number: int, parent: int, at: tuple[int, int], name: str, call_id: str) -> RawSpan:
    """The same as OpenInference tells it."""
    call = "llm.output_messages.0.message.tool_calls.0.tool_call."
    fields: JsonObject = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        f"{call}id": call_id,
        f"{call}function.name": name,
        f"{call}function.arguments": json.dumps(ASKED),
    }
    return span(number, parent, "ChatModel", fields, at=at)


Turn = Callable[[int, int, tuple[int, int], str, str], RawSpan]
TURNS = pytest.mark.parametrize("turn", [genai_turn, openinference_turn])


def boss_of(*below: RawSpan) -> AgentRun:
    """A boss that calls a helper, which calls `get`, and whatever else there is."""
    spans = [
        agent(1, None, "boss", (0, 100)),
        tool(2, 1, "ask_helper", (10, 50), "t1"),
        agent(3, 2, "helper", (11, 49)),
        tool(4, 3, "get", (20, 30), "v1", arguments=json.dumps(ASKED)),
        *below,
    ]
    return runs_of(spans)[0]


@TURNS
@pytest.mark.parametrize("name", ["get", "mcp__weather__get"])
def test_a_request_that_another_run_executed_was_executed(turn: Turn, name: str) -> None:
    boss = boss_of(turn(5, 1, (12, 19), name, "v1"))

    assert (["ask_helper"], []) == ([call.name for call in boss.tool_calls], list(boss.requested_calls))


@TURNS
@pytest.mark.parametrize(
    ("name", "call_id"), [("get", "v2"), ("put", "v1"), ("get", "")], ids=["id", "tool", "no id"]
)
def test_a_request_that_no_run_executed_never_was(turn: Turn, name: str, call_id: str) -> None:
    boss = boss_of(turn(5, 1, (12, 19), name, call_id))

    assert [name] == [call.name for _, call in boss.requested_calls]


@TURNS
def test_ids_that_every_agent_begins_anew_are_told_apart_by_the_arguments(turn: Turn) -> None:
    other = tool(6, 3, "find", (31, 40), "1", arguments='{"city": "Bergen"}')

    boss = boss_of(turn(5, 1, (12, 19), "find", "1"), other)

    assert ["find"] == [call.name for _, call in boss.requested_calls]
