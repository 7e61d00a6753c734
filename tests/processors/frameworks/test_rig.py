"""Rig: what was asked and answered as texts, and how a call came out in attributes of its own."""

import pytest

from processors.model import AgentRun, CallCategory, JsonObject, ToolError
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span


def calls_of(run: AgentRun) -> tuple[str, str | None, list[tuple[str, CallCategory]]]:
    return run.agent.name, run.parent_agent, [(call.name, call.category) for call in run.tool_calls]


AGENT: JsonObject = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": "planner",
    "gen_ai.prompt": "Weather?",
    "gen_ai.completion": "Cold.",
}
TOOL: JsonObject = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.type": "function",
    "gen_ai.tool.name": "get",
    "gen_ai.tool.call.id": "c1",
    "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
    "gen_ai.tool.call.result": "11.5",
    "gen_ai.tool.call.outcome": "success",
}


def test_what_was_asked_and_answered_are_texts_of_the_agents_span() -> None:
    (run,) = runs_of([span(1, None, "invoke_agent", AGENT), span(2, 1, "execute_tool", TOOL, at=(1, 2))])

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [("get", {"city": "Oslo"}, 11.5, None)] == [
        (call.name, call.arguments, call.result, call.error) for call in run.tool_calls
    ]


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"gen_ai.tool.call.outcome": "error", "gen_ai.tool.error.type": "timeout"}, "timeout"),
        ({"gen_ai.tool.call.outcome": "error"}, "error"),
        ({"gen_ai.tool.call.outcome": "skipped"}, "skipped"),
    ],
)
def test_a_call_that_came_out_in_another_way_than_well_failed(told: JsonObject, error: str) -> None:
    more = {**told, "gen_ai.tool.call.result": "no answer"}
    (run,) = runs_of([span(1, None, "invoke_agent", AGENT), span(2, 1, "execute_tool", {**TOOL, **more})])

    assert [ToolError(type=error, message="no answer")] == [call.error for call in run.tool_calls]


def chat(number: int, parent: int, agent: str, at: tuple[int, int]) -> RawSpan:
    told = {"gen_ai.operation.name": "chat", "gen_ai.agent.name": agent}
    return span(number, parent, "chat", told, at=at)


def test_an_agent_within_a_span_of_the_application_is_named_by_its_turns() -> None:
    spans = [
        span(1, None, "handle_request", {}),
        chat(2, 1, "planner", (1, 5)),
        span(3, 1, "execute_tool", TOOL, at=(6, 9)),
        chat(4, 1, "planner", (10, 15)),
    ]

    (run,) = runs_of(spans)

    assert ("planner", ["get"]) == (run.agent.name, [call.name for call in run.tool_calls])


@pytest.mark.parametrize("around", [AGENT, {}])
def test_an_agent_used_as_a_tool_has_a_run_of_its_own_though_no_span(around: JsonObject) -> None:
    spans = [
        span(1, None, "outermost", around),
        chat(2, 1, "planner", (1, 5)),
        span(3, 1, "execute_tool", {**TOOL, "gen_ai.tool.name": "ask"}, at=(6, 50)),
        chat(4, 3, "helper", (7, 9)),
        span(5, 3, "execute_tool", TOOL, at=(10, 20)),
        chat(6, 3, "helper", (21, 30)),
        chat(7, 1, "planner", (51, 60)),
    ]

    planner, helper = runs_of(spans)

    assert ("planner", None, [("ask", CallCategory.AGENT)]) == calls_of(planner)
    assert ("helper", "planner", [("get", CallCategory.FUNCTION)]) == calls_of(helper)


def test_a_model_that_a_tool_asks_for_its_own_agent_makes_no_run() -> None:
    spans = [
        span(1, None, "outermost", {}),
        chat(2, 1, "planner", (1, 5)),
        span(3, 1, "execute_tool", TOOL, at=(6, 50)),
        chat(4, 3, "planner", (7, 9)),
    ]

    assert [("planner", None, [("get", CallCategory.FUNCTION)])] == [calls_of(run) for run in runs_of(spans)]


def test_an_agent_without_a_name_is_called_as_its_service() -> None:
    (run,) = runs_of([span(1, None, "invoke_agent", {**AGENT, "gen_ai.agent.name": "Unnamed Agent"})])

    assert "demo" == run.agent.name


OLDER: JsonObject = {"target": "rig::agent::prompt_request"}


def test_of_an_older_version_a_run_without_calls_is_not_known_to_have_made_none() -> None:
    chat: JsonObject = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": "80 percent"}
    turn = span(2, 1, "chat", chat, at=(1, 9))
    newest = {**AGENT, "target": "rig_agent::agent::telemetry"}

    (run,) = runs_of([span(1, None, "invoke_agent", {**AGENT, **OLDER}), turn])
    (newer,) = runs_of([span(1, None, "invoke_agent", newest), turn])

    assert (False, "content_not_captured") == (run.complete, run.incomplete_reason)
    assert newer.complete


@pytest.mark.parametrize(
    ("result", "target", "failed"),
    [
        ("Toolset error: ToolCallError: kaput", "rig::agent::prompt_request", True),
        ("Toolset error: ToolCallError: kaput", "app::tools", False),
        ("21", "rig::agent::prompt_request", False),
    ],
)
def test_of_an_older_version_the_text_of_a_result_tells_that_a_call_failed(
    result: str, target: str, failed: bool
) -> None:
    called = {key: value for key, value in TOOL.items() if not key.endswith("outcome")}
    called |= {"target": target, "gen_ai.tool.call.result": result}
    (run,) = runs_of([span(1, None, "handle", {}), span(2, 1, "execute_tool", called, at=(1, 2))])

    assert [ToolError(type="", message=result) if failed else None] == [call.error for call in run.tool_calls]
