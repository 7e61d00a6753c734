"""Docker Agent: sessions as runs, turns that name the agent, calls without content."""

import pytest

from processors.model import AgentRun, CallCategory, JsonObject, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import runs_of, span


def spanned(
    number: int,
    parent: int | None,
    name: str,
    agent: str,
    at: tuple[int, int],
    status: tuple[int, str] = (1, ""),
    tool: JsonObject | None = None,
) -> RawSpan:
    told = {"agent": agent, "session.id": "s1", **(tool or {})}
    return span(number, parent, f"runtime.{name}", told, at=at, status=status)


def call(
    number: int, parent: int, tool: str, agent: str, at: tuple[int, int], status: tuple[int, str] = (1, "")
) -> list[RawSpan]:
    """A call is told by two spans; only the inner one tells whether it failed."""
    ids: JsonObject = {"tool.name": tool, "tool.call_id": f"c{number}"}
    kind = "tool.handler.runtime" if tool in ("handoff", "transfer_task") else "tool.handler"
    return [
        spanned(number, parent, "tool.call", agent, at, tool={**ids, "tool.type": "function"}),
        spanned(number + 1, number, kind, agent, at, status, ids),
    ]


def told(run: AgentRun) -> tuple[str, str | None, list[tuple[str, CallCategory]]]:
    return run.agent.name, run.parent_agent, [(call.name, call.category) for call in run.tool_calls]


def test_a_session_is_a_run_of_calls_of_which_nothing_but_the_name_is_known() -> None:
    spans = [
        spanned(1, None, "session", "planner", (0, 100)),
        spanned(2, 1, "stream", "planner", (1, 5)),
        *call(3, 1, "get", "planner", (6, 20)),
        *call(5, 1, "get", "planner", (21, 30), (STATUS_ERROR, "tool handler error")),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "s1", None, None) == (run.agent.name, run.session, run.input, run.output)
    assert [("get", "c3", None), ("get", "c5", ToolError(type="", message="tool handler error"))] == [
        (call.name, call.call_id, call.error) for call in run.tool_calls
    ]
    assert [(ValueState.ABSENT, ValueState.ABSENT, False)] * 2 == [
        (call.arguments_state, call.result_state, call.lenient_values) for call in run.tool_calls
    ]


def test_a_task_that_is_transferred_is_a_run_within_the_call() -> None:
    spans = [
        spanned(1, None, "session", "planner", (0, 100)),
        spanned(2, 1, "stream", "planner", (1, 5)),
        *call(3, 1, "transfer_task", "planner", (6, 60)),
        span(5, 4, "runtime.task_transfer", {"from.agent": "planner", "to.agent": "helper"}, at=(7, 59)),
        spanned(6, 5, "session", "helper", (8, 58)),
        spanned(7, 6, "stream", "helper", (9, 15)),
        *call(8, 6, "get", "helper", (16, 40)),
    ]

    planner, helper = runs_of(spans)

    assert ("planner", None, [("transfer_task", CallCategory.AGENT)]) == told(planner)
    assert ("helper", "planner", [("get", CallCategory.FUNCTION)]) == told(helper)


def test_an_agent_that_takes_over_has_a_run_of_its_own() -> None:
    spans = [
        spanned(1, None, "session", "planner", (0, 100)),
        spanned(2, 1, "stream", "planner", (1, 5)),
        *call(3, 1, "handoff", "planner", (6, 20)),
        spanned(5, 1, "stream", "helper", (21, 30)),
        *call(6, 1, "get", "helper", (31, 40)),
        spanned(8, 1, "stream", "helper", (41, 50)),
    ]

    planner, helper = runs_of(spans)

    assert ("planner", None, [("handoff", CallCategory.HANDOFF)]) == told(planner)
    assert ("helper", None, [("get", CallCategory.FUNCTION)]) == told(helper)


@pytest.mark.parametrize("name", ["handle", "runtime.other", "runtime.tool.call"])
def test_other_spans_with_an_agent_are_none_of_it(name: str) -> None:
    assert [] == runs_of([span(1, None, name, {"agent": "planner"})])
