"""Agent SDK for Go: Langfuse attributes, on spans that tell the agent and a tool's error otherwise."""

from processors.model import JsonObject, ToolError
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span


def run(number: int, parent: int | None, agent: str, at: tuple[int, int]) -> RawSpan:
    told: JsonObject = {
        "langfuse.trace.name": "agent.Run",
        "langfuse.session.id": "s1",
        "langfuse.observation.metadata.agent_name": agent,
    }
    return span(number, parent, "agent.Run", told, at=at)


def tool(number: int, parent: int, at: tuple[int, int], error: str = "") -> RawSpan:
    result = f"Error: {error}" if error else '{"t":1}'
    told: JsonObject = {
        "langfuse.observation.type": "span",
        "langfuse.observation.input": '{"city":"Oslo"}',
        "langfuse.observation.output": result,
        "langfuse.observation.level": "error" if error else "info",
        "tool.name": "get",
        "tool.arguments": '{"city":"Oslo"}',
        "tool.result": result,
        **({"tool.error": error} if error else {}),
    }
    return span(number, parent, "get", told, at=at)


def test_a_run_is_named_by_its_metadata_and_a_call_fails_by_its_error() -> None:
    spans = [run(1, None, "planner", (0, 100)), tool(2, 1, (10, 20)), tool(3, 1, (30, 40), "kaput")]

    (made,) = runs_of(spans)

    assert ("planner", "s1") == (made.agent.name, made.session)
    assert [
        ("get", {"city": "Oslo"}, None),
        ("get", {"city": "Oslo"}, ToolError(type="", message="kaput")),
    ] == [(call.name, call.arguments, call.error) for call in made.tool_calls]
    assert {"t": 1} == made.tool_calls[0].result


def test_an_agent_within_another_has_a_run_of_its_own() -> None:
    inner = [run(2, 1, "helper", (10, 50)), tool(3, 2, (20, 30))]
    spans = [run(1, None, "planner", (0, 100)), *inner, tool(4, 1, (60, 70))]

    planner, helper = runs_of(spans)

    assert ("planner", None, 1) == (planner.agent.name, planner.parent_agent, len(planner.tool_calls))
    assert ("helper", "planner", 1) == (helper.agent.name, helper.parent_agent, len(helper.tool_calls))
