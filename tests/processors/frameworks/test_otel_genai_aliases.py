"""Emitters of the GenAI conventions that use older or further names for the same things."""

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from tests.support.agent_spans import agent, runs_of, span


@pytest.mark.parametrize(
    ("given", "answered"),
    [
        ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
        ("gen_ai.tool.input", "gen_ai.tool.output"),
        ("gen_ai.tool.args", "gen_ai.tool.result"),
        ("mcp.tool.arguments", "mcp.tool.result"),
    ],
)
def test_values_are_found_under_every_name(given: str, answered: str) -> None:
    tool: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        given: '{"city": "Oslo"}',
        answered: '{"t": 1}',
    }

    (run,) = runs_of([agent(1, None, "planner"), span(2, 1, "execute_tool get", tool)])

    assert [({"city": "Oslo"}, {"t": 1})] == [(call.arguments, call.result) for call in run.tool_calls]


def test_a_protocols_tool_is_named_by_its_own_attribute() -> None:
    tool: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "mcp.tool.name": "get",
        "mcp.tool.arguments": '{"city": "Oslo"}',
    }

    (run,) = runs_of([agent(1, None, "planner"), span(2, 1, "mcp tools/call", tool)])

    assert [("get", CallCategory.MCP)] == [(call.name, call.category) for call in run.tool_calls]


def test_an_error_attribute_fills_in_the_message() -> None:
    tool: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.status": "error",
        "gen_ai.tool.error": "boom",
    }

    (run,) = runs_of([agent(1, None, "planner"), span(2, 1, "execute_tool get", tool)])

    assert [ToolError(type="", message="boom")] == [call.error for call in run.tool_calls]


def test_content_that_a_distribution_moved_off_the_spans_stays_unknown() -> None:
    """As Bedrock AgentCore's does: values go into log records, names and ids stay."""
    tool: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.status": "success",
        "session.id": "s1",
    }
    model: dict[str, JsonValue] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

    (run,) = runs_of(
        [
            agent(1, None, "planner"),
            span(2, 1, "chat m", model, at=(1, 5)),
            span(3, 1, "execute_tool get", tool, at=(10, 20)),
        ]
    )

    (call,) = run.tool_calls
    assert ("get", "c1", ValueState.ABSENT, ValueState.ABSENT, None) == (
        call.name,
        call.call_id,
        call.arguments_state,
        call.result_state,
        call.error,
    )
