"""Hooks and permission prompts of coding agents: their spans name a tool and report no call of it."""

import pytest

from processors.model import JsonObject
from tests.support.agent_spans import agent, runs_of, span, tool

FAILED = (2, "hook runner returned no output without error detail")


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("qwen-code.hook", {"hook_event": "PreToolUse", "tool.name": "read_file", "success": False}),
        ("qwen-code.tool.blocked_on_user", {"tool.name": "read_file", "decision": "reject"}),
        ("claude_code.hook", {"hook_event": "PreToolUse", "tool_name": "read_file", "span.type": "hook"}),
        ("claude_code.tool.blocked_on_user", {"span.type": "tool.blocked_on_user", "decision": "reject"}),
        ("claude_code.hook", {"hook_name": "guard", "gen_ai.tool.name": "read_file", "span.type": "hook"}),
        (
            "execute_hook PreToolUse",
            {"gen_ai.operation.name": "execute_hook", "gen_ai.tool.name": "read_file"},
        ),
        ("before", {"hook.event": "tool", "tool.name": "read_file"}),
    ],
)
@pytest.mark.parametrize("parent", [1, 2], ids=["beside the call", "below the call"])
def test_a_hook_is_no_call_and_no_failure_of_one(name: str, attributes: JsonObject, parent: int) -> None:
    spans = [
        agent(1, None, "coder"),
        tool(2, 1, "read_file", (10, 30)),
        span(3, parent, name, attributes, at=(11, 12), status=FAILED),
    ]

    (run,) = runs_of(spans)

    assert [("read_file", None)] == [(call.name, call.error) for call in run.tool_calls]


def test_a_span_by_hand_that_bears_content_is_a_call_whatever_it_is_named() -> None:
    spans = [
        agent(1, None, "coder"),
        span(2, 1, "git.hook", {"tool.name": "git_hook", "input.value": "{}", "output.value": "done"}),
    ]

    (run,) = runs_of(spans)

    assert ["git_hook"] == [call.name for call in run.tool_calls]
