"""Tool calls over the Model Context Protocol: one call, however many spans report it."""

import json

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model.agent_run import CallCategory, ToolError
from processors.model.json_values import JsonObject, JsonValue
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, envelope, runs_of, span, tool

METHOD: JsonObject = {"mcp.method.name": "tools/call"}
NAMED: JsonObject = {**METHOD, "gen_ai.tool.name": "get", "gen_ai.operation.name": "execute_tool"}


def stack(*, failed: bool = False) -> list[RawSpan]:
    """What a protocol client, its SDK and a server make of one call under span 2."""
    error: JsonObject = {"error.type": "tool_error"} if failed else {}
    status = (2, "") if failed else (0, "")
    return [
        span(
            3, 2, "tools/call get", {**NAMED, **error}, at=(11, 19), kind=Span.SPAN_KIND_CLIENT, status=status
        ),
        span(4, 3, "MCP send tools/call get", METHOD, at=(12, 18), kind=Span.SPAN_KIND_CLIENT),
        span(
            5, 4, "tools/call get", {**NAMED, **error}, at=(13, 17), kind=Span.SPAN_KIND_SERVER, status=status
        ),
    ]


def test_four_spans_of_one_call_are_one_call() -> None:
    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "get", call_id="c1"), *stack()])

    assert [("get", "c1", CallCategory.MCP, None)] == [
        (call.name, call.call_id, call.category, call.error) for call in run.tool_calls
    ]


def test_an_error_that_only_the_protocol_tells_is_the_calls() -> None:
    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "get"), *stack(failed=True)])

    assert [ToolError(type="tool_error", message="")] == [call.error for call in run.tool_calls]


def test_a_server_in_the_callers_name_is_the_same_tool() -> None:
    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "mcp__weather__get"), *stack()])

    assert ["mcp__weather__get"] == [call.name for call in run.tool_calls]


def test_the_sdks_client_span_alone_is_named_by_its_span() -> None:
    sdk = span(2, 1, "MCP send tools/call get", {**METHOD, "jsonrpc.request.id": "3"}, at=(12, 18))

    (run,) = runs_of([agent(1, None, "planner"), sdk])

    assert [("get", CallCategory.MCP)] == [(call.name, call.category) for call in run.tool_calls]


def test_listing_and_discovery_are_no_calls() -> None:
    others = [
        span(number, 1, f"MCP send {method}", {"mcp.method.name": method}, at=(number, number + 1))
        for number, method in enumerate(["initialize", "tools/list", "server/discover", "ping"], start=2)
    ]

    (run,) = runs_of([agent(1, None, "planner"), *others])

    assert [] == list(run.tool_calls)


def test_a_server_alone_tells_of_no_agent() -> None:
    assert [] == runs_of([span(5, 99, "tools/call get", NAMED, kind=Span.SPAN_KIND_SERVER)])


def test_a_server_in_another_process_repeats_the_call_of_a_client_without_an_agent() -> None:
    client, server = envelope(service="weather-agent"), envelope(service="tool-server")
    error: JsonObject = {**NAMED, "error.type": "tool_error"}
    spans = [
        span(2, None, "MCP send tools/call get", METHOD, at=(10, 30), kind=Span.SPAN_KIND_CLIENT, of=client),
        span(3, 2, "tools/call get", error, at=(12, 28), kind=Span.SPAN_KIND_SERVER, of=server),
        span(4, 3, "tools/call get", NAMED, at=(14, 26), of=server),
    ]

    (run,) = runs_of(spans)

    assert ("weather-agent", [("get", ToolError(type="tool_error", message=""))]) == (
        run.agent.name,
        [(call.name, call.error) for call in run.tool_calls],
    )


@pytest.mark.parametrize(
    ("text", "structured", "result"),
    [
        ("11.5", {"result": 11.5}, 11.5),
        ("cold", {"result": "cold"}, "cold"),
        ('{"humidity": 81}', {"humidity": 81}, {"humidity": 81}),
        ("1\n2", {"result": [1, 2]}, {"result": [1, 2]}),
        ("see there", {"result": "other"}, {"result": "other"}),
    ],
)
def test_a_result_that_only_had_to_become_an_object_is_what_its_text_tells(
    text: str, structured: JsonObject, result: JsonValue
) -> None:
    answer: JsonObject = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": False,
    }

    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "get", result=json.dumps(answer))])

    assert [result] == [call.result for call in run.tool_calls]


def test_a_server_in_the_agents_process_repeats_the_calls_around_it_in_time() -> None:
    served: JsonObject = {**METHOD, "gen_ai.tool.name": "get"}
    spans = [
        agent(1, None, "planner"),
        tool(2, 1, "mcp__weather__get", (10, 20)),
        tool(3, 1, "mcp__weather__get", (10, 21)),
        span(4, 1, "tools/call get", served, at=(11, 12), kind=Span.SPAN_KIND_SERVER),
        span(5, 1, "tools/call get", served, at=(13, 14), kind=Span.SPAN_KIND_SERVER),
        span(6, 1, "tools/call get", served, at=(15, 16), kind=Span.SPAN_KIND_SERVER),
        span(7, 1, "tools/call put", {**METHOD, "gen_ai.tool.name": "put"}, kind=Span.SPAN_KIND_SERVER),
    ]

    names = sorted(call.name for call in runs_of(spans)[0].tool_calls)

    assert ["get", "mcp__weather__get", "mcp__weather__get", "put"] == names


def test_a_servers_view_of_a_sub_agents_call_is_no_call_of_the_agent_around_it() -> None:
    spans = [
        agent(1, None, "planner"),
        tool(2, 1, "ask", (10, 50)),
        agent(3, 2, "helper", (11, 49)),
        tool(4, 3, "mcp__weather__get", (20, 30)),
        span(
            5,
            1,
            "tools/call get",
            {**METHOD, "gen_ai.tool.name": "get"},
            at=(21, 29),
            kind=Span.SPAN_KIND_SERVER,
        ),
    ]

    assert [["ask"], ["mcp__weather__get"]] == [
        [call.name for call in run.tool_calls] for run in runs_of(spans)
    ]
