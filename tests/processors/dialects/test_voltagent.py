"""VoltAgent's spans: what runs in an agent carries the agent's entity as well."""

from processors.agent_run import ToolError, ValueState
from processors.json_value import JsonObject
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
