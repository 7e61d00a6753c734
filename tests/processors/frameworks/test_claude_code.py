"""Spans of Claude Code: bare attribute names, outcomes on a child, content redacted unless switched on."""

from collections.abc import Sequence
from typing import Any

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolCall, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span

SERVICE = envelope(service="claude-code", scope="com.anthropic.claude_code.tracing")


def interaction(prompt: str = "List the files.") -> RawSpan:
    fields: JsonObject = {"span.type": "interaction", "user_prompt": prompt, "session.id": "s1"}
    return span(1, None, "claude_code.interaction", fields, of=SERVICE)


def tool(*, prefix: str = "", events: Sequence[tuple[str, JsonObject]] = (), **more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "span.type": f"{prefix}tool",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        **more,
    }
    return span(2, 1, "claude_code.tool", fields, at=(10, 20), events=events, of=SERVICE)


def execution(**fields: JsonValue) -> RawSpan:
    return span(4, 2, "claude_code.tool.execution", {"span.type": "tool.execution", **fields}, at=(12, 19))


def call_in(*spans: RawSpan) -> ToolCall:
    waiting = span(
        3, 2, "claude_code.tool.blocked_on_user", {"span.type": "tool.blocked_on_user"}, at=(10, 12)
    )
    (run,) = runs_of([interaction(), *spans, waiting])
    (call,) = run.tool_calls
    return call


def test_an_interaction_is_a_run_named_by_its_service() -> None:
    (run,) = runs_of([interaction(), tool()])

    assert ("claude-code", "List the files.", "s1") == (run.agent.name, run.input, run.session)


@pytest.mark.parametrize("prefix", ["", "claude_code."])
def test_the_type_is_told_with_and_without_a_prefix(prefix: str) -> None:
    assert "Bash" == call_in(tool(prefix=prefix)).name


def test_arguments_and_result_are_read_where_content_is_on() -> None:
    call = call_in(
        tool(
            tool_input='{"command": "ls", "description": "List"}',
            full_command="ls",
            events=[("tool.output", {"output": "a.txt"})],
        )
    )

    assert ("toolu_1", {"command": "ls", "description": "List"}, "a.txt") == (
        call.call_id,
        call.arguments,
        call.result,
    )


@pytest.mark.parametrize(
    ("key", "argument"),
    [
        ("file_path", "file_path"),
        ("full_command", "command"),
        ("skill_name", "skill"),
        ("subagent_type", "subagent_type"),
    ],
)
def test_details_stand_in_for_the_arguments_under_the_tools_own_names(key: str, argument: str) -> None:
    fields: dict[str, Any] = {key: "x"}

    assert {argument: "x"} == call_in(tool(**fields)).arguments


@pytest.mark.parametrize("key", ["content", "diff"])
def test_results_have_several_names(key: str) -> None:
    assert "text" == call_in(tool(events=[("tool.output", {"file_path": "/a", key: "text"})])).result


def test_what_is_redacted_is_told_to_be() -> None:
    redacted = call_in(tool(tool_input="<REDACTED>", events=[("tool.output", {"output": "<REDACTED>"})]))

    assert (ValueState.REDACTED, ValueState.REDACTED) == (redacted.arguments_state, redacted.result_state)
    assert ValueState.REDACTED is call_in(tool(full_command="<REDACTED>")).arguments_state
    assert ValueState.REDACTED is runs_of([interaction("<REDACTED>"), tool()])[0].input_state


def test_missing_values_stay_unknown() -> None:
    call = call_in(tool())

    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


@pytest.mark.parametrize("success", [False, "false"])
def test_the_execution_tells_a_failure(success: JsonValue) -> None:
    call = call_in(tool(), execution(success=success, error="exit code 1"))

    assert ToolError(type="", message="exit code 1") == call.error
    assert "Bash" == call.name


def test_an_execution_that_went_well_is_no_call_and_no_failure() -> None:
    assert call_in(tool(), execution(success=True)).error is None


def test_an_execution_whose_call_is_not_there_is_no_call() -> None:
    (run,) = runs_of([interaction(), execution(success=False)])

    assert [] == list(run.tool_calls)


def test_a_run_under_another_instrumentations_agent_is_that_agents() -> None:
    wrapper: JsonObject = {"openinference.span.kind": "AGENT", "agent.name": "reviewer"}
    inner = span(1, 9, "claude_code.interaction", {"span.type": "interaction"}, at=(1, 90))

    (run,) = runs_of([span(9, None, "ClaudeAgent", wrapper), inner, tool()])

    assert ("reviewer", ["Bash"]) == (run.agent.name, [call.name for call in run.tool_calls])


def test_what_lies_below_the_call_of_a_sub_agent_is_a_run_of_its_own() -> None:
    started: JsonObject = {"span.type": "tool", "tool_name": "Agent", "subagent_type": "explorer"}
    bash: JsonObject = {"span.type": "tool", "tool_name": "Bash", "agent_id": "a1"}
    failed: JsonObject = {"span.type": "tool.execution", "success": False, "error": "gave up"}
    model: JsonObject = {"span.type": "llm_request", "gen_ai.request.model": "m"}
    spans = [
        span(1, None, "claude_code.interaction", {"span.type": "interaction"}, at=(0, 100)),
        span(2, 1, "claude_code.tool", started, at=(10, 60)),
        span(3, 2, "claude_code.tool.execution", failed, at=(11, 59)),
        span(4, 3, "claude_code.llm_request", model, at=(12, 20)),
        span(5, 3, "claude_code.tool", bash, at=(21, 30)),
        span(6, 1, "claude_code.tool", {"span.type": "tool", "tool_name": "Bash"}, at=(70, 80)),
    ]

    outer, inner = runs_of(spans)

    assert [("Agent", CallCategory.AGENT, "gave up"), ("Bash", CallCategory.FUNCTION, None)] == [
        (call.name, call.category, call.error and call.error.message) for call in outer.tool_calls
    ]
    assert ("explorer", "demo", ["Bash"]) == (
        inner.agent.name,
        inner.parent_agent,
        [call.name for call in inner.tool_calls],
    )


def test_a_sub_agent_without_spans_below_its_call_is_no_run() -> None:
    spans = [
        span(1, None, "claude_code.interaction", {"span.type": "interaction"}),
        span(2, 1, "claude_code.tool", {"span.type": "tool", "tool_name": "Task", "subagent_type": "x"}),
    ]

    assert [["Task"]] == [[call.name for call in run.tool_calls] for run in runs_of(spans)]


def test_calls_that_begin_while_the_model_still_answers_are_of_that_turn() -> None:
    model: JsonObject = {"span.type": "llm_request"}
    bash: JsonObject = {"span.type": "tool", "tool_name": "Bash"}
    spans = [
        interaction(),
        span(2, 1, "claude_code.llm_request", model, at=(0, 20)),
        span(3, 1, "claude_code.tool", bash, at=(10, 19)),
        span(4, 1, "claude_code.llm_request", model, at=(21, 40)),
        span(5, 1, "claude_code.tool", bash, at=(35, 50)),
        span(6, 1, "claude_code.llm_request", model, at=(51, 60)),
    ]

    (run,) = runs_of(spans)

    assert [None, None] == [call.parallel_group for call in run.tool_calls]
