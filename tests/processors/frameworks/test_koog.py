"""Koog before 0.7: calls without an operation, and runs whose spans are named after the run."""

from processors.model import JsonObject, JsonValue, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span

RUN: JsonObject = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.id": "planner",
    "gen_ai.conversation.id": "0f8fad5b-d9cb-469f-a165-70867728950e",
}


def called(**told: JsonValue) -> RawSpan:
    fields = {"gen_ai.tool.name": "get", "gen_ai.tool.call.id": "c1", **told}
    return span(3, 2, "tool.get", fields, at=(10, 20))


def run_with(call: RawSpan) -> list[RawSpan]:
    return [
        span(1, None, "agent.planner", {"gen_ai.operation.name": "create_agent"}, at=(0, 100)),
        span(2, 1, "run.0f8fad5b-d9cb-469f-a165-70867728950e", RUN, at=(1, 99)),
        call,
    ]


def test_the_agent_is_called_as_its_id_and_values_stand_under_input_and_output() -> None:
    (run,) = runs_of(run_with(called(**{"input.value": '{"city":"Oslo"}', "output.value": "11.5"})))

    assert "planner" == run.agent.name
    assert [("get", "c1", {"city": "Oslo"}, 11.5)] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_hidden_values_stay_hidden() -> None:
    hidden = {"input.value": "HIDDEN:non-empty", "output.value": "HIDDEN:non-empty"}

    (run,) = runs_of(run_with(called(**hidden)))

    assert [(ValueState.REDACTED, ValueState.REDACTED)] == [
        (call.arguments_state, call.result_state) for call in run.tool_calls
    ]
