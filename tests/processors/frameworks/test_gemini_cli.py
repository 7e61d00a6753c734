"""Gemini CLI's own operations."""

import pytest

from processors.model import JsonObject, JsonValue, ToolCall, ToolError, ValueState, json_text
from tests.support.agent_spans import runs_of, span

REQUEST: JsonObject = {"callId": "c1", "name": "read_file", "args": {"path": "a.txt"}, "prompt_id": "p1"}


def response(content: JsonObject) -> JsonObject:
    part: JsonObject = {"functionResponse": {"id": "c1", "name": "read_file", "response": content}}
    return {"callId": "c1", "responseParts": [part], "resultDisplay": "shown"}


def call_with(**fields: JsonValue) -> ToolCall:
    tool: JsonObject = {
        "gen_ai.operation.name": "tool_call",
        "gen_ai.agent.name": "gemini-cli",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.call.id": "c1",
        **fields,
    }
    schedule: JsonObject = {"gen_ai.operation.name": "schedule_tool_calls", "gen_ai.agent.name": "gemini-cli"}
    agent: JsonObject = {"gen_ai.operation.name": "agent_call", "gen_ai.agent.name": "gemini-cli"}
    (run,) = runs_of(
        [
            span(1, None, "agent_call", agent),
            span(2, 1, "schedule_tool_calls", schedule, at=(5, 30)),
            span(3, 2, "tool_call", tool, at=(10, 20)),
        ]
    )
    assert "gemini-cli" == run.agent.name
    (call,) = run.tool_calls
    return call


@pytest.mark.parametrize(
    ("given", "answered"),
    [("gen_ai.input.messages", "gen_ai.output.messages"), ("input-json", "output-json")],
)
def test_the_scheduled_call_tells_arguments_and_result(given: str, answered: str) -> None:
    completed: JsonObject = {
        "status": "success",
        "request": REQUEST,
        "response": response({"output": "hello"}),
    }

    call = call_with(**{given: json_text(REQUEST), answered: json_text(completed)})

    assert ("read_file", "c1", {"path": "a.txt"}, "hello", None) == (
        call.name,
        call.call_id,
        call.arguments,
        call.result,
        call.error,
    )


def test_a_failed_call_tells_why() -> None:
    failed: JsonObject = {
        "status": "error",
        "request": REQUEST,
        "response": {**response({"error": "no such file"}), "error": {}, "errorType": "file_not_found"},
    }

    call = call_with(**{"gen_ai.output.messages": json_text(failed)})

    assert (ToolError(type="file_not_found", message="no such file"), "no such file") == (
        call.error,
        call.result,
    )


def test_missing_values_stay_unknown() -> None:
    call = call_with()

    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


def test_a_prompt_without_an_agent_above_it_is_a_run() -> None:
    prompt: JsonObject = {
        "gen_ai.operation.name": "user_prompt",
        "gen_ai.agent.name": "gemini-cli",
        "gen_ai.conversation.id": "s1",
    }
    tool: JsonObject = {"gen_ai.operation.name": "tool_call", "gen_ai.tool.name": "read_file"}

    (run,) = runs_of([span(1, None, "user_prompt", prompt), span(2, 1, "tool_call", tool)])

    assert ("gemini-cli", "s1", ["read_file"]) == (
        run.agent.name,
        run.session,
        [call.name for call in run.tool_calls],
    )


def test_the_id_of_a_call_is_read_where_content_is_left_out() -> None:
    call = call_with(**{"gen_ai.tool.call.id": "", "gen_ai.tool.call_id": "read_file__1"})

    assert ("read_file__1", ValueState.ABSENT) == (call.call_id, call.arguments_state)
