"""Dapr Agents: OpenInference and GenAI spans of its tools, within spans of the workflow's activities."""

import json

import pytest

from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span

REQUEST: JsonObject = {"id": "call_1", "function": {"name": "get", "arguments": '{"city": "Oslo"}'}}


def activity(number: int, name: str, kind: str, operation: str, at: tuple[int, int]) -> RawSpan:
    fields: JsonObject = {
        "openinference.span.kind": kind,
        "gen_ai.operation.name": operation,
        "agent.name": "weather",
        "workflow.activity": name,
        "input.value": json.dumps({"tool_call": REQUEST, "instance_id": "i"}),
        "output.value": json.dumps({"content": "cold", "role": "tool", "tool_call_id": "call_1"}),
    }
    return span(number, 1, f"weather.{name}", fields, at=at)


def run() -> RawSpan:
    fields: JsonObject = {
        "openinference.span.kind": "AGENT",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "weather",
        "agent.name": "weather",
        "input.value": '{"task": "Weather?"}',
    }
    return span(1, None, "invoke_agent weather", fields, at=(0, 100))


def execution(number: int, parent: int, at: tuple[int, int]) -> RawSpan:
    fields: JsonObject = {
        "openinference.span.kind": "TOOL",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "tool.name": "get",
        "agent.name": "AgentToolExecutor",
        "input.value": '{"tool_name": "get", "args": [], "kwargs": {"city": "Oslo"}}',
        "output.value": "cold",
    }
    return span(number, parent, "execute_tool get", fields, at=at)


def test_the_activity_around_a_tool_is_no_second_call() -> None:
    spans = [run(), activity(2, "run_tool", "TOOL", "execute_tool", (10, 20)), execution(3, 2, (11, 19))]

    (found,) = runs_of(spans)

    assert ("weather", "Weather?") == (found.agent.name, found.input)
    assert [("get", {"city": "Oslo"}, "cold")] == [
        (made.name, made.arguments, made.result) for made in found.tool_calls
    ]


@pytest.mark.parametrize(
    ("name", "kind", "operation"),
    [
        ("save_tool_results", "TOOL", "execute_tool"),
        ("record_initial_entry", "TASK", "invoke_agent"),
        ("call_llm", "LLM", "chat"),
    ],
)
def test_other_activities_are_neither_calls_nor_runs(name: str, kind: str, operation: str) -> None:
    (found,) = runs_of([run(), activity(2, name, kind, operation, (10, 20))])

    assert ("weather", []) == (found.agent.name, found.tool_calls)
