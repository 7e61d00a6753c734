"""Functions decorated as tools by UiPath's `@traced`: OpenInference attributes, other meanings."""

import pytest

from processors.model import JsonObject, JsonValue, ToolCall, ValueState
from tests.support.agent_spans import envelope, runs_of, span

SERVICE = envelope(service="weather_agent", scope="uipath.core.tracing.decorators")


def call_with(**fields: JsonValue) -> ToolCall:
    root: JsonObject = {"span_type": "function_call_sync", "input.value": '{"message": "Weather?"}'}
    tool: JsonObject = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get",
        "span_type": "TOOL",
        **{key.replace("_", "."): value for key, value in fields.items()},
    }
    (run,) = runs_of([span(1, None, "main", root, of=SERVICE), span(2, 1, "get", tool, of=SERVICE)])
    assert "weather_agent" == run.agent.name
    (call,) = run.tool_calls
    return call


@pytest.mark.parametrize("given", ['{"city": "Oslo"}', "{'city': 'Oslo'}"])
def test_arguments_are_json_or_python(given: str) -> None:
    assert {"city": "Oslo"} == call_with(input_value=given).arguments


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ('{"content": "cold"}', "cold"),
        ('{"content": {"t": 1}}', {"t": 1}),
        ('{"t": 1}', {"t": 1}),
        ('"cold"', "cold"),
    ],
)
def test_results_come_out_of_the_content_wrapper(output: str, result: JsonValue) -> None:
    assert result == call_with(output_value=output).result


def test_the_tools_identity_is_no_call_id() -> None:
    assert call_with(tool_id="4c1d").call_id is None


def test_two_calls_of_one_tool_are_two_calls() -> None:
    tool: JsonObject = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get",
        "tool.id": "4c1d",
        "span_type": "TOOL",
    }

    (run,) = runs_of(
        [span(1, None, "main", {"input.value": "{}"}), span(2, 1, "get", tool), span(3, 1, "get", tool)]
    )

    assert 2 == len(run.tool_calls)


def test_missing_values_stay_unknown() -> None:
    call = call_with()

    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)
