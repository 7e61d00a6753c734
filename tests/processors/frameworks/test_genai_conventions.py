"""GenAI semantic conventions 0.1.0, which name a workflow as they name an agent."""

import pytest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from processors.model import AgentRun, CallCategory, JsonObject, JsonValue
from processors.spans import Envelope, RawSpan
from tests.support.agent_spans import DEMO, agent, key_values, runs_of, span

ARGUMENTS, RESULT = '{"city": "Oslo"}', '{"celsius": 11}'


def workflow(number: int, parent: int | None, name: str, *, key: str = "gen_ai.agent.name") -> RawSpan:
    attributes: JsonObject = {"gen_ai.operation.name": "invoke_workflow", key: name}
    return span(number, parent, f"invoke_workflow {name}", attributes)


def turn(number: int, parent: int, **attributes: JsonValue) -> RawSpan:
    told: JsonObject = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "scripted",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "How warm?"}]}]',
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "11"}]}]',
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_write.input_tokens": 4,
        **attributes,
    }
    return span(number, parent, "chat scripted", told)


def call(number: int, parent: int | None, name: str = "get", more: JsonObject | None = None) -> RawSpan:
    attributes: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": ARGUMENTS,
        "gen_ai.tool.call.result": RESULT,
        **(more or {}),
    }
    return span(number, parent, f"execute_tool {name}", attributes)


def known(runs: list[AgentRun]) -> list[tuple[str, str | None, list[str]]]:
    return [(run.agent.name, run.parent_agent, [call.name for call in run.tool_calls]) for run in runs]


@pytest.mark.parametrize("key", ["gen_ai.agent.name", "gen_ai.workflow.name"])
def test_a_workflow_of_agents_is_no_run_beside_theirs(key: str) -> None:
    spans = [
        workflow(1, None, "support", key=key),
        workflow(2, 1, "triage", key=key),
        agent(3, 2, "planner"),
        turn(4, 3),
        call(5, 3, more={"gen_ai.agent.name": "planner"}),
        agent(6, 2, "writer"),
        turn(7, 6),
    ]

    assert [("planner", None, ["get"]), ("writer", None, [])] == known(runs_of(spans))


@pytest.mark.parametrize("caller", ["", "support", "planner"])
@pytest.mark.parametrize("key", ["gen_ai.agent.name", "gen_ai.workflow.name"])
def test_a_workflow_without_agents_is_one_run_whichever_agent_its_calls_name(key: str, caller: str) -> None:
    named: JsonObject = {"gen_ai.agent.name": caller} if caller else {}
    spans = [workflow(1, None, "support", key=key), workflow(2, 1, "inner", key=key), turn(3, 2)]

    (run,) = runs_of([*spans, call(4, 2, more=named), turn(5, 2)])

    assert [("support", None, ["get"])] == known([run])
    assert ("How warm?", "11", 2, 8) == (
        run.input,
        run.output,
        len(run.model_calls),
        run.usage and run.usage.cache_write_tokens,
    )


def test_a_workflow_without_a_name_is_the_run_of_the_agent_that_its_calls_name() -> None:
    nameless = span(1, None, "invoke_workflow", {"gen_ai.operation.name": "invoke_workflow"})

    runs = runs_of([nameless, turn(2, 1), call(3, 1, more={"gen_ai.agent.name": "planner"}), turn(4, 1)])

    assert [("planner", None, ["get"], 2)] == [(*told, len(runs[0].model_calls)) for told in known(runs)]


def test_a_workflow_in_a_call_belongs_to_its_caller_and_its_agents_are_children() -> None:
    spans = [agent(1, None, "planner"), turn(2, 1), call(3, 1, "run_flow"), workflow(4, 3, "flow")]

    assert [("planner", None, ["run_flow"]), ("writer", "planner", ["get"])] == known(
        runs_of([*spans, agent(5, 4, "writer"), turn(6, 5), call(7, 5)])
    )


@pytest.mark.parametrize(
    "operation",
    [
        "create_agent", "create_memory", "create_memory_store", "delete_memory", "delete_memory_store",
        "embeddings", "fetch_response", "plan", "retrieval", "search_memory", "update_memory",
        "upsert_memory",
    ],
)  # fmt: skip
def test_further_operations_are_neither_calls_nor_turns_nor_runs_and_hide_nothing(operation: str) -> None:
    attributes: JsonObject = {
        "gen_ai.operation.name": operation,
        "gen_ai.agent.name": "planner",
        "gen_ai.memory.records": '[{"content": "likes Oslo"}]',
        "user.id": "u1",
    }
    further = span(2, 1, operation, attributes)

    (run,) = runs_of([agent(1, None, "planner"), further, turn(3, 2), call(4, 2)])

    assert [("planner", None, ["get"])] == known([run])
    assert ("11", 1, True) == (run.output, len(run.model_calls), run.complete)
    assert [] == runs_of([span(2, None, operation, attributes)])


def test_calls_of_skills_and_commands_are_calls_like_any_other() -> None:
    spans = [
        call(2, 1, "load_skill", {"gen_ai.skill.name": "forecast", "gen_ai.skill.source.uri": "skill://f"}),
        call(3, 1, "read_skill_resource", {"gen_ai.skill.resource.name": "references/units.md"}),
        call(4, 1, "bash", {"process.executable.name": "cat", "process.exit.code": 1}),
    ]

    (run,) = runs_of([agent(1, None, "planner"), turn(9, 1), *spans])

    assert [
        (name, {"city": "Oslo"}, {"celsius": 11}, None)
        for name in ("load_skill", "read_skill_resource", "bash")
    ] == [(call.name, call.arguments, call.result, call.error) for call in run.tool_calls]


@pytest.mark.parametrize("tells_values", ["client", "server"])
def test_values_on_a_protocols_spans_are_those_of_the_agents_call(tells_values: str) -> None:
    values: JsonObject = {
        "gen_ai.tool.call.arguments": ARGUMENTS,
        "gen_ai.tool.call.result": '{"content": [{"type": "text", "text": "80"}], "isError": false}',
    }
    protocol: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "mcp.method.name": "tools/call",
        "user.id": "u1",
    }
    bare: JsonObject = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"}
    client, server = ({**protocol, **(values if tells_values == of else {})} for of in ("client", "server"))
    spans = [
        agent(1, None, "planner"),
        turn(2, 1),
        span(3, 1, "execute_tool get", bare),
        span(4, 3, "tools/call get", client, kind=Span.SPAN_KIND_CLIENT),
        span(5, 4, "tools/call get", server, kind=Span.SPAN_KIND_SERVER),
    ]

    (run,) = runs_of(spans)

    assert [("get", {"city": "Oslo"}, 80, CallCategory.MCP)] == [
        (call.name, call.arguments, call.result, call.category) for call in run.tool_calls
    ]


def test_generic_parts_are_neither_the_question_nor_the_answer() -> None:
    asked = (
        '[{"role": "user", "parts": [{"type": "text", "content": "How warm?"}, {"type": "generic",'
        ' "generic_type": "search_result", "content": [{"type": "text", "text": "Oslo"}]}]}]'
    )
    answered = (
        '[{"role": "assistant", "parts": [{"type": "generic", "generic_type": "redacted_thinking",'
        ' "data": "Em", "content": "hm"}, {"type": "text", "content": "11"}]}]'
    )

    (run,) = runs_of(
        [
            agent(1, None, "planner"),
            turn(2, 1, **{"gen_ai.input.messages": asked, "gen_ai.output.messages": answered}),
        ]
    )

    assert ("How warm?", "11", ()) == (run.input, run.output, tuple(run.tool_calls))


@pytest.mark.parametrize(("agents", "version"), [({}, "2.1"), ({"gen_ai.agent.version": "7"}, "7")])
def test_an_agent_without_a_version_has_its_services(agents: JsonObject, version: str) -> None:
    attributes: JsonObject = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        **agents,
    }

    resource = Resource(attributes=key_values({"service.name": "demo", "service.version": "2.1"}))
    service = Envelope(ResourceSpans(resource=resource).SerializeToString(), DEMO.scope)

    (run,) = runs_of([span(1, None, "invoke_agent planner", attributes, of=service)])

    assert version == run.agent.version
