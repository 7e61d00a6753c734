"""Several instrumentations in one trace, and no help from the names of scopes."""

import random

from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import agent, envelope, model, runs_of, span, tool

ONE, OTHER = envelope(scope="one"), envelope(scope="another")

FUNCTION: JsonObject = {"langfuse.observation.type": "tool", "langfuse.observation.output": '{"t": 1}'}
SDK_CALL: JsonObject = {
    "ai.operationId": "ai.toolCall",
    "ai.toolCall.name": "get",
    "ai.toolCall.id": "c1",
    "ai.toolCall.args": '{"city": "Oslo"}',
}


def test_a_function_that_two_instrumentations_watch_is_one_call() -> None:
    spans = [
        agent(1, None, "planner"),
        span(2, 1, "ai.toolCall", SDK_CALL, at=(10, 20), of=ONE),
        span(3, 2, "get", FUNCTION, at=(11, 19), of=OTHER),
    ]

    (run,) = runs_of(spans)

    assert [("get", "c1", {"city": "Oslo"}, {"t": 1})] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_a_span_that_two_conventions_describe_is_read_with_both() -> None:
    both: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "langfuse.observation.type": "tool",
        "langfuse.observation.input": '{"args": [], "kwargs": {"city": "Oslo"}}',
        "mlflow.spanType": '"TOOL"',
        "mlflow.spanOutputs": '"done"',
    }

    (run,) = runs_of([agent(1, None, "planner"), span(2, 1, "some function", both)])

    assert [("get", "c1", {"city": "Oslo"}, "done")] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def agents_of_three_conventions() -> list[RawSpan]:
    return [
        span(1, None, "POST /chat", at=(0, 1000)),
        agent(2, 1, "native", (10, 200)),
        model(3, 2, (11, 20)),
        tool(4, 2, "one", (30, 40)),
        span(5, 1, "mlflow_agent", {"mlflow.spanType": '"AGENT"'}, at=(210, 400)),
        span(6, 5, "two", {"mlflow.spanType": '"TOOL"'}, at=(220, 230)),
        span(
            7,
            1,
            "ai.streamText",
            {"ai.operationId": "ai.streamText", "ai.telemetry.functionId": "sdk"},
            at=(410, 600),
        ),
        span(
            8, 7, "ai.toolCall", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "three"}, at=(420, 430)
        ),
        span(9, 1, "langfuse_agent", {"langfuse.observation.type": "agent"}, at=(610, 800)),
        span(10, 9, "four", {"langfuse.observation.type": "tool"}, at=(620, 630)),
    ]


def test_agents_of_several_conventions_keep_their_own_calls() -> None:
    spans = agents_of_three_conventions()
    random.Random(7).shuffle(spans)

    assert [
        ("native", ["one"]),
        ("mlflow_agent", ["two"]),
        ("sdk", ["three"]),
        ("langfuse_agent", ["four"]),
    ] == [(run.agent.name, [call.name for call in run.tool_calls]) for run in runs_of(spans)]


def test_the_names_of_scopes_change_nothing() -> None:
    nameless = envelope(scope="")
    spans = agents_of_three_conventions()

    assert runs_of(spans) == runs_of([(span_id, raw, nameless) for span_id, raw, _ in spans])
