"""The names under which conventions tell models, tokens and the time to the first output."""

import json

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from processors.model import JsonValue, TokenUsage
from processors.shapes import USAGE_KEYS, UsageReading, usage_plan
from processors.spans import Span
from tests.support.agent_spans import DEMO, MILLISECOND, span


def read(attributes: dict[str, JsonValue]) -> UsageReading:
    _, raw, _ = span(1, None, "chat", attributes, at=(1000, 9000))
    return usage_plan(USAGE_KEYS.intersection(attributes)).read(Span(raw, DEMO))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param(
            {
                "gen_ai.usage.input_tokens": 300,
                "gen_ai.usage.output_tokens": 40,
                "gen_ai.usage.cache_read.input_tokens": 100,
                "gen_ai.usage.cache_creation.input_tokens": 50,
                "gen_ai.usage.reasoning.output_tokens": 30,
            },
            TokenUsage(300, 40, 100, 50, 30),
            id="GenAI conventions",
        ),
        pytest.param(
            {
                "gen_ai.usage.prompt_tokens": 300,
                "gen_ai.usage.completion_tokens": 40,
                "gen_ai.usage.cache_read_input_tokens": 100,
            },
            TokenUsage(300, 40, 100),
            id="Traceloop, GenAI before 1.27",
        ),
        pytest.param(
            {"llm.usage.prompt_tokens": 7, "llm.usage.completion_tokens": 8, "llm.usage.total_tokens": 15},
            TokenUsage(7, 8),
            id="Traceloop of old",
        ),
        pytest.param(
            {
                "llm.token_count.prompt": 300,
                "llm.token_count.completion": 40,
                "llm.token_count.prompt_details.cache_read": 100,
                "llm.token_count.prompt_details.cache_write": 20,
                "llm.token_count.completion_details.reasoning": 30,
            },
            TokenUsage(300, 40, 100, 20, 30),
            id="OpenInference",
        ),
        pytest.param(
            {"ai.usage.promptTokens": 300, "ai.usage.completionTokens": 40},
            TokenUsage(300, 40),
            id="AI SDK 4",
        ),
        pytest.param(
            {
                "ai.usage.inputTokens": 300,
                "ai.usage.outputTokens": 40,
                "ai.usage.cachedInputTokens": 100,
                "ai.usage.reasoningTokens": 30,
            },
            TokenUsage(300, 40, 100, None, 30),
            id="AI SDK 5",
        ),
        pytest.param(
            {"gen_ai.aggregated_usage.input_tokens": 300, "gen_ai.aggregated_usage.output_tokens": 40},
            TokenUsage(300, 40),
            id="Pydantic AI, of a run",
        ),
        pytest.param(
            {
                "input_tokens": 2,
                "output_tokens": 40,
                "cache_read_tokens": 100,
                "cache_creation_tokens": 50,
            },
            TokenUsage(152, 40, 100, 50),
            id="Claude Code, whose input leaves out caches",
        ),
        pytest.param(
            {
                "judgment.usage.non_cached_input_tokens": 200,
                "judgment.usage.output_tokens": 40,
                "judgment.usage.cache_read_input_tokens": 100,
            },
            TokenUsage(300, 40, 100),
            id="Judgment",
        ),
        pytest.param(
            {
                "gen_ai.usage.input_tokens": 300,
                "gen_ai.usage.output_tokens": 40,
                "gen_ai.usage.experimental.reasoning_tokens": 30,
            },
            TokenUsage(300, 70, None, None, 30),
            id="Google ADK, whose output leaves out thoughts",
        ),
        pytest.param(
            {
                "mlflow.chat.tokenUsage": json.dumps(
                    {
                        "prompt_tokens": 300,
                        "completion_tokens": 40,
                        "total_tokens": 340,
                        "prompt_tokens_details": {"cached_tokens": 100, "audio_tokens": None},
                        "completion_tokens_details": {"reasoning_tokens": 30},
                    }
                )
            },
            TokenUsage(300, 40, 100, None, 30),
            id="an object with details, as OpenAI's",
        ),
        pytest.param(
            {"mlflow.chat.tokenUsage": json.dumps({"input_tokens": 300, "output_tokens": 40})},
            TokenUsage(300, 40),
            id="MLflow",
        ),
        pytest.param(
            {
                "langfuse.observation.usage_details": json.dumps(
                    {"input": 200, "output": 40, "cache_read_input_tokens": 100, "total": 340}
                )
            },
            TokenUsage(300, 40, 100),
            id="Langfuse",
        ),
        pytest.param(
            {
                "langfuse.observation.usage_details": json.dumps(
                    {"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340}
                )
            },
            TokenUsage(300, 40),
            id="Langfuse, as OpenAI tells it",
        ),
        pytest.param(
            {
                "ai.observability.cost.num_prompt_tokens": 300,
                "ai.observability.cost.num_completion_tokens": 40,
            },
            TokenUsage(300, 40),
            id="TruLens",
        ),
        pytest.param(
            {"gen_ai.usage.input_tokens": "300", "gen_ai.usage.output_tokens": 40.0},
            TokenUsage(300, 40),
            id="numbers in other types",
        ),
        pytest.param(
            {"gen_ai.usage.input_tokens": 5_000_000, "gen_ai.usage.output_tokens": 0},
            TokenUsage(5_000_000, 0),
            id="large and none",
        ),
    ],
)
def test_tokens_are_read_whatever_they_are_called(
    attributes: dict[str, JsonValue], expected: TokenUsage
) -> None:
    assert expected == read(attributes).usage


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.usage.input_tokens": 300},
        {"gen_ai.usage.input_tokens": -1, "gen_ai.usage.output_tokens": 1},
        {"gen_ai.usage.input_tokens": True, "gen_ai.usage.output_tokens": 1},
        {"gen_ai.usage.input_tokens": "many", "gen_ai.usage.output_tokens": 1},
        {"gen_ai.usage.input_tokens": 1e300, "gen_ai.usage.output_tokens": 1},
        {"mlflow.chat.tokenUsage": "[1]"},
        {"langfuse.observation.usage_details": '{"total": 5}'},
        {"llm.token_count.prompt": 0, "llm.token_count.completion": 0, "llm.token_count.total": 0},
        {"ai.usage.inputTokens": 0, "ai.usage.outputTokens": 0, "ai.usage.cachedInputTokens": 0},
    ],
)
def test_what_does_not_tell_both_counts_tells_none(attributes: dict[str, JsonValue]) -> None:
    assert read(attributes).usage is None


def test_a_part_that_is_larger_than_the_whole_was_counted_beside_it() -> None:
    told: dict[str, JsonValue] = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 40}

    assert TokenUsage(105, 40, 100) == read(told | {"gen_ai.usage.cached_tokens": 100}).usage


def test_the_model_that_answered_goes_before_the_one_that_was_asked_for() -> None:
    asked: dict[str, JsonValue] = {"gen_ai.request.model": "latest"}

    assert "latest" == read(asked).model
    assert "m-2026" == read(asked | {"gen_ai.response.model": "m-2026"}).model
    assert "latest" == read(asked | {"gen_ai.response.model": ""}).model


@pytest.mark.parametrize(
    ("attributes", "seconds"),
    [
        ({"gen_ai.response.time_to_first_chunk": 0.5}, 0.5),
        ({"gen_ai.client.operation.time_to_first_chunk": 0.5}, 0.5),
        ({"ai.response.msToFirstChunk": 500.0}, 0.5),
        ({"ttft_ms": 500}, 0.5),
        ({"gen_ai.server.time_to_first_token": 0.5}, 0.5),
        ({"gen_ai.server.time_to_first_token": 500}, 0.5),
        ({"lk.response.ttft": 0.5}, 0.5),
        ({"langfuse.observation.completion_start_time": '"1970-01-01T00:00:01.500Z"'}, 0.5),
        ({"langfuse.observation.completion_start_time": "1970-01-01T00:00:01.500+00:00"}, 0.5),
        ({"langfuse.observation.completion_start_time": "soon"}, None),
        ({"ai.response.msToFirstChunk": -1.0}, None),
        ({"gen_ai.response.time_to_first_chunk": 1e9}, None),
    ],
)
def test_the_time_to_the_first_output_is_read_in_seconds(
    attributes: dict[str, JsonValue], seconds: float | None
) -> None:
    assert seconds == pytest.approx(read(attributes).time_to_first_output_seconds)


def test_an_event_tells_the_first_output_where_no_attribute_does() -> None:
    _, raw, _ = span(1, None, "chat", {"llm.model_name": "m"}, at=(1000, 9000))
    message = Message.FromString(raw)
    message.events.add(name="First Token Stream Event", time_unix_nano=1500 * MILLISECOND)
    held = Span(message.SerializeToString(), DEMO)

    assert 0.5 == usage_plan(frozenset({"llm.model_name"})).first_output(held)
