"""Prompt flow: calls from the messages of models, in the function or flow that was traced around them."""

import json

from processors.model import JsonObject, JsonValue
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span


def traced(kind: str, **more: JsonValue) -> JsonObject:
    return {
        "framework": "promptflow",
        "span_type": kind,
        **{key.replace("__", "."): more[key] for key in more},
    }


def turn(number: int, at: tuple[int, int], history: list[JsonValue], message: JsonObject) -> RawSpan:
    asked: JsonObject = {
        "model": "m",
        "messages": [{"role": "user", "content": "Weather?"}, *history],
        "tools": [{"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}],
    }
    answered: JsonObject = {"id": "c", "choices": [{"finish_reason": "stop", "index": 0, "message": message}]}
    fields = traced(
        "LLM",
        inputs=json.dumps(asked, indent=2),
        llm__generated_message=json.dumps(message, indent=2),
        output=json.dumps(answered, indent=2),
    )
    return span(number, 1, "openai_chat", fields, at=at)


def recorded() -> list[RawSpan]:
    function: JsonValue = {"name": "get", "arguments": '{"city": "Oslo"}'}
    request: JsonObject = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    result: JsonObject = {"role": "tool", "tool_call_id": "call_1", "content": '{"t": 1}'}
    root = traced("Function", function="weather", inputs='{"city": "Oslo"}', output='"Cold."')
    helper = traced("Function", function="get", inputs='{"city": "Oslo"}', output='{"t": 1}')
    return [
        span(1, None, "weather", root, at=(0, 100)),
        turn(2, (1, 10), [], request),
        span(3, 1, "get", helper, at=(11, 12)),
        turn(4, (20, 30), [request, result], {"role": "assistant", "content": "Cold.", "tool_calls": None}),
    ]


def test_calls_are_read_from_the_messages_of_the_models_turns() -> None:
    (run,) = runs_of(recorded())

    assert ("demo", {"city": "Oslo"}, "Cold.") == (run.agent.name, run.input, run.output)
    assert [("get", "call_1", {"city": "Oslo"}, {"t": 1})] == [
        (made.name, made.call_id, made.arguments, made.result) for made in run.tool_calls
    ]


def test_functions_without_a_model_are_no_run() -> None:
    helper = traced("Function", function="get", inputs="{}", output="1")

    assert [] == runs_of([span(1, None, "get", helper)])


def test_spans_of_other_frameworks_with_the_same_attribute_are_left_alone() -> None:
    assert [] == runs_of([span(1, None, "x", {"framework": "other", "span_type": "LLM"})])
