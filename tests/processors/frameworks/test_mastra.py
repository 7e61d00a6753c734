"""Mastra's exporter, of version 1 and of 0.3."""

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span


def agent(**more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "gen_ai.operation.name": "invoke_agent",
        "mastra.span.type": "agent_run",
        "gen_ai.agent.name": "Planner",
        "gen_ai.agent.id": "planner",
        "gen_ai.conversation.id": "t1",
        "mastra.agent_run.input": '[{"role": "user", "content": "Weather?"}]',
        "mastra.agent_run.output": '{"text": "It is cold.", "files": []}',
        **more,
    }
    return span(1, None, "invoke_agent Planner", fields, kind=Span.SPAN_KIND_SERVER)


def tool(kind: str = "tool_call", **more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "mastra.span.type": kind,
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
        "gen_ai.tool.call.result": '{"t":1}',
        **more,
    }
    return span(2, 1, "execute_tool get", fields, at=(10, 20))


def test_a_run_of_version_1_is_read_with_its_call() -> None:
    (run,) = runs_of([agent(), tool()])

    assert ("Planner", "planner", "t1", "Weather?", "It is cold.") == (
        run.agent.name,
        run.agent.id,
        run.session,
        run.input,
        run.output,
    )
    assert [("get", "c1", {"city": "Oslo"}, {"t": 1})] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("tool_call", CallCategory.FUNCTION),
        ("mcp_tool_call", CallCategory.MCP),
        ("provider_tool_call", CallCategory.SERVER),
    ],
)
def test_the_type_tells_what_kind_of_call_it_was(kind: str, category: CallCategory) -> None:
    assert [category] == [call.category for call in runs_of([agent(), tool(kind)])[0].tool_calls]


def test_an_error_has_its_id_and_its_message() -> None:
    failed = tool(**{"error.type": "TOOL_FAILED", "error.message": "boom"})

    assert [ToolError(type="TOOL_FAILED", message="boom")] == [
        call.error for call in runs_of([agent(), failed])[0].tool_calls
    ]


def test_arguments_in_messages_are_encoded_twice() -> None:
    answer = (
        '[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"get",'
        '"arguments":"\\"{\\\\\\"city\\\\\\":\\\\\\"Oslo\\\\\\"}\\""}]}]'
    )
    model: JsonObject = {
        "gen_ai.operation.name": "chat",
        "mastra.span.type": "model_generation",
        "gen_ai.output.messages": answer,
    }

    (run,) = runs_of([agent(), span(2, 1, "chat m", model, at=(1, 5))])

    assert [("get", "c1", {"city": "Oslo"})] == [
        (call.name, call.call_id, call.arguments) for call in run.tool_calls
    ]


def test_steps_and_chunks_are_no_calls() -> None:
    step: JsonObject = {"gen_ai.operation.name": "model_step", "mastra.span.type": "model_step"}

    (run,) = runs_of([agent(), span(3, 1, "step: 0", step, at=(1, 9)), tool()])

    assert ["get"] == [call.name for call in run.tool_calls]


OLD_AGENT: JsonObject = {
    "gen_ai.operation.name": "agent.run",
    "span.kind": "server",
    "mastra.span.type": "agent_run",
    "agent.id": "planner",
    "gen_ai.agent.id": "planner",
    "input": '[{"role":"user","content":"Weather?"}]',
    "output": '{"text":"It is cold."}',
}
OLD_TOOL: JsonObject = {
    "gen_ai.operation.name": "tool.execute",
    "mastra.span.type": "tool_call",
    "gen_ai.tool.name": "get",
    "gen_ai.tool.input": '{"city":"Oslo"}',
    "gen_ai.tool.output": '{"t":1}',
    "input": '{"city":"Oslo"}',
    "output": '{"t":1}',
    "gen_ai.tool.success": True,
}


def test_a_run_of_0_3_is_read_with_its_call() -> None:
    (run,) = runs_of([span(1, None, "agent.planner", OLD_AGENT), span(2, 1, "tool.execute get", OLD_TOOL)])

    assert ("planner", "Weather?", "It is cold.") == (run.agent.name, run.input, run.output)
    assert [("get", {"city": "Oslo"}, {"t": 1}, None)] == [
        (call.name, call.arguments, call.result, call.error) for call in run.tool_calls
    ]


def test_a_failure_of_0_3_is_told_by_a_flag() -> None:
    failed: JsonObject = {**OLD_TOOL, "gen_ai.tool.success": False, "gen_ai.tool.output": '"boom"'}

    (run,) = runs_of([span(1, None, "agent.planner", OLD_AGENT), span(2, 1, "tool.execute get", failed)])

    assert [ToolError(type="", message="boom")] == [call.error for call in run.tool_calls]


def test_missing_values_stay_unknown() -> None:
    bare: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "mastra.span.type": "tool_call",
        "gen_ai.tool.name": "get",
    }

    (run,) = runs_of([agent(), span(2, 1, "execute_tool get", bare)])

    (call,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


def test_arguments_that_were_refused_are_an_error() -> None:
    refused = '{"error":true,"message":"Tool input validation failed","validationErrors":{"errors":[]}}'

    (run,) = runs_of([agent(), tool(**{"gen_ai.tool.call.result": refused})])

    assert [ToolError(type="", message="Tool input validation failed")] == [
        call.error for call in run.tool_calls
    ]


def test_an_object_with_an_error_that_a_tool_returned_is_its_result() -> None:
    (run,) = runs_of([agent(), tool(**{"gen_ai.tool.call.result": '{"error":true,"message":"none"}'})])

    assert [None] == [call.error for call in run.tool_calls]


def test_calls_of_one_generation_are_parallel_only_where_they_overlap() -> None:
    generation: JsonObject = {"gen_ai.operation.name": "chat", "mastra.span.type": "model_generation"}
    spans = [
        span(1, None, "agent.planner", OLD_AGENT),
        span(2, 1, "chat m", generation, at=(1, 90)),
        span(3, 2, "step: 0", {"mastra.span.type": "model_step"}, at=(2, 40)),
        span(4, 3, "tool.execute get", OLD_TOOL, at=(10, 20)),
        span(5, 2, "step: 1", {"mastra.span.type": "model_step"}, at=(41, 80)),
        span(6, 5, "tool.execute get", OLD_TOOL, at=(50, 60)),
    ]

    (run,) = runs_of(spans)

    assert [None, None] == [call.parallel_group for call in run.tool_calls]


def test_what_its_server_was_asked_to_run_is_part_of_the_call_that_asked() -> None:
    asked: JsonObject = {
        "gen_ai.operation.name": "mcp_server_request",
        "mastra.span.type": "mcp_server_request",
        "mcp.method.name": "tools/call",
        "mastra.mcp_server_request.target_name": "get",
    }
    server = span(3, 2, "mcp_server_request weather", asked, at=(11, 19), kind=Span.SPAN_KIND_SERVER)

    (run,) = runs_of([agent(), tool("mcp_tool_call"), server])

    assert ["get"] == [call.name for call in run.tool_calls]


def test_what_was_asked_stands_under_the_observation_with_the_exporter_for_langfuse() -> None:
    fields: JsonObject = {
        "gen_ai.operation.name": "invoke_agent",
        "mastra.span.type": "agent_run",
        "gen_ai.agent.name": "Planner",
        "langfuse.observation.input": '[{"role":"user","content":"Weather?"}]',
        "langfuse.observation.output": '{"text":"It is cold.","files":[]}',
    }

    (run,) = runs_of([span(1, None, "invoke_agent Planner", fields)])

    assert ("Weather?", "It is cold.") == (run.input, run.output)
