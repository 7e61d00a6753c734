"""LlamaIndex's own spans, where what a step tells was cut off."""

import pytest

from processors.model import AgentRun, TokenUsage, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.processors.frameworks.test_recordings import runs_in
from tests.support.agent_spans import envelope, runs_of, span

OWN = envelope(scope="llamaindex.opentelemetry.tracer")
GIVEN = "llamaindex.step.input_summary"


def run_with(*spans: RawSpan) -> AgentRun:
    (run,) = runs_of([span(1, None, "FunctionAgent.run", of=OWN), *spans])
    return run


def test_tokens_are_those_of_the_requests_and_not_of_what_wraps_them() -> None:
    (run,) = runs_in("llama_index_observability")

    assert TokenUsage(360, 72) == run.usage
    assert ["gpt-4o-mini"] * 3 == [call.model for call in run.model_calls]
    assert {"get_temperature", "get_humidity"} == set(run.available_tools or {})


def test_arguments_that_were_cut_off_are_not_known() -> None:
    step = {GIVEN: "ToolCall(tool_name='get', tool_kwargs={'text': 'very lo..."}

    run = run_with(span(2, 1, "BaseWorkflowAgent.call_tool", step, of=OWN))

    (call,) = run.tool_calls
    assert ("get", None, ValueState.ABSENT) == (call.name, call.call_id, call.arguments_state)
    assert ValueState.ABSENT is call.result_state


def test_a_tool_that_raised_failed() -> None:
    step = {GIVEN: "ToolCall(tool_name='get', tool_kwargs={'city': 'Oslo'}, tool_id='c1')"}
    spans = [
        span(2, 1, "BaseWorkflowAgent.call_tool", step, at=(2, 9), of=OWN),
        span(3, 2, "FunctionTool.acall", at=(3, 8), of=OWN, status=(STATUS_ERROR, "no")),
    ]

    (call,) = run_with(*spans).tool_calls

    assert call.error is not None
    assert ({"city": "Oslo"}, "c1", "no") == (call.arguments, call.call_id, call.error.message)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("AgentInput(input=[], current_agent_name='weather_agent')", "weather_agent"),
        ("AgentInput(input=[ChatMessage(role=<MessageRole.USER: 'user'>, addit...", ""),
    ],
)
def test_a_step_names_the_agent_unless_it_was_cut_off(given: str, name: str) -> None:
    steps = [span(2, 1, "BaseWorkflowAgent.setup_agent", {GIVEN: given}, at=(1, 2), of=OWN)]

    assert (name or "demo") == run_with(*steps).agent.name
