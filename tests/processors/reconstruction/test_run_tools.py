"""The tools of a run as its spans list them, recorded from real frameworks and made by hand."""

import json
from dataclasses import replace
from typing import Any

import pytest

from collector.otlp.codec import split_request
from processors.evaluators.tool_args import ToolArgsSchema, ToolArgsSchemaConfig
from processors.evaluators.tool_policy import ToolKnown, ToolKnownConfig
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import Score
from processors.model.evaluator import RunFacts
from processors.model.finish_reason import FinishReason
from processors.model.json_values import JsonValue
from processors.reconstruction.passes import reconstruct
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, model, runs_of, tool
from tests.support.corpus import recorded_requests

_WEATHER_TOOLS = {"get_temperature", "get_weather_condition", "get_humidity", "get_forecast"}
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def _recorded_runs(framework: str, scenario: str) -> list[AgentRun]:
    spans: dict[bytes, list[RawSpan]] = {}
    for body in recorded_requests(framework, scenario):
        for trace_id, batch in split_request(body).traces.items():
            spans.setdefault(trace_id, []).extend(batch)
    return [
        run
        for trace_id, of_trace in spans.items()
        for run in reconstruct(of_trace, trace_id=trace_id, reason=FinishReason.ROOT)
    ]


@pytest.mark.parametrize(
    "framework",
    ["agent-framework", "ai-sdk-6", "ai-sdk-7", "ai-sdk-7-legacy", "openinference_langchain", "pydantic_ai"],
)
def test_the_tools_of_a_framework_that_records_them_are_read_with_their_schemas(framework: str) -> None:
    runs = _recorded_runs(framework, "s1")

    assert runs
    for run in runs:
        assert run.available_tools is not None
        assert _WEATHER_TOOLS <= set(run.available_tools)
        schema = run.available_tools["get_temperature"]
        assert isinstance(schema, dict)
        assert ["city"] == schema["required"]


@pytest.mark.parametrize(
    "framework", ["agent-framework", "ai-sdk-6", "ai-sdk-7", "openinference_langchain", "pydantic_ai"]
)
def test_sound_runs_call_known_tools_with_valid_arguments(framework: str) -> None:
    for run in _recorded_runs(framework, "s1"):
        for evaluator in (ToolKnown(ToolKnownConfig()), ToolArgsSchema(ToolArgsSchemaConfig())):
            answer = evaluator.evaluate(run, RunFacts())

            assert isinstance(answer, Score)
            assert 1.0 == answer.value


def test_a_framework_that_records_none_tells_nothing() -> None:
    for run in _recorded_runs("openinference_openai_agents", "s1"):
        assert not run.available_tools


def _definitions(*names: str, **schema: JsonValue) -> str:
    return json.dumps([{"type": "function", "name": name, "parameters": schema} for name in names])


def test_tools_of_the_invocation_and_of_every_turn_are_united() -> None:
    (run,) = runs_of(
        [
            agent(1, None, "planner", (0, 100), **{"gen_ai.tool.definitions": _definitions("a")}),
            model(2, 1, (1, 2), **{"gen_ai.tool.definitions": _definitions("b", **_SCHEMA)}),
            model(3, 1, (3, 4), **{"gen_ai.tool.definitions": _definitions("b", "c")}),
            tool(4, 1, "c"),
        ]
    )

    assert {"a": {}, "b": _SCHEMA, "c": {}} == run.available_tools


def test_flattened_schemas_of_a_model_span_are_read() -> None:
    schema = json.dumps({"type": "function", "function": {"name": "a", "parameters": _SCHEMA}})

    (run,) = runs_of(
        [
            agent(1, None, "planner"),
            model(
                2,
                1,
                (1, 2),
                **{"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": schema},
            ),
        ]
    )

    assert {"a": _SCHEMA} == run.available_tools


def test_without_definitions_there_are_no_tools() -> None:
    (run,) = runs_of([agent(1, None, "planner"), tool(2, 1, "c")])

    assert not run.available_tools


@pytest.mark.parametrize("framework", ["agent-framework", "ai-sdk-6", "ai-sdk-7"])
def test_a_tool_that_a_model_made_up_is_a_call_though_nothing_ran(framework: str) -> None:
    (run,) = _recorded_runs(framework, "s9-unknown-tool")

    executed = [call.name for call in run.tool_calls]
    assert "get_wind_speed" not in executed
    ((before, requested),) = run.requested_calls
    assert ("get_wind_speed", {"city": "Paris"}, False) == (
        requested.name,
        requested.arguments,
        requested.executed,
    )
    assert [*executed[:before], "get_wind_speed", *executed[before:]] == [call.name for call in run.calls]
    assert 1 == before

    answer = ToolKnown(ToolKnownConfig(also_known=tuple(executed))).evaluate(
        replace(run, available_tools=dict.fromkeys(_WEATHER_TOOLS)), RunFacts()
    )

    assert isinstance(answer, Score)
    assert ["get_wind_speed"] == answer.details["unknown"]
    assert len(executed) / len(run.calls) == answer.value


@pytest.mark.parametrize("scenario", ["s1", "s2", "s3"])
@pytest.mark.parametrize("framework", ["ai-sdk-6", "autogen", "openinference_langchain", "pydantic_ai"])
def test_no_tool_that_ran_counts_as_only_asked_for(framework: str, scenario: str) -> None:
    for run in _recorded_runs(framework, scenario):
        assert [] == list(run.requested_calls)
