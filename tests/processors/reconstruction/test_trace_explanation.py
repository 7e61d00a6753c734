"""Every span is accounted for: who read it as what, and what became of it."""

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model.json_values import JsonObject
from processors.reconstruction.passes import span_reader
from processors.reconstruction.trace_explanation import SpanExplanation, explain_trace
from processors.shapes.dialect import SpanRole
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, model, runs_of, span, span_id, tool


def explained(spans: list[RawSpan]) -> dict[int, SpanExplanation]:
    told = explain_trace(spans, span_reader())
    assert {one for one, _, _ in spans} == {line.span_id for line in told}
    return {int.from_bytes(line.span_id, "big"): line for line in told}


def test_runs_turns_and_calls_are_told_with_who_read_them() -> None:
    lines = explained([agent(1, None, "planner"), model(2, 1, (1, 5)), tool(3, 1, "get", (10, 20))])

    assert [
        ("run of planner", SpanRole.AGENT, 0),
        ("model turn of planner", SpanRole.MODEL, 1),
        ("call of get by planner", SpanRole.TOOL, 1),
    ] == [(line.meaning, line.role, line.depth) for line in lines.values()]
    assert {("otel_genai",)} == {tuple(line.dialects) for line in lines.values()}
    assert not any(line.is_left_out for line in lines.values())


def test_children_follow_their_parent_in_order_of_start() -> None:
    told = explain_trace(
        [
            tool(4, 1, "late", (50, 60)),
            span(3, 2, "inner", at=(11, 12)),
            tool(2, 1, "early", (10, 20)),
            agent(1, None, "planner"),
        ],
        span_reader(),
    )

    assert [(1, 0), (2, 1), (3, 2), (4, 1)] == [
        (int.from_bytes(line.span_id, "big"), line.depth) for line in told
    ]


def test_another_report_of_a_call_names_the_first() -> None:
    inner: JsonObject = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get"}

    lines = explained(
        [agent(1, None, "a"), tool(2, 1, "get"), span(3, 2, "tools/call get", inner, at=(11, 19))]
    )

    assert f"another report of the call of get in {span_id(2).hex()}" == lines[3].meaning


def test_what_is_left_out_says_why() -> None:
    synthetic: JsonObject = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"}
    spans = [
        agent(1, None, "planner"),
        span(2, 1, "GET /weather", {"http.request.method": "GET"}, at=(1, 2)),
        span(3, 1, "step 1", {"gen_ai.operation.name": "agent_step"}, at=(3, 4)),
        span(4, 1, "execute_tool (merged)", synthetic, at=(5, 6)),
        tool(5, 1, "get", (10, 20)),
        model(6, 5, (11, 12)),
    ]

    lines = explained(spans)

    assert {2, 3, 4, 6} == {number for number, line in lines.items() if line.is_left_out}
    assert ("no dialect recognises it", None, ()) == (
        lines[2].meaning,
        lines[2].role,
        tuple(lines[2].dialects),
    )
    assert lines[3].meaning.startswith("known, but neither")
    assert lines[4].meaning.startswith("made up")
    assert lines[6].meaning.startswith("a model call in a tool")


def test_a_tool_server_alone_is_left_out() -> None:
    served: JsonObject = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get"}

    lines = explained([span(1, 99, "tools/call get", served, kind=Span.SPAN_KIND_SERVER)])

    assert "a tool server's view of a call whose caller is not in the trace" == lines[1].meaning


def test_a_local_root_without_a_name_of_its_own_is_called_by_its_service() -> None:
    lines = explained([span(1, None, "POST /chat"), tool(2, 1, "get")])

    assert "local root that stands for the run of demo" == lines[1].meaning
    assert "call of get by demo" == lines[2].meaning
    assert ["demo"] == [run.agent.name for run in runs_of([span(1, None, "POST /chat"), tool(2, 1, "get")])]


def test_a_model_call_alone_is_no_run() -> None:
    assert explained([model(1, None, (0, 5))])[1].is_left_out


def workflow_of(*agents: str) -> list[RawSpan]:
    """A workflow of agents that take turns, a step and a call each."""
    chain: JsonObject = {"openinference.span.kind": "CHAIN"}
    spans = [span(1, None, "AgentWorkflow.run", chain)]
    for number, name in enumerate(agents):
        step: JsonObject = {**chain, "output.value": f"AgentSetup(input=[], current_agent_name='{name}')"}
        spans.append(span(10 + number, 1, "W.setup_agent", step, at=(10 * number + 1, 10 * number + 2)))
        spans.append(tool(20 + number, 1, "get", (10 * number + 5, 10 * number + 6)))
    return spans


def test_a_workflow_is_a_run_of_the_agent_that_its_steps_tell() -> None:
    lines = explained(workflow_of("planner", "planner"))

    assert ["run of planner", "call of get by planner"] == [lines[1].meaning, lines[20].meaning]


def test_agents_that_take_turns_in_a_workflow_begin_at_its_steps() -> None:
    lines = explained(workflow_of("triage", "billing"))

    assert "a workflow that agents take turns in: their runs begin at its steps" == lines[1].meaning
    assert ["run of triage", "run of billing"] == [lines[10].meaning, lines[11].meaning]
    assert ["call of get by triage", "call of get by billing"] == [lines[20].meaning, lines[21].meaning]
