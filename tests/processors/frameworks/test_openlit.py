"""OpenLIT: the GenAI conventions with graphs, handoffs and results as it reports them."""

import pytest

from processors.model import CallCategory, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import agent, model, runs_of, span, tool

PRINTED = "content='{\"t\": 1}' name='get' tool_call_id='c1'"


def node(number: int, parent: int, name: str, at: tuple[int, int]) -> RawSpan:
    """A step of a graph, which is reported as if it were an agent."""
    return agent(number, parent, name, at, **{"gen_ai.provider.name": "langgraph", "gen_ai.agent.id": name})


def workflow(number: int, name: str) -> RawSpan:
    fields: dict[str, JsonValue] = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": name,
        "gen_ai.provider.name": "langgraph",
    }
    return span(number, None, f"invoke_workflow {name}", fields)


def test_a_node_of_a_graph_is_no_run() -> None:
    spans = [
        workflow(1, "planner"),
        agent(2, 1, "planner", (1, 90)),
        model(3, 2, (2, 5)),
        tool(4, 2, "get", (10, 20)),
        node(5, 1, "model", (2, 6)),
        node(6, 1, "model", (30, 40)),
    ]

    runs = runs_of(spans)

    assert [("planner", ["get"])] == [
        (run.agent.name, [made.name for made in run.tool_calls]) for run in runs
    ]


def test_an_agent_whose_id_is_its_name_is_a_run_elsewhere() -> None:
    (run,) = runs_of(
        [agent(1, None, "planner", (0, 100), **{"gen_ai.agent.id": "planner"}), tool(2, 1, "get")]
    )

    assert "planner" == run.agent.name


def test_an_agent_in_a_tool_of_a_graph_has_the_graph_as_its_parent() -> None:
    spans = [
        workflow(1, "planner"),
        node(2, 1, "model", (1, 5)),
        model(3, 2, (2, 4)),
        tool(4, 1, "ask", (10, 50)),
        agent(5, 4, "weather", (11, 49)),
        tool(6, 5, "get", (12, 20)),
    ]

    runs = runs_of(spans)

    assert [
        ("planner", None, [("ask", CallCategory.AGENT)]),
        ("weather", "planner", [("get", CallCategory.FUNCTION)]),
    ] == [
        (run.agent.name, run.parent_agent, [(made.name, made.category) for made in run.tool_calls])
        for run in runs
    ]


def test_a_printed_tool_message_is_opened() -> None:
    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "get", result=PRINTED)])

    assert [("c1", {"t": 1}, None)] == [(made.call_id, made.result, made.error) for made in run.tool_calls]


def test_a_printed_tool_message_tells_that_the_call_failed() -> None:
    printed = "content='boom' name='get' id='7' tool_call_id='c1' status='error'"

    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "get", result=printed)])

    assert [ToolError(type="", message="boom")] == [made.error for made in run.tool_calls]


@pytest.mark.parametrize(
    "text", ["content='a' and more", "content=a tool_call_id='c'", "the content='a' tool_call_id='c'"]
)
def test_a_result_that_only_looks_like_a_printed_message_stays_as_it_is(text: str) -> None:
    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "get", result=text)])

    assert [(text, ValueState.PRESENT)] == [(made.result, made.result_state) for made in run.tool_calls]


def test_an_agent_span_that_tells_where_it_comes_from_is_a_handoff() -> None:
    spans = [
        agent(1, None, "", (0, 100)),
        agent(2, 1, "triage", (1, 30)),
        agent(3, 2, "weather", (10, 11), **{"gen_ai.agent.source": "triage"}),
        agent(4, 1, "weather", (40, 90)),
        tool(5, 4, "get", (50, 60)),
    ]

    runs = runs_of(spans)

    assert [
        ("triage", [("handoff to weather", CallCategory.HANDOFF)]),
        ("weather", [("get", CallCategory.FUNCTION)]),
    ] == [(run.agent.name, [(made.name, made.category) for made in run.tool_calls]) for run in runs]


def test_a_tool_around_a_nameless_agent_around_a_named_one_is_an_agents_call() -> None:
    spans = [
        agent(1, None, "planner"),
        tool(2, 1, "ask", (10, 50)),
        agent(3, 2, "", (11, 49)),
        agent(4, 3, "weather", (12, 48)),
        tool(5, 4, "get", (13, 20)),
    ]

    runs = runs_of(spans)

    assert [("planner", None, CallCategory.AGENT), ("weather", "planner", CallCategory.FUNCTION)] == [
        (run.agent.name, run.parent_agent, run.tool_calls[0].category) for run in runs
    ]


def test_a_guardrail_is_no_agent_and_what_it_asks_is() -> None:
    spans = [
        agent(1, None, "planner"),
        agent(2, 1, "no_snow", (1, 20), **{"gen_ai.guardrail.triggered": False}),
        agent(3, 2, "judge", (2, 19)),
        tool(4, 1, "get", (30, 40)),
    ]

    runs = runs_of(spans)

    assert [("planner", None, ["get"]), ("judge", "planner", [])] == [
        (run.agent.name, run.parent_agent, [made.name for made in run.tool_calls]) for run in runs
    ]


def test_what_a_framework_asks_a_tool_server_is_no_call() -> None:
    spans = [
        agent(1, None, ""),
        tool(2, 1, "mcp_list_tools", (1, 5), arguments=None, result='["get"]'),
        agent(3, 1, "planner", (6, 90)),
        tool(4, 3, "mcp_list_tools", (7, 9), arguments=None, result='["get"]'),
        tool(5, 3, "get", (30, 40)),
    ]

    runs = runs_of(spans)

    assert [("planner", ["get"])] == [
        (run.agent.name, [made.name for made in run.tool_calls]) for run in runs
    ]


def test_a_team_that_is_reported_as_a_workflow_is_the_agent_above_its_members() -> None:
    team: dict[str, JsonValue] = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "boss",
        "gen_ai.agno.team.agents": ["humid"],
    }

    boss, humid = runs_of(
        [
            span(1, None, "invoke_workflow boss", team, at=(0, 100)),
            tool(2, 1, "get", at=(5, 6)),
            agent(3, 1, "humid", at=(10, 90)),
            tool(4, 3, "get_humidity", at=(20, 30)),
        ]
    )

    assert ("boss", None) == (boss.agent.name, boss.parent_agent)
    assert ("humid", "boss") == (humid.agent.name, humid.parent_agent)
    assert ["get"] == [call.name for call in boss.tool_calls]


def test_the_steps_of_a_flow_are_no_agents() -> None:
    crew: dict[str, JsonValue] = {"gen_ai.provider.name": "crewai"}
    step: dict[str, JsonValue] = {**crew, "gen_ai.operation.name": "invoke_agent"}

    (run,) = runs_of(
        [
            agent(1, None, "weather", at=(0, 100), **crew),
            span(2, 1, "invoke_workflow AgentExecutor", {**crew, "gen_ai.operation.name": "invoke_workflow"}),
            span(3, 2, "invoke_agent generate_plan", step, at=(10, 20)),
            span(4, 2, "invoke_agent call_llm_native_tools", step, at=(20, 30)),
        ]
    )

    assert "weather" == run.agent.name
    assert not run.complete  # its calls have no spans, so that none is no evidence
