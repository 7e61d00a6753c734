"""Requests that real packages sent, against what their programs did (`tests/data/recordings/README.md`)."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from collector.otlp import split_request
from processors.annotation import run_from_json, run_to_json
from processors.comparison import known_output
from processors.evaluators.repeated_calls import ToolErrorRecovery, ToolErrorRecoveryConfig
from processors.evaluators.time_and_cost import NoSettings, RunError
from processors.evaluators.tool_args import ToolArgsSchema, ToolArgsSchemaConfig
from processors.evaluators.tool_policy import ToolKnown, ToolKnownConfig
from processors.evaluators.tool_response_handling import ToolResponseHandling, ToolResponseHandlingConfig
from processors.model import (
    AgentRun,
    FinishReason,
    GradedRun,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    TokenUsage,
    ValueState,
)
from processors.reconstruction import reconstruct
from processors.spans import RawSpan

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
NAMES = sorted(path.parent.name for path in RECORDINGS.glob("*/recording.json"))


@cache
def runs_in(name: str) -> list[AgentRun]:
    traces: dict[bytes, list[RawSpan]] = {}
    for path in sorted((RECORDINGS / name).glob("*.binpb")):
        for trace_id, spans in split_request(path.read_bytes()).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return [
        run
        for trace_id, spans in traces.items()
        for run in reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
    ]


def told(run: AgentRun) -> dict[str, Any]:
    """A run in the form of `recording.json`."""
    return {
        "agent": run.agent.name,
        "parent": run.parent_agent,
        "input": run.input,
        "output": run.output,
        **({"error": run.error.type} if run.error is not None else {}),
        **({"incomplete": run.incomplete_reason} if not run.complete else {}),
        "calls": [
            {
                "name": call.name,
                "arguments": call.arguments,
                "result": call.result,
                "failed": call.error is not None,
                "category": call.category.value,
                **({} if call.decision is None else {"decision": call.decision, "executed": call.executed}),
            }
            for call in run.tool_calls
        ],
    }


def in_any_order(runs: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(run, sort_keys=True) for run in runs)


@pytest.mark.parametrize("name", NAMES)
def test_runs_are_what_the_program_did(name: str) -> None:
    expected = json.loads((RECORDINGS / name / "recording.json").read_text("utf-8"))["runs"]

    assert in_any_order(expected) == in_any_order([told(run) for run in runs_in(name)])


def test_a_run_whose_calls_only_hidden_messages_tell_may_have_made_some() -> None:
    (run,) = runs_in("haystack_agent_without_content")

    assert (False, ValueState.REDACTED, ValueState.REDACTED) == (
        run.complete,
        run.input_state,
        run.output_state,
    )


@pytest.mark.parametrize("name", ["claude_code_sub_agent", "claude_agent_sdk_sub_agent"])
def test_calls_of_turns_that_followed_each_other_did_not_run_side_by_side(name: str) -> None:
    assert {None} == {call.parallel_group for run in runs_in(name) for call in run.tool_calls}


@pytest.mark.parametrize("framework", ["pydantic_ai", "langchain", "ai_sdk"])
def test_a_tool_that_does_not_exist_is_told_of_alike_whatever_the_framework_says_of_it(
    framework: str,
) -> None:
    run = runs_in(f"unknown_tool_{framework}")[0]

    ((before, asked),) = run.requested_calls
    assert (0, "get_weather", False) == (before, asked.name, asked.executed)
    known = ToolKnown(ToolKnownConfig()).evaluate(run, RunFacts())
    recovered = ToolErrorRecovery(ToolErrorRecoveryConfig()).evaluate(run, RunFacts())
    honest = ToolResponseHandling(ToolResponseHandlingConfig()).evaluate(run, RunFacts())
    assert all(isinstance(answer, Score) for answer in (known, recovered, honest))
    assert [0.5, 1.0, 1.0] == [answer.value for answer in (known, recovered, honest)]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["google_adk_java", "spring_ai", "voltagent_agent"])
def test_tools_are_known_with_the_schemas_of_those_that_were_called(name: str) -> None:
    (run,) = runs_in(name)

    tools = run.available_tools or {}
    assert {"get_humidity", "get_pressure", "get_temperature"} == tools.keys()
    checked = ToolArgsSchema(ToolArgsSchemaConfig()).evaluate(run, RunFacts())
    assert isinstance(checked, Score)
    assert (1.0, 2) == (checked.value, checked.details["checked"])
    schema = tools["get_temperature"]
    assert isinstance(schema, dict)
    assert ("object", ["city"]) == (schema["type"], schema["required"])


def test_a_tool_of_the_browser_is_requested_and_known() -> None:
    (run,) = runs_in("mastra_client_tool")

    ((before, requested),) = run.requested_calls
    assert (1, "show_map", {"city": "Tokyo"}) == (before, requested.name, requested.arguments)
    known = ToolKnown(ToolKnownConfig()).evaluate(run, RunFacts())
    assert isinstance(known, Score)
    assert known.value == 1.0


@pytest.mark.parametrize("framework", ["pydantic_ai", "langchain", "openai_agents", "ai_sdk"])
def test_a_run_that_raised_failed_and_has_no_answer_to_grade(framework: str) -> None:
    *_, run = runs_in(f"unknown_tool_{framework}")

    assert run.error is not None
    ended = RunError(NoSettings()).evaluate(run, RunFacts())
    assert (0.0, (0.0, 0.0)) == (ended.value, RunError(NoSettings()).attainable(run))
    answer = known_output(run)
    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.NOT_APPLICABLE is answer.reason
    line = run_to_json(GradedRun(run=run, results=()))
    assert run.error == run_from_json(line, "line").error


@pytest.mark.parametrize(
    ("name", "usage", "models"),
    [
        ("genkit_flow", TokenUsage(230, 45, 64, None, 5), ["scripted/small"] * 2),
        ("haystack_own_tracing", TokenUsage(200, 40), ["hs"] * 2),
        ("haystack_2_agent_in_pipeline", TokenUsage(20, 10), ["gpt-4o"] * 2),
        ("haystack_2_pipeline_of_components", TokenUsage(10, 5), ["gpt-4o"]),
        ("haystack_agent_in_pipeline", TokenUsage(20, 10), []),
        ("haystack_agent_behind_prompt", TokenUsage(20, 10), []),
        ("haystack_agent_without_content", None, []),
        ("voltagent_agent", TokenUsage(360, 72, 0, None, 0), ["gpt-4o-mini"]),
        ("llama_index_openinference", TokenUsage(360, 72), ["gpt-4o-mini"] * 3),
        ("langchain_under_openinference_and_traceloop", TokenUsage(360, 72), ["gpt-4o-mini"] * 3),
        ("openai_agents_under_logfire_and_openinference", TokenUsage(240, 48), ["gpt-4o-mini"] * 2),
    ],
)
def test_tokens_are_those_of_all_requests(name: str, usage: TokenUsage | None, models: list[str]) -> None:
    (run,) = runs_in(name)

    assert usage == run.usage
    assert models == [call.model for call in run.model_calls]


def test_a_short_request_that_two_instrumentations_report_has_its_tokens_once() -> None:
    runs = runs_in("langgraph_interrupt_two_instrumentations")

    assert [TokenUsage(120, 24)] * 2 == [run.usage for run in runs]
