"""Langfuse observations, as its decorators and callbacks write them."""

import pytest

from processors.agent_run import ToolError, ValueState
from processors.json_value import JsonObject, JsonValue
from tests.support.agent_spans import runs_of, span

AGENT: JsonObject = {
    "langfuse.observation.type": "agent",
    "langfuse.observation.input": '{"args": ["Weather?"], "kwargs": {}}',
    "langfuse.observation.output": '"It is cold."',
    "session.id": "s1",
    "user.id": "u1",
    "langfuse.internal.is_app_root": True,
}
TOOL: JsonObject = {
    "langfuse.observation.type": "tool",
    "langfuse.observation.input": '{"args": [], "kwargs": {"city": "Oslo"}}',
    "langfuse.observation.output": '{"t": 1}',
}


def test_a_run_is_read_with_its_call() -> None:
    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "get", TOOL, at=(10, 20))])

    assert ("planner", "Weather?", "It is cold.", "s1") == (
        run.agent.name,
        run.input,
        run.output,
        run.session,
    )
    assert [("get", None, {"city": "Oslo"}, {"t": 1})] == [
        (made.name, made.call_id, made.arguments, made.result) for made in run.tool_calls
    ]


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('{"args": ["Oslo"], "kwargs": {"days": 2}}', {"$args": ["Oslo"], "days": 2}),
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        ("{'city': 'Oslo'}", {"city": "Oslo"}),
        ('{"kwargs": {"city": "Oslo"}}', {"kwargs": {"city": "Oslo"}}),
    ],
)
def test_arguments_come_out_of_the_recorded_call_only(given: str, arguments: JsonValue) -> None:
    tool: JsonObject = {**TOOL, "langfuse.observation.input": given}

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "get", tool)])

    assert [arguments] == [made.arguments for made in run.tool_calls]


def test_the_level_tells_an_error_without_a_status() -> None:
    tool: JsonObject = {
        **TOOL,
        "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": "boom",
    }

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "get", tool)])

    assert [ToolError(type="", message="boom")] == [made.error for made in run.tool_calls]


def test_a_chain_stands_for_the_agent_where_none_is_told() -> None:
    chain: JsonObject = {"langfuse.observation.type": "chain"}

    (run,) = runs_of([span(1, None, "answer_question", chain), span(2, 1, "get", TOOL)])

    assert "answer_question" == run.agent.name


def test_missing_values_stay_unknown() -> None:
    bare: JsonObject = {"langfuse.observation.type": "tool"}

    (run,) = runs_of([span(1, None, "a", {"langfuse.observation.type": "agent"}), span(2, 1, "get", bare)])

    (made,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (made.arguments_state, made.result_state)
    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)


def test_a_generation_tells_what_was_asked_for() -> None:
    generation: JsonObject = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": '[{"role": "user", "content": "Weather?"}]',
        "langfuse.observation.output": '{"role": "assistant", "content": null, "tool_calls": [{"id": "c1",'
        ' "type": "function", "function": {"name": "get", "arguments": "{\\"city\\": \\"Oslo\\"}"}}]}',
    }

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "llm", generation, at=(1, 5))])

    assert [("get", "c1", {"city": "Oslo"})] == [
        (made.name, made.call_id, made.arguments) for made in run.tool_calls
    ]
