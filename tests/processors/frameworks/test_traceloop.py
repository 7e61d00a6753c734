"""OpenLLMetry in all its forms: graphs, SDKs, tool servers, decorators, flattened messages."""

import json
from collections.abc import Mapping

import pytest

from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.evaluators.tool_calls import ToolCallCount, ToolCallCountConfig, ToolCallCountCriteria
from processors.model import (
    CallCategory,
    JsonObject,
    JsonValue,
    NotEvaluatedReason,
    Outcome,
    ToolCall,
    ToolError,
    ValueState,
)
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

PROPERTY = "traceloop.association.properties."


def kind(name: str, entity: str = "", **more: JsonValue) -> JsonObject:
    fields: JsonObject = {"traceloop.span.kind": name, **more}
    return {**fields, "traceloop.entity.name": entity} if entity else fields


def call_of(fields: Mapping[str, JsonValue], name: str = "get.tool", **more: object) -> ToolCall:
    given: JsonObject = {**kind("tool", "get"), **fields}
    (run,) = runs_of(
        [
            span(1, None, "planner.agent", kind("agent", "planner")),
            span(2, 1, name, given, **more),  # type: ignore[arg-type]  # fields of a span by name
        ]
    )
    (call,) = run.tool_calls
    return call


def graph_input(inputs: JsonValue, call_id: str) -> str:
    return json.dumps(
        {
            "input_str": str(inputs),
            "tags": ["seq:step:1"],
            "metadata": {"lc_agent_name": "planner"},
            "inputs": inputs,
            "kwargs": {"color": "green", "name": None, "tool_call_id": call_id},
        }
    )


def graph_output(content: str, call_id: str, status: str = "success") -> str:
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": {"content": content, "type": "tool", "tool_call_id": call_id, "status": status},
    }
    return json.dumps({"output": message, "kwargs": {"tags": ["seq:step:1"]}})


def graph(name: str, agent: str = "planner", **more: JsonValue) -> JsonObject:
    return {PROPERTY + "lc_agent_name": agent, PROPERTY + "thread_id": "th1", **more, **kind("task", name)}


def graph_tool(number: int, parent: int, name: str, call_id: str, at: int, agent: str = "planner") -> RawSpan:
    told: JsonObject = {
        **graph(name, agent),
        "traceloop.span.kind": "tool",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": graph_input({"city": "Oslo"}, call_id),
        "gen_ai.tool.call.result": graph_output('{"t": 25.0}', call_id),
        "traceloop.entity.input": graph_input({"city": "Oslo"}, call_id),
    }
    return span(number, parent, f"execute_tool {name}", told, at=(at, at + 5))


def graph_run(scope: str = "") -> list[RawSpan]:
    """A graph's agent that asks another one through a tool, as the instrumentation for graphs shows it."""
    invoked: JsonObject = {"gen_ai.operation.name": "invoke_agent"}
    asked = json.dumps({"inputs": {"messages": [["user", "Weather?"]]}, "tags": [], "kwargs": {}})
    answer = {
        "lc": 1,
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": "Cold.", "type": "ai"},
    }
    of = envelope(scope=scope)
    workflow: JsonObject = {
        **graph("planner"),
        **invoked,
        **kind("workflow", "planner"),
        "gen_ai.agent.name": "planner",
        "gen_ai.agent.id": "01a20094-44b2-77eb-8ace-ccfa3a4f1d90",
        "traceloop.entity.input": asked,
        "traceloop.entity.output": json.dumps({"outputs": {"messages": [answer]}, "kwargs": {}}),
    }
    spans = [
        span(1, None, "invoke_agent planner", {**invoked, "gen_ai.agent.name": "planner"}, at=(0, 100)),
        span(2, 1, "planner.workflow", workflow, at=(1, 99)),
        span(
            3,
            2,
            "execute_task tools",
            graph("tools", **{"gen_ai.operation.name": "execute_task"}),
            at=(10, 20),
        ),
        graph_tool(4, 3, "get_temperature", "c1", 11),
        span(
            5,
            2,
            "execute_task tools",
            graph("tools", **{"gen_ai.operation.name": "execute_task"}),
            at=(30, 60),
        ),
        graph_tool(6, 5, "ask_billing", "c2", 31),
        span(7, 6, "invoke_agent billing", {**invoked, "gen_ai.agent.name": "billing"}, at=(32, 36)),
        span(8, 6, "execute_task billing", graph("billing", "billing"), at=(33, 35)),
        graph_tool(9, 8, "get_balance", "c1", 34, "billing"),
    ]
    return [(number, raw, of) for number, raw, _ in spans]


def test_a_graphs_agents_are_one_run_each_with_their_own_calls() -> None:
    planner, billing = runs_of(graph_run())

    assert [("planner", None), ("billing", "planner")] == [
        (run.agent.name, run.parent_agent) for run in (planner, billing)
    ]
    assert ("Weather?", "Cold.", "th1", None) == (
        planner.input,
        planner.output,
        planner.session,
        planner.agent.id,
    )
    assert [("get_temperature", CallCategory.FUNCTION), ("ask_billing", CallCategory.AGENT)] == [
        (call.name, call.category) for call in planner.tool_calls
    ]
    assert ["get_balance"] == [call.name for call in billing.tool_calls]


def test_arguments_and_results_of_a_graphs_tool_come_out_of_their_envelopes() -> None:
    call = runs_of(graph_run())[0].tool_calls[0]

    assert ("c1", {"city": "Oslo"}, {"t": 25.0}, None) == (
        call.call_id,
        call.arguments,
        call.result,
        call.error,
    )


def test_the_printed_input_of_a_graphs_tool_stands_in_for_missing_inputs() -> None:
    told = json.dumps({"input_str": "{'city': 'Oslo'}", "tags": [], "inputs": None, "kwargs": {}})

    assert {"city": "Oslo"} == call_of({"gen_ai.tool.call.arguments": told}).arguments


def test_a_handled_error_of_a_graphs_tool_stands_in_the_envelope_alone() -> None:
    call = call_of(
        {
            "gen_ai.tool.call.result": graph_output("no such city", "c1", "error"),
            "gen_ai.task.status": "success",
        }
    )

    assert ToolError(type="", message="no such city") == call.error


def test_a_graphs_tool_that_raised_failed() -> None:
    call = call_of(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.task.status": "failure",
            "error.type": "ValueError",
        },
        status=(STATUS_ERROR, "kaput"),
        events=[("exception", {"exception.type": "ValueError", "exception.message": "kaput"})],
    )

    assert ToolError(type="ValueError", message="kaput") == call.error


def test_the_error_of_an_sdk_stands_in_the_description_of_the_status() -> None:
    description = (
        "{'message': 'Error running tool (non-fatal)', 'data': {'tool_name': 'get', 'error': 'kaput'}}"
    )

    call = call_of({"gen_ai.tool.call.result": "An error occurred."}, status=(STATUS_ERROR, description))

    assert ToolError(type="", message="kaput") == call.error


@pytest.mark.parametrize(
    ("output", "result", "text", "error"),
    [
        ("status='success' result={'t': 25.0} error=None updated_session_state=None images=None", {"t": 25.0},
         "{'t': 25.0}", None),
        ("status='success' result='two error=None' error=None updated_session_state=None", "two error=None",
         "two error=None", None),
        ("status='success' result='it\\'s' error=None", "it's", "it's", None),
        ("status='failure' result=None error='boom' updated_session_state=None images=None", None, None,
         ToolError(type="", message="boom")),
    ],
)  # fmt: skip
def test_a_printed_outcome_tells_the_result_or_why_there_is_none(
    output: str, result: JsonValue, text: str | None, error: ToolError | None
) -> None:
    call = call_of({"traceloop.entity.output": output}, status=(1, ""))

    assert (result, text, error) == (call.result, call.result_text, call.error)


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('{"args": ["Oslo"], "kwargs": {"days": 2}}', {"$args": ["Oslo"], "days": 2}),
        ('{"args": [], "kwargs": {"city": "Oslo"}}', {"city": "Oslo"}),
        ('{"city": "Oslo"}', {"city": "Oslo"}),
    ],
)
def test_a_decorated_function_tells_its_arguments(given: str, arguments: JsonValue) -> None:
    call = call_of({"traceloop.entity.input": given, "traceloop.entity.output": '"done"'})

    assert (arguments, "done") == (call.arguments, call.result)


def test_a_decorated_workflow_tells_the_session_and_what_it_was_asked() -> None:
    properties: JsonObject = {PROPERTY + "session_id": "s1"}
    asked: JsonObject = {"traceloop.entity.input": '{"args": ["Weather?"], "kwargs": {}}'}
    spans = [
        span(1, None, "main.workflow", {**kind("workflow", "main_flow"), **properties, **asked}),
        span(
            2, 1, "get.tool", kind("tool", "get", **{"traceloop.entity.input": '{"args": [], "kwargs": {}}'})
        ),
    ]

    (run,) = runs_of(spans)

    assert ("main_flow", "s1", "Weather?") == (run.agent.name, run.session, run.input)
    assert [("get", {})] == [(call.name, call.arguments) for call in run.tool_calls]


def test_a_protocol_clients_and_servers_spans_are_one_call() -> None:
    named = '{"tool_name": "get", "arguments": {"city": "Oslo"}}'
    client = kind("tool", "get", **{"traceloop.entity.input": named})
    failed: JsonObject = {
        "traceloop.entity.output": '{"result": "no", "is_error": true}',
        "error.type": "tool_error",
    }
    answered = '[{"type": "text", "content": "no"}]'
    server = kind("tool", "get", **{"traceloop.entity.input": named, "traceloop.entity.output": answered})
    spans = [
        span(1, None, "planner.agent", kind("agent", "planner")),
        span(2, 1, "get.tool", {**client, **failed}, at=(10, 20)),
        span(3, 2, "mcp.server", kind("server", "mcp.server"), at=(11, 19)),
        span(4, 3, "get.tool", server, at=(12, 18)),
    ]

    (call,) = runs_of(spans)[0].tool_calls

    assert (CallCategory.MCP, {"city": "Oslo"}, "no") == (call.category, call.arguments, call.result)
    assert ToolError(type="tool_error", message="no") == call.error


def test_a_servers_content_blocks_are_their_text() -> None:
    call = call_of(
        {
            "traceloop.entity.input": '{"tool_name": "get", "arguments": {}}',
            "traceloop.entity.output": '[{"type": "text", "content": "{\\"t\\": 1}"}]',
        }
    )

    assert ({}, {"t": 1}) == (call.arguments, call.result)


def test_a_workflow_step_that_calls_a_tool_is_a_call() -> None:
    output = {"blocks": [], "tool_name": "get", "raw_input": {}, "raw_output": "cold", "is_error": False}
    step: JsonObject = {
        **kind("task", "call_tool.task"),
        "tool.name": "get",
        "tool.arguments": '{"city": "Oslo"}',
        "traceloop.entity.input": '{"ctx": {}, "ev": {}}',
        "traceloop.entity.output": json.dumps(
            {
                "tool_name": "get",
                "tool_kwargs": {},
                "tool_id": "c1",
                "tool_output": output,
                "return_direct": False,
            }
        ),
    }
    spans = [
        span(1, None, "FunctionAgent.workflow", kind("workflow", "FunctionAgent.workflow")),
        span(2, 1, "call_tool.task", step),
        span(3, 2, "FunctionTool.task", kind("task", "FunctionTool.task")),
    ]

    (run,) = runs_of(spans)

    assert [("get", "c1", {"city": "Oslo"}, "cold", False)] == [
        (call.name, call.call_id, call.arguments, call.result, call.lenient_values) for call in run.tool_calls
    ]


def test_an_agent_whose_turns_have_flattened_messages_is_read_without_any_tool_span() -> None:
    first: JsonObject = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Weather?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "get",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"city": "Oslo"}',
        "llm.request.functions.0.name": "get",
        "llm.request.functions.0.parameters": '{"type": "object"}',
    }
    second: JsonObject = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "tool",
        "gen_ai.prompt.0.content": "cold",
        "gen_ai.prompt.0.tool_call_id": "c1",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "It is cold.",
    }
    spans = [
        span(1, None, "planner.agent", kind("agent", "planner"), at=(0, 100)),
        span(2, 1, "openai.chat", first, at=(1, 10)),
        span(3, 1, "openai.chat", second, at=(20, 30)),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "It is cold.", {"get": {"type": "object"}}) == (
        run.agent.name,
        run.input,
        run.output,
        dict(run.available_tools or {}),
    )
    assert [("get", "c1", {"city": "Oslo"}, "cold")] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_an_agents_span_that_also_tells_its_model_is_a_run() -> None:
    fields: JsonObject = {
        **kind("agent"),
        "gen_ai.agent.name": "planner",
        "gen_ai.request.model": "m",
        "traceloop.entity.input": "Weather?",
        "traceloop.entity.output": "Cold.",
    }

    (run,) = runs_of([span(1, None, "planner.agent", fields)])

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)


@pytest.mark.parametrize(
    ("after", "name"),
    [("Support", "Planner → Support"), (None, "Planner → unknown")],
    ids=["known", "unknown"],
)
def test_a_handoff_whose_target_was_not_known_yet_is_to_the_agent_that_took_over(
    after: str | None, name: str
) -> None:
    fields: JsonObject = {**kind("handoff"), "gen_ai.handoff.from_agent": "Planner"}
    spans = [
        span(1, None, "Agent Workflow", kind("workflow"), at=(0, 100)),
        span(2, 1, "Planner.agent", {**kind("agent"), "gen_ai.agent.name": "Planner"}, at=(1, 30)),
        span(3, 2, "Planner → unknown.handoff", fields, at=(20, 21)),
    ]
    if after:
        spans.append(span(4, 1, f"{after}.agent", {**kind("agent"), "gen_ai.agent.name": after}, at=(31, 90)))

    assert [name] == [call.name for call in runs_of(spans)[0].tool_calls]


def test_a_handoff_is_no_function() -> None:
    fields: JsonObject = {
        **kind("handoff"),
        "gen_ai.operation.name": "handoff",
        "gen_ai.handoff.from_agent": "Planner",
    }
    spans = [
        span(1, None, "Planner.agent", kind("agent", "Planner")),
        span(2, 1, "Planner → Support.handoff", fields),
    ]

    assert [("Planner → Support", CallCategory.HANDOFF)] == [
        (call.name, call.category) for call in runs_of(spans)[0].tool_calls
    ]


def test_a_workflow_that_nobody_named_has_the_services_name() -> None:
    spans = [
        span(1, None, "LangGraph.workflow", kind("workflow", "LangGraph")),
        span(2, 1, "get.tool", kind("tool", "get")),
    ]

    assert ["demo"] == [run.agent.name for run in runs_of(spans)]


def test_values_that_were_not_captured_are_not_made_up() -> None:
    call = call_of({})

    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


def test_neither_scope_names_nor_other_conventions_change_what_is_read() -> None:
    assert_conditions_change_nothing(graph_run)


def test_a_graph_that_nobody_named_has_the_services_name() -> None:
    invoked: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "LangGraph"}

    (run,) = runs_of(
        [
            span(1, None, "invoke_agent LangGraph", {**invoked, **kind("workflow", "LangGraph")}),
            span(2, 1, "get.tool", {**kind("tool", "get"), "gen_ai.tool.name": "get"}, at=(1, 2)),
        ]
    )

    assert "demo" == run.agent.name


def test_a_crews_task_tells_what_its_agent_was_asked_and_answered() -> None:
    task: JsonObject = {
        **kind("task"),
        "gen_ai.operation.name": "invoke_agent",
        "crewai.task.agent": "planner",
        "crewai.task.description": "Weather?",
        "traceloop.entity.output": "Cold.",
    }
    agent: JsonObject = {
        **kind("agent"),
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        "crewai.agent.tools": '[{"name": "get", "description": "Gets."}]',
    }
    crew: JsonObject = {"gen_ai.operation.name": "invoke_agent", "crewai.crew.name": "crew"}

    (run,) = runs_of(
        [
            span(1, None, "crewai.workflow", crew),
            span(2, 1, "Weather?.task", task, at=(1, 90)),
            span(3, 2, "planner.agent", agent, at=(2, 80)),
        ]
    )

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert ["get"] == list(run.available_tools or ())


def test_a_crew_whose_calls_nobody_tells_is_not_graded_as_if_it_had_made_none() -> None:
    task = {**kind("task"), "gen_ai.operation.name": "invoke_agent", "crewai.task.agent": "planner"}
    (run,) = runs_of([span(1, None, "Weather?.task", task)])
    counts = ToolCallCount(ToolCallCountConfig(), ToolCallCountCriteria(tool_calls_count={"get": ("=", 1)}))
    forbidden = ToolCallCount(
        ToolCallCountConfig(), ToolCallCountCriteria(tool_calls_count={"get": (">=", 0)})
    )

    results = evaluate_run(run, [Evaluation(name="x", evaluator=found) for found in (counts, forbidden)])

    assert [
        (Outcome.NOT_EVALUATED, NotEvaluatedReason.CONTENT_NOT_CAPTURED),
        (Outcome.PASS, None),
    ] == [(result.outcome, result.reason) for result in results]


def test_a_crew_with_a_span_for_its_call_is_graded() -> None:
    task = {**kind("task"), "gen_ai.operation.name": "invoke_agent", "crewai.task.agent": "planner"}
    called = {**kind("tool", "get"), "gen_ai.tool.name": "get"}

    (run,) = runs_of([span(1, None, "Weather?.task", task), span(2, 1, "get.tool", called, at=(1, 2))])

    assert run.complete
    assert ["get"] == [call.name for call in run.tool_calls]


def agent_workflow(*told: str, kind_of_agent: str = "FunctionAgent") -> list[RawSpan]:
    """An agent that runs as a workflow of steps, whose name stands only in what steps put out."""
    steps = [
        span(
            number,
            1,
            "BaseWorkflowAgent.task",
            {**kind("task", "BaseWorkflowAgent.task"), "traceloop.entity.output": text},
            at=(number, number + 1),
        )
        for number, text in enumerate(told, 2)
    ]
    call: JsonObject = {
        **kind("task", "BaseWorkflowAgent.task"),
        "tool.name": "get",
        "tool.arguments": '{"city": "Oslo"}',
    }
    name = f"{kind_of_agent}.workflow"
    return [
        span(1, None, name, kind("workflow", name)),
        *steps,
        span(90, 1, "BaseWorkflowAgent.task", call, at=(40, 50)),
    ]


@pytest.mark.parametrize(
    ("told", "name"),
    [
        (['{"input": [], "current_agent_name": "weather"}'], "weather"),
        (
            [
                '{"input": [], "current_agent_name": "weather"}',
                '{"result": {"response": {}, "current_agent_name": "weather"}}',
            ],
            "weather",
        ),
        (['{"current_agent_name": "weather"}', '{"result": {"current_agent_name": null}}'], "weather"),
        ([], "demo"),
    ],
    ids=["a step", "a step and the result", "a result without a name", "nothing captured"],
)
def test_an_agent_that_runs_as_a_workflow_is_named_by_its_steps(told: list[str], name: str) -> None:
    (run,) = runs_of(agent_workflow(*told))

    assert (name, ["get"]) == (run.agent.name, [made.name for made in run.tool_calls])


def test_agents_that_hand_over_within_a_workflow_are_runs_of_their_own() -> None:
    def step(number: int, at: tuple[int, int], **told: JsonValue) -> RawSpan:
        named = {**kind("task", "AgentWorkflow.task"), "traceloop.entity.output": json.dumps(told)}
        return span(number, 1, "AgentWorkflow.task", named, at=at)

    def called(number: int, at: tuple[int, int], name: str) -> RawSpan:
        fields: JsonObject = {**kind("task", "AgentWorkflow.task"), "tool.name": name}
        return span(number, 1, "AgentWorkflow.task", {**fields, "tool.arguments": "{}"}, at=at)

    answer: JsonObject = {"role": "assistant", "blocks": [{"block_type": "text", "text": "Cold."}]}
    stopped: JsonObject = {"result": {"response": answer, "current_agent_name": "weather", "tool_calls": []}}
    root = {**kind("workflow", "AgentWorkflow.workflow"), "traceloop.entity.output": json.dumps(stopped)}

    first, second = runs_of(
        [
            span(1, None, "AgentWorkflow.workflow", root, at=(0, 100)),
            step(2, (1, 3), input=[], current_agent_name="triage"),
            step(3, (4, 5), input=[], current_agent_name="triage"),
            called(4, (10, 20), "look_up"),
            called(5, (12, 14), "handoff"),
            step(6, (21, 22), input=[], current_agent_name="weather"),
            step(7, (23, 24), input=[], current_agent_name="weather"),
            called(8, (30, 40), "get"),
            step(9, (50, 60), **stopped),
        ]
    )

    assert ("triage", ["look_up", "handoff"], None) == (
        first.agent.name,
        [call.name for call in first.tool_calls],
        first.output,
    )
    assert CallCategory.HANDOFF is first.tool_calls[1].category
    assert ("weather", ["get"], "Cold.") == (
        second.agent.name,
        [call.name for call in second.tool_calls],
        second.output,
    )


def test_a_workflow_with_a_name_of_its_own_keeps_it() -> None:
    (run,) = runs_of(agent_workflow(kind_of_agent="Planner"))

    assert "Planner" == run.agent.name


def test_a_span_that_is_named_after_the_class_of_its_tool_gets_the_name_from_the_answer() -> None:
    answer = json.dumps(
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain_core", "messages", "ToolMessage"],
            "kwargs": {"status": "success", "content": '{"t": 1}', "tool_call_id": "c1", "name": "get"},
        }
    )
    fields: JsonObject = {
        **kind("task", "DynamicStructuredTool"),
        "gen_ai.operation.name": "execute_tool",
        "traceloop.entity.input": '{"args": ["{\\"city\\": \\"Oslo\\"}"]}',
        "traceloop.entity.output": answer,
    }

    (run,) = runs_of(
        [span(1, None, "root", {}), span(2, 1, "execute_tool DynamicStructuredTool", fields, at=(5, 9))]
    )

    assert [("get", "c1", {"city": "Oslo"}, {"t": 1})] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_parts_of_chains_that_javascript_reports_as_workflows_are_no_runs() -> None:
    javascript = envelope(scope="@traceloop/instrumentation-langchain")
    chain = kind("workflow", **{"traceloop.workflow.name": "RunnableSequence"})
    spans = [
        span(1, None, "POST /chat", {}, of=javascript),
        span(2, 1, "workflow RunnableSequence", chain, at=(1, 3), of=javascript),
        span(3, 1, "execute_tool get", kind("tool", "get"), at=(5, 9), of=javascript),
    ]

    (run,) = runs_of(spans)

    assert ["get"] == [call.name for call in run.tool_calls]


def test_content_blocks_that_were_written_as_a_text_are_read_as_blocks() -> None:
    told: JsonObject = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": '[{"type": "text", "text": "Weather?"}]',
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": '[{"type": "text", "text": "Cold."}]',
    }
    spans = [
        span(1, None, "planner.agent", kind("agent", "planner"), at=(0, 90)),
        span(2, 1, "cohere.chat", told, at=(10, 20)),
    ]

    (run,) = runs_of(spans)

    assert ("Weather?", "Cold.") == (run.input, run.output)


def test_a_team_is_the_agent_above_its_members() -> None:
    team = kind("workflow", **{"agno.team.name": "boss", "traceloop.entity.input": "Weather?"})
    member = kind("agent", **{"gen_ai.agent.name": "humid"})

    boss, humid = runs_of(
        [
            span(1, None, "boss.team", team, at=(0, 100)),
            span(2, 1, "delegate_task_to_member.tool", kind("tool", "delegate_task_to_member"), at=(5, 6)),
            span(3, 1, "humid.agent", member, at=(10, 90)),
            span(4, 3, "get.tool", kind("tool", "get"), at=(20, 30)),
        ]
    )

    assert ("boss", "Weather?") == (boss.agent.name, boss.input)
    assert [CallCategory.AGENT] == [call.category for call in boss.tool_calls]
    assert ("humid", "boss") == (humid.agent.name, humid.parent_agent)


def test_a_printed_outcome_without_a_value_is_null() -> None:
    printed = "status='success' result=None error=None updated_session_state=None images=None"

    call = call_of({"traceloop.entity.output": printed})

    assert (None, ValueState.PRESENT) == (call.result, call.result_state)


def test_a_call_without_arguments_is_told_by_the_result_alone_where_empty_ones_are_left_out() -> None:
    printed = "status='success' result='cold' error=None updated_session_state=None images=None"

    told = call_of({"gen_ai.system": "agno", "traceloop.entity.output": printed})
    hidden = call_of({"gen_ai.system": "agno"})

    assert ({}, ValueState.PRESENT) == (told.arguments, told.arguments_state)
    assert ValueState.ABSENT is hidden.arguments_state


def test_a_step_whose_tool_does_not_exist_fails_with_what_the_model_was_told() -> None:
    output: JsonObject = {
        "blocks": [{"block_type": "text", "text": "Tool get not found."}],
        "tool_name": "get",
        "raw_input": {},
        "raw_output": None,
        "is_error": True,
    }
    step: JsonObject = {
        **kind("task", "call_tool.task"),
        "tool.name": "get",
        "tool.arguments": "{}",
        "traceloop.entity.output": json.dumps({"tool_name": "get", "tool_id": "c1", "tool_output": output}),
    }

    (call,) = runs_of([span(1, None, "call_tool.task", step)])[0].tool_calls

    assert ToolError(type="", message="Tool get not found.") == call.error


def test_messages_of_its_go_sdk_tell_the_calls_and_their_results() -> None:
    def turn(number: int, at: tuple[int, int], **messages: JsonValue) -> RawSpan:
        told: JsonObject = {"llm.vendor": "openai", "llm.request.type": "chat", "llm.request.model": "m"}
        told |= {f"llm.{key.replace('__', '.')}": value for key, value in messages.items()}
        return span(number, 1, "openai.chat", told, at=at)

    asked: JsonObject = {
        "completions__0__role": "assistant",
        "completions__0__content": "",
        "completions__0__tool_calls__0__id": "c1",
        "completions__0__tool_calls__0__type": "function",
        "completions__0__tool_calls__0__name": "get",
        "completions__0__tool_calls__0__arguments": '{"city": "Oslo"}',
    }
    question: JsonObject = {"prompts__0__role": "user", "prompts__0__content": "Weather?"}
    result: JsonObject = {"prompts__2__role": "tool", "prompts__2__content": "cold"}
    request = {key.replace("completions__0", "prompts__1"): value for key, value in asked.items()}
    answer: JsonObject = {"completions__0__role": "assistant", "completions__0__content": "It is cold."}
    workflow = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "planner"}
    spans = [
        span(1, None, "planner.workflow", workflow),
        turn(2, (1, 5), **question, **asked),
        turn(3, (10, 15), **question, **request, **result, **answer),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "It is cold.") == (run.agent.name, run.input, run.output)
    assert [("get", "c1", {"city": "Oslo"}, "cold")] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]
