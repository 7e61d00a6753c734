"""MLflow's native spans: every attribute value is JSON, texts in quotes."""

import json

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span

AGENT: JsonObject = {
    "mlflow.spanType": '"AGENT"',
    "mlflow.spanInputs": '{"messages": [{"role": "user", "content": "Weather?"}]}',
    "mlflow.spanOutputs": '"It is cold."',
}


def tool(number: int, name: str = "get", **more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "mlflow.spanType": '"TOOL"',
        "mlflow.spanInputs": '{"city": "Oslo"}',
        "mlflow.spanOutputs": '"done"',
        "mlflow.spanFunctionName": f'"{name}"',
        **more,
    }
    return span(number, 1, name, fields, at=(number * 10, number * 10 + 5))


def test_a_run_is_read_with_its_calls_in_order() -> None:
    (run,) = runs_of([span(1, None, "planner", AGENT, at=(0, 100)), tool(3, "second"), tool(2, "first")])

    assert ("planner", "Weather?", "It is cold.") == (run.agent.name, run.input, run.output)
    assert [("first", {"city": "Oslo"}, "done"), ("second", {"city": "Oslo"}, "done")] == [
        (made.name, made.arguments, made.result) for made in run.tool_calls
    ]


def test_the_quotes_around_the_type_may_be_missing() -> None:
    (run,) = runs_of([span(1, None, "planner", AGENT), tool(2, **{"mlflow.spanType": "TOOL"})])

    assert ["get"] == [made.name for made in run.tool_calls]


def test_a_tool_message_is_opened() -> None:
    message = '{"content": "cold", "type": "tool", "name": "get", "tool_call_id": "c1", "status": "success"}'

    (run,) = runs_of([span(1, None, "planner", AGENT), tool(2, **{"mlflow.spanOutputs": message})])

    assert [("c1", "cold")] == [(made.call_id, made.result) for made in run.tool_calls]


def test_a_failed_call_tells_why() -> None:
    failed = span(
        2,
        1,
        "get",
        {"mlflow.spanType": '"TOOL"'},
        status=(2, "boom"),
        events=[("exception", {"exception.type": "ValueError", "exception.message": "boom"})],
    )

    (run,) = runs_of([span(1, None, "planner", AGENT), failed])

    assert [ToolError(type="ValueError", message="boom")] == [made.error for made in run.tool_calls]


def test_missing_values_stay_unknown() -> None:
    bare = span(2, 1, "get", {"mlflow.spanType": '"TOOL"'})

    (run,) = runs_of([span(1, None, "planner", {"mlflow.spanType": '"AGENT"'}), bare])

    (made,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (made.arguments_state, made.result_state)


@pytest.mark.parametrize(
    "answer",
    [
        '{"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [{"id": "c1",'
        ' "type": "function", "function": {"name": "get", "arguments": "{\\"city\\": \\"Oslo\\"}"}}]}}]}',
        '{"generations": [[{"text": "", "message": {"content": "", "type": "ai", "tool_calls":'
        ' [{"name": "get", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}]}}]]}',
        '{"content": [{"type": "tool_use", "id": "c1", "name": "get", "input": {"city": "Oslo"}}],'
        ' "role": "assistant"}',
    ],
)
def test_calls_that_only_a_model_tells_are_built_from_its_answer(answer: str) -> None:
    model: JsonObject = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanOutputs": answer}

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "Completions", model, at=(1, 5))])

    assert [("get", "c1", {"city": "Oslo"})] == [
        (made.name, made.call_id, made.arguments) for made in run.tool_calls
    ]


def metadata(of: str, node: str = "") -> str:
    fields = {"lc_agent_name": of, "thread_id": "t1", **({"langgraph_node": node} if node else {})}
    return json.dumps(fields)


def native(kind: str, of: str, node: str = "") -> JsonObject:
    return {"mlflow.spanType": f'"{kind}"', "metadata": metadata(of, node)}


def conventional(operation: str, of: str, node: str = "", **more: JsonValue) -> JsonObject:
    return {"gen_ai.operation.name": operation, "metadata": metadata(of, node), **more}


NATIVE_GRAPH = [
    span(1, None, "planner", native("CHAIN", "planner")),
    span(2, 1, "tools", native("CHAIN", "planner", "tools"), at=(5, 60)),
    span(3, 2, "ask", native("TOOL", "planner", "tools"), at=(10, 50)),
    span(4, 3, "weather", native("CHAIN", "weather", "tools"), at=(11, 49)),
    span(5, 4, "tools", native("CHAIN", "weather", "tools"), at=(12, 40)),
    span(6, 5, "get", native("TOOL", "weather", "tools"), at=(13, 20)),
]
ASKED = '[{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}]'
CONVENTIONAL_GRAPH = [
    span(1, None, "CHAIN", conventional("CHAIN", "planner", **{"gen_ai.input.messages": ASKED})),
    span(2, 1, "CHAIN", conventional("CHAIN", "planner", "tools"), at=(5, 60)),
    span(
        3,
        2,
        "execute_tool ask",
        conventional("execute_tool", "planner", "tools", **{"gen_ai.tool.name": "ask"}),
        at=(10, 50),
    ),
    span(
        4,
        3,
        "CHAIN",
        conventional("CHAIN", "weather", "tools", **{"gen_ai.input.messages": ASKED}),
        at=(11, 49),
    ),
    span(5, 4, "CHAIN", conventional("CHAIN", "weather", "tools"), at=(12, 40)),
    span(
        6,
        5,
        "execute_tool get",
        conventional("execute_tool", "weather", "tools", **{"gen_ai.tool.name": "get"}),
        at=(13, 20),
    ),
]


@pytest.mark.parametrize("spans", [NATIVE_GRAPH, CONVENTIONAL_GRAPH], ids=["native", "conventions"])
def test_a_graph_is_the_run_of_the_agent_in_its_metadata(spans: list[RawSpan]) -> None:
    runs = runs_of(spans)

    assert [("planner", None, "t1", ["ask"]), ("weather", "planner", "t1", ["get"])] == [
        (run.agent.name, run.parent_agent, run.session, [made.name for made in run.tool_calls])
        for run in runs
    ]


def test_metadata_that_cannot_be_read_names_nobody() -> None:
    chain: JsonObject = {"mlflow.spanType": '"CHAIN"', "metadata": '{"lc_agent_name": "planner"'}

    (run,) = runs_of([span(1, None, "graph", chain, at=(0, 100)), tool(2)])

    assert "demo" == run.agent.name


def of_workflow(kind: str, given: JsonValue = None, made: JsonValue = None, **more: JsonValue) -> JsonObject:
    return {
        "mlflow.spanType": f'"{kind}"',
        "mlflow.spanInputs": json.dumps(given),
        "mlflow.spanOutputs": json.dumps(made),
        **{key: json.dumps(value) for key, value in more.items()},
    }


def step_of(agent: str) -> JsonObject:
    event: JsonObject = {"input": [], "current_agent_name": agent}
    return of_workflow("CHAIN", {"ctx": "<Context>", "ev": event}, event)


def shown_tool(name: str, *parameters: str, **given: JsonValue) -> JsonObject:
    made: JsonObject = {
        "blocks": [{"block_type": "text", "text": "done"}],
        "tool_name": name,
        "raw_input": {"args": [], "kwargs": {}},
        "raw_output": "done",
        "is_error": False,
    }
    shown: JsonObject = {"type": "object", "properties": {key: {"type": "string"} for key in parameters}}
    return of_workflow("TOOL", {"kwargs": given}, made, name=name, description="", parameters=shown)


def test_agents_that_hand_over_within_a_workflow_are_runs_of_their_own() -> None:
    asked: JsonObject = {"user_msg": "Weather?", "chat_history": None, "memory": None, "max_iterations": None}
    answer: JsonObject = {
        "role": "assistant",
        "additional_kwargs": {},
        "blocks": [{"block_type": "thinking", "content": "Hm."}, {"block_type": "text", "text": "Cold."}],
    }
    stopped: JsonObject = {"result": {"response": answer, "current_agent_name": "weather", "tool_calls": []}}
    handoff = shown_tool(
        "handoff", "to_agent", to_agent="weather", ctx="<workflows.context.context.Context object at 0x7fa4>"
    )
    streamed = of_workflow(
        "CHAT_MODEL", {"messages": []}, "<async_generator object chat.<locals>.gen at 0x7f>"
    )

    first, second = runs_of(
        [
            span(1, None, "AgentWorkflow.run", of_workflow("CHAIN", asked, stopped), at=(0, 100)),
            span(2, 1, "AgentWorkflow.setup_agent", step_of("triage"), at=(2, 3)),
            span(3, 1, "FunctionTool.acall", handoff, at=(10, 20)),
            span(4, 1, "AgentWorkflow.setup_agent", step_of("weather"), at=(30, 31)),
            span(5, 1, "FunctionTool.acall", shown_tool("get", "city", city="Oslo"), at=(40, 50)),
            span(6, 1, "MockLLM.astream_chat", streamed, at=(60, 70)),
        ]
    )

    assert ("triage", "Weather?", None) == (first.agent.name, first.input, first.output)
    assert [("handoff", {"to_agent": "weather"}, CallCategory.HANDOFF)] == [
        (made.name, made.arguments, made.category) for made in first.tool_calls
    ]
    assert ("weather", "Weather?", "Cold.") == (second.agent.name, second.input, second.output)
    assert [("get", {"city": "Oslo"}, "done", CallCategory.FUNCTION)] == [
        (made.name, made.arguments, made.result, made.category) for made in second.tool_calls
    ]
    assert [] == list(second.messages)


def test_a_workflow_of_an_own_class_is_known_by_the_agent_in_what_it_made() -> None:
    stopped: JsonObject = {"result": {"response": None, "current_agent_name": "planner"}}

    (run,) = runs_of(
        [
            span(1, None, "Weather.run", of_workflow("CHAIN", {}, stopped), at=(0, 100)),
            span(2, 1, "Weather.setup_agent", step_of("planner"), at=(2, 3)),
        ]
    )

    assert ("planner", stopped) == (run.agent.name, run.output)


def test_an_attribute_called_name_on_a_tool_that_is_not_described_is_not_its_name() -> None:
    named = span(2, 1, "get", of_workflow("TOOL", {"city": "Oslo"}, "done", name="other"), at=(5, 6))

    (run,) = runs_of([span(1, None, "planner", AGENT, at=(0, 100)), named])

    assert ["get"] == [made.name for made in run.tool_calls]


def handed_over(outermost: str) -> list[RawSpan]:
    """Two agents of an SDK in one run, whose own spans tell only the type of the answer."""
    turn = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Cold."}]}
    own: JsonObject = {"mlflow.spanType": '"AGENT"', "mlflow.spanOutputs": '{"output_type": "str"}'}
    chain: JsonObject = {"mlflow.spanType": '"CHAIN"'}
    answered: JsonObject = {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": '[{"role": "user", "content": "Weather?"}]',
        "mlflow.spanOutputs": json.dumps([turn]),
    }
    receiver: JsonObject = {
        "mlflow.spanInputs": '{"from_agent": "triage"}',
        "mlflow.spanOutputs": '{"to_agent": "weather"}',
    }
    return [
        span(1, None, outermost, AGENT, at=(0, 100)),
        span(2, 1, "Agent workflow", chain, at=(1, 99)),
        span(3, 2, "triage", own, at=(2, 40)),
        span(4, 3, "Handoff", {**chain, **receiver}, at=(10, 11)),
        span(5, 2, "weather", own, at=(41, 98)),
        span(6, 5, "Response", answered, at=(42, 50)),
    ]


@pytest.mark.parametrize("outermost", ["AgentRunner.run", "AgentRunner.run_streamed"])
def test_what_runs_the_agents_of_an_sdk_is_no_agent_and_a_handoff_is_a_call(outermost: str) -> None:
    runs = runs_of(handed_over(outermost))

    assert [("triage", None, None), ("weather", None, "Cold.")] == [
        (run.agent.name, run.parent_agent, run.output) for run in runs
    ]
    assert [[("handoff to weather", CallCategory.HANDOFF)], []] == [
        [(made.name, made.category) for made in run.tool_calls] for run in runs
    ]


def test_what_holds_several_runs_together_is_no_run() -> None:
    held: JsonObject = {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": '""', "mlflow.spanOutputs": '""'}
    spans = [span(1, None, "two runs", held), span(2, 1, "planner", AGENT), span(3, 1, "planner", AGENT)]

    assert [("planner", None)] * 2 == [(run.agent.name, run.parent_agent) for run in runs_of(spans)]


def test_what_runs_an_agent_within_another_agents_run_leaves_that_run_as_it_is() -> None:
    spans = [
        span(1, None, "planner", AGENT, at=(0, 100)),
        span(2, 1, "AgentRunner.run", {**AGENT, "mlflow.spanOutputs": '"Fine."'}, at=(1, 20)),
        span(3, 2, "judge", AGENT, at=(2, 19)),
    ]

    assert [("planner", None, "It is cold."), ("judge", "planner", "It is cold.")] == [
        (run.agent.name, run.parent_agent, run.output) for run in runs_of(spans)
    ]


def test_an_agents_span_that_tells_only_the_type_of_its_answer_has_no_output() -> None:
    own: JsonObject = {"mlflow.spanType": '"AGENT"', "mlflow.spanOutputs": '{"output_type": "str"}'}

    (run,) = runs_of([span(1, None, "planner", own), tool(2)])

    assert (None, ValueState.ABSENT) == (run.output, run.output_state)
