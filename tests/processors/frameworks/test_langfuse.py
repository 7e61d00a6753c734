"""Langfuse observations, as its decorators and callbacks write them."""

import pytest

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
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


def chain(number: int, parent: int | None, name: str, of: str, at: tuple[int, int]) -> RawSpan:
    """A chain as the callback for graphs reports it: texts in the metadata are JSON."""
    fields: JsonObject = {
        "langfuse.observation.type": "chain",
        "langfuse.observation.metadata.lc_agent_name": f'"{of}"',
        "langfuse.observation.metadata.thread_id": '"t1"',
    }
    return span(number, parent, name, fields, at=at)


def test_a_chain_named_after_its_agent_is_a_run_also_within_a_tool() -> None:
    spans = [
        chain(1, None, "planner", "planner", (0, 100)),
        chain(2, 1, "tools", "planner", (5, 60)),
        span(3, 2, "ask", TOOL, at=(10, 50)),
        chain(4, 3, "weather", "weather", (11, 49)),
        chain(5, 4, "tools", "weather", (12, 40)),
        span(6, 5, "get", TOOL, at=(13, 20)),
    ]

    runs = runs_of(spans)

    assert [("planner", None, "t1", ["ask"]), ("weather", "planner", "t1", ["get"])] == [
        (run.agent.name, run.parent_agent, run.session, [made.name for made in run.tool_calls])
        for run in runs
    ]


def test_the_nodes_of_a_graph_of_javascript_are_no_runs() -> None:
    metadata = "langfuse.observation.metadata."
    place = {f"{metadata}langgraph_checkpoint_ns": "tools:1", f"{metadata}checkpoint_ns": "tools:1"}
    node: JsonObject = {
        "langfuse.observation.type": "span",
        f"{metadata}lc_agent_name": "planner",
        f"{metadata}langgraph_node": "tools",
        f"{metadata}langgraph_path": '["__pregel_push",0,false]',
        "langfuse.observation.output": '{"messages":[{"content":"18","additional_kwargs":{},"role":"get"}]}',
        **place,
    }
    graph: JsonObject = {
        "langfuse.observation.type": "span",
        f"{metadata}lc_agent_name": "planner",
        "langfuse.observation.input": '{"messages":[{"role":"user","content":"Weather?"}]}',
        "langfuse.observation.output": '{"messages":[{"role":"user","content":"Weather?"},'
        '{"content":"18","additional_kwargs":{},"role":"get"},{"role":"assistant","content":"Cold."}]}',
    }
    tool: JsonObject = {**node, "langfuse.observation.type": "tool", "langfuse.observation.input": "{}"}
    spans = [
        span(1, None, "planner", graph),
        span(2, 1, "tools", node, at=(5, 20)),
        span(3, 2, "get", tool, at=(6, 19)),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "Cold.", ["get"]) == (
        run.agent.name,
        run.input,
        run.output,
        [call.name for call in run.tool_calls],
    )
