"""VoltAgent's spans: what runs in an agent carries the agent's entity as well."""

from processors.model import JsonObject, ToolError, ValueState
from tests.support.agent_spans import runs_of, span

ENTITY: JsonObject = {"entity.type": "agent", "entity.name": "planner", "entity.id": "planner-id"}
AGENT: JsonObject = {
    **ENTITY,
    "input": "Weather?",
    "output": "It is cold.",
    "voltagent.operation_id": "o1",
    "voltagent.conversation_id": "c9",
}
TOOL: JsonObject = {
    **ENTITY,
    "span.type": "tool",
    "tool.name": "get",
    "tool.call.id": "c1",
    "input": '{"city": "Oslo"}',
    "output": '{"t": 1}',
}


def test_a_run_is_read_with_its_call() -> None:
    (run,) = runs_of(
        [
            span(1, None, "planner", AGENT),
            span(2, 1, "llm:m", {**ENTITY, "span.type": "llm"}, at=(1, 5)),
            span(3, 1, "tool.execution:get", TOOL, at=(10, 20)),
            span(4, 1, "memory.save", {**ENTITY, "span.type": "memory"}, at=(30, 40)),
        ]
    )

    assert ("planner", "planner-id", "Weather?", "It is cold.", "c9") == (
        run.agent.name,
        run.agent.id,
        run.input,
        run.output,
        run.session,
    )
    assert [("get", "c1", {"city": "Oslo"}, {"t": 1}, False)] == [
        (call.name, call.call_id, call.arguments, call.result, call.lenient_values) for call in run.tool_calls
    ]


def test_the_older_form_is_read() -> None:
    older: JsonObject = {
        "tool.call.id": "c1",
        "tool.name": "get",
        "tool.arguments": '{"city": "Oslo"}',
        "tool.result": '{"t": 1}',
        "tool.error.message": "boom",
        "voltagent.agent.id": "planner-id",
    }

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "tool.execution:get", older)])

    assert [("get", "c1", {"city": "Oslo"}, {"t": 1}, ToolError(type="", message="boom"))] == [
        (call.name, call.call_id, call.arguments, call.result, call.error) for call in run.tool_calls
    ]


def test_missing_values_stay_unknown() -> None:
    bare: JsonObject = {**ENTITY, "span.type": "tool"}

    (run,) = runs_of([span(1, None, "planner", AGENT), span(2, 1, "tool.execution:get", bare)])

    (call,) = run.tool_calls
    assert ("get", ValueState.ABSENT, ValueState.ABSENT) == (
        call.name,
        call.arguments_state,
        call.result_state,
    )


def test_a_sub_agent_is_named_by_its_own_name_and_not_by_its_callers() -> None:
    boss: JsonObject = {"entity.type": "agent", "entity.name": "boss", "entity.id": "boss"}
    sub: JsonObject = {**boss, "subagent.name": "sub", "subagent.id": "sub-id", "voltagent.is_subagent": True}
    delegate: JsonObject = {**boss, "span.type": "tool", "tool.name": "delegate_task", "input": "{}"}
    called: JsonObject = {**sub, "span.type": "tool", "tool.name": "get", "input": "{}"}
    spans = [
        span(1, None, "boss", {**boss, "input": "Q?"}),
        span(2, 1, "tool.execution:delegate_task", delegate, at=(10, 90)),
        span(3, 2, "subagent:sub", {**sub, "input": "temp?"}, at=(11, 80)),
        span(4, 3, "tool.execution:get", called, at=(20, 30)),
    ]

    outer, inner = runs_of(spans)

    assert ("boss", ["delegate_task"]) == (outer.agent.name, [call.name for call in outer.tool_calls])
    assert ("sub", "sub-id", "boss", ["get"]) == (
        inner.agent.name,
        inner.agent.id,
        inner.parent_agent,
        [call.name for call in inner.tool_calls],
    )


def test_one_model_span_around_all_turns_makes_no_parallel_calls() -> None:
    spans = [
        span(1, None, "planner", AGENT),
        span(2, 1, "llm:generateText", {**ENTITY, "span.type": "llm"}, at=(1, 90)),
        span(3, 1, "tool.execution:get", TOOL, at=(10, 20)),
        span(4, 1, "tool.execution:get", {**TOOL, "tool.call.id": "c2"}, at=(30, 40)),
        span(5, 1, "tool.execution:get", {**TOOL, "tool.call.id": "c3"}, at=(35, 45)),
    ]

    (run,) = runs_of(spans)

    first, second, third = (call.parallel_group for call in run.tool_calls)
    assert (None, True) == (first, second is not None and second == third)
