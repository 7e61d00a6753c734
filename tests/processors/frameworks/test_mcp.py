"""Tool calls over the Model Context Protocol: one call, however many spans report it."""

import json
from collections.abc import Callable

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model import AgentRun, CallCategory, FinishReason, JsonObject, JsonValue, ToolError
from processors.reconstruction import reconstruct
from processors.spans import RawSpan
from tests.processors.reconstruction.test_reconstruction_corpus import SCENARIOS, traces_of
from tests.support.agent_spans import MILLISECOND, agent, envelope, model, runs_of, span, tool

TOOLS = envelope(service="tool-server")
SHIFTS = pytest.mark.parametrize("shift", [-5000, -250, 0, 250, 5000])

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


def view(
    number: int, parent: int | None, at: tuple[int, int], *, name: str = "get", **more: JsonValue
) -> RawSpan:
    """A call as a tool server in another process saw it."""
    fields: JsonObject = {**METHOD, "gen_ai.tool.name": name, **more}
    return span(number, parent, f"tools/call {name}", fields, at=at, kind=Span.SPAN_KIND_SERVER, of=TOOLS)


def openllmetrys_view(number: int, parent: int | None, at: tuple[int, int]) -> list[RawSpan]:
    """The same as OpenLLMetry tells it of a FastMCP server: two spans, neither of them of a server's kind."""
    server: JsonObject = {"traceloop.span.kind": "server", "traceloop.entity.name": "mcp.server"}
    function: JsonObject = {"traceloop.span.kind": "tool", "traceloop.entity.name": "get"}
    return [
        span(number, parent, "mcp.server", server, at=at, of=TOOLS),
        span(number + 1, number, "get.tool", function, at=at, of=TOOLS),
    ]


def gateways_view(number: int, parent: int | None, at: tuple[int, int]) -> list[RawSpan]:
    """The same as a gateway tells it: the request that it got, and the call that it passed on."""
    http: JsonObject = {"http.request.method": "POST"}
    passed_on = span(number + 1, number, "tools/call get", NAMED, at=at, kind=Span.SPAN_KIND_CLIENT, of=TOOLS)
    return [span(number, parent, "POST /mcp", http, at=at, kind=Span.SPAN_KIND_SERVER, of=TOOLS), passed_on]


def shifted(spans: list[RawSpan], service: str, milliseconds: int, *, parents: bool) -> list[RawSpan]:
    """The spans with the clock of a service set otherwise, without what its spans lie below if told so."""
    moved = []
    for span_id, payload, of in spans:
        message = Span.FromString(payload)
        if of.service_name == service:
            message.start_time_unix_nano += milliseconds * MILLISECOND
            message.end_time_unix_nano += milliseconds * MILLISECOND
            if not parents:
                message.parent_span_id = bytes(range(8, 0, -1))
        moved.append((span_id, message.SerializeToString(), of))
    return moved


def calls_of(run: AgentRun) -> list[tuple[str, JsonValue, JsonValue, ToolError | None]]:
    return [(call.name, call.arguments, call.result, call.error) for call in run.tool_calls]


@SHIFTS
@pytest.mark.parametrize("parent", [1, 99], ids=["below the agent", "whose parent is lost"])
@pytest.mark.parametrize("server", ["", "mcp__weather__"])
def test_a_servers_clock_makes_no_call(shift: int, parent: int, server: str) -> None:
    spans = [
        agent(1, None, "planner", (6000, 9000)),
        tool(2, 1, f"{server}get", (8000, 8200), "c1", arguments='{"kind": "pod"}', result="p"),
        tool(3, 1, f"{server}get", (8400, 8600), "c2", arguments='{"kind": "svc"}', result="s"),
        view(4, parent, (8020 + shift, 8180 + shift)),
        view(5, parent, (8420 + shift, 8580 + shift)),
        span(6, 5, "get", {**METHOD, "gen_ai.tool.name": "get"}, at=(8430 + shift, 8570 + shift), of=TOOLS),
    ]

    (run,) = runs_of(spans)

    assert [("c1", "p"), ("c2", "s")] == [(call.call_id, call.result) for call in run.tool_calls]


@SHIFTS
@pytest.mark.parametrize("viewed", [openllmetrys_view, gateways_view])
@pytest.mark.parametrize("parent", [1, 99], ids=["below the agent", "whose parent is lost"])
def test_another_view_of_a_server_or_a_gateway_makes_no_call(
    viewed: Callable[[int, int, tuple[int, int]], list[RawSpan]], parent: int, shift: int
) -> None:
    spans = [
        agent(1, None, "planner", (6000, 9000)),
        tool(2, 1, "get", (8000, 8200), "c1"),
        tool(3, 1, "get", (8400, 8600), "c2"),
        *viewed(4, parent, (8020 + shift, 8180 + shift)),
        *viewed(6, parent, (8420 + shift, 8580 + shift)),
    ]

    (run,) = runs_of(spans)

    assert ["c1", "c2"] == [call.call_id for call in run.tool_calls]


@SHIFTS
@pytest.mark.parametrize("parents", [True, False], ids=["with its callers", "with its callers lost"])
@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name.endswith("-mcp")])
def test_a_servers_clock_changes_nothing_that_was_recorded(scenario: str, parents: bool, shift: int) -> None:
    for trace_id, spans in traces_of(scenario).items():
        moved = shifted(spans, "weather-mcp-server", shift, parents=parents)

        recorded, found = (
            reconstruct(told, trace_id=trace_id, reason=FinishReason.ROOT) for told in (spans, moved)
        )

        assert [calls_of(run) for run in recorded] == [calls_of(run) for run in found]


def test_a_call_that_is_but_an_instant_is_the_one_that_a_server_took_time_for() -> None:
    served: JsonObject = {**METHOD, "gen_ai.tool.name": "get"}
    spans = [
        agent(1, None, "planner"),
        tool(2, 1, "get", (20, 20)),
        span(3, 1, "tools/call get", served, at=(10, 19), kind=Span.SPAN_KIND_SERVER),
    ]

    assert ["get"] == [call.name for call in runs_of(spans)[0].tool_calls]


@pytest.mark.parametrize(
    "other",
    [
        {"gen_ai.tool.call.arguments": '{"city": "Bergen"}'},
        {"gen_ai.tool.call.id": "c2"},
        {"name": "put"},
    ],
    ids=["arguments", "id", "name"],
)
def test_a_servers_view_of_another_call_is_a_call(other: JsonObject) -> None:
    spans = [
        agent(1, None, "planner"),
        tool(2, 1, "get", (10, 20), "c1"),
        view(3, 1, (30, 40), **other),  # type: ignore[arg-type]
    ]

    assert 2 == len(runs_of(spans)[0].tool_calls)


def test_a_servers_view_is_of_the_call_with_its_arguments() -> None:
    oslo, bergen = '{"city": "Oslo"}', '{"city": "Bergen"}'
    spans = [
        agent(1, None, "planner"),
        tool(2, 1, "get", (10, 20), arguments=oslo),
        tool(3, 1, "get", (30, 40), arguments=bergen),
        view(4, 1, (11, 19), **{"gen_ai.tool.call.arguments": bergen}),
        view(5, 1, (31, 39), **{"gen_ai.tool.call.arguments": oslo}),
    ]

    assert [oslo, bergen] == [call.arguments_text for call in runs_of(spans)[0].tool_calls]


def served_over_http(*below: RawSpan, name: str = "POST /mcp") -> list[RawSpan]:
    http: JsonObject = {"http.request.method": "POST"}
    return [span(1, None, name, http, kind=Span.SPAN_KIND_SERVER, of=TOOLS), *below]


def gateways_call(*, is_linked: bool) -> RawSpan:
    """What LiteLLM's gateway makes of a call that it passes on: it links to the caller that it knows."""
    span_id, payload, of = span(
        2, 1, "tools/call get", NAMED, at=(10, 90), kind=Span.SPAN_KIND_CLIENT, of=TOOLS
    )
    message = Span.FromString(payload)
    if is_linked:
        message.links.add(trace_id=bytes(range(16, 0, -1)), span_id=bytes(range(8, 0, -1)))
    return span_id, message.SerializeToString(), of


@pytest.mark.parametrize(
    "spans",
    [
        served_over_http(view(2, 1, (10, 90))),
        served_over_http(view(2, 1, (10, 90)), name="POST"),
        served_over_http(view(2, 1, (10, 90)), span(3, 2, "get", NAMED, at=(11, 89), of=TOOLS)),
        served_over_http(view(2, 1, (10, 90)), span(3, 2, "other", {**NAMED, "gen_ai.tool.name": "other"})),
        openllmetrys_view(1, None, (10, 90)),
        [*served_over_http(), *openllmetrys_view(2, 1, (10, 90))],
        served_over_http(gateways_call(is_linked=False)),
        served_over_http(gateways_call(is_linked=True), name="POST /tools"),
    ],
    ids=[
        "server",
        "server without a route",
        "server and its function",
        "server that calls another tool",
        "OpenLLMetry",
        "OpenLLMetry below HTTP",
        "gateway",
        "gateway that links to its caller",
    ],
)
def test_a_server_or_gateway_below_its_http_span_tells_of_no_agent(spans: list[RawSpan]) -> None:
    assert [] == runs_of(spans)


@pytest.mark.parametrize(
    "call",
    [
        gateways_call(is_linked=False),
        span(2, 1, "get", {"tool.name": "get", "input.value": "{}", "output.value": "1"}, of=TOOLS),
        span(2, 1, "get", {"openinference.span.kind": "TOOL", "tool.name": "get"}, of=TOOLS),
        tool(2, 1, "get"),
    ],
    ids=["MCP client", "span by hand", "OpenInference", "GenAI conventions"],
)
def test_a_service_that_calls_tools_is_an_agent(call: RawSpan) -> None:
    (run,) = runs_of(served_over_http(call, name="POST /chat"))

    assert ("tool-server", ["get"]) == (run.agent.name, [told.name for told in run.tool_calls])


def test_what_a_server_saw_beside_a_models_turn_is_a_call() -> None:
    (run,) = runs_of(served_over_http(model(2, 1, (1, 9)), view(3, 1, (10, 90)), name="POST /chat"))

    assert ["get"] == [call.name for call in run.tool_calls]
