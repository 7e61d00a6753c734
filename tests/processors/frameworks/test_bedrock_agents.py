"""Agents of Amazon Bedrock, whose traces OpenInference's instrumentor for Bedrock makes spans of."""

import json

from processors.model import JsonObject, JsonValue, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span

OF = envelope(service="weather-app", scope="openinference.instrumentation.bedrock")


def of_kind(kind: str, **more: JsonValue) -> JsonObject:
    return {"openinference.span.kind": kind, **more}


def called(number: int, parent: int, parameters: str, at: tuple[int, int] = (10, 20)) -> RawSpan:
    fields = of_kind(
        "TOOL", **{"tool.name": "get", "tool.parameters": parameters, "output.value": '{"t": 1}'}
    )
    return span(number, parent, "action_group", fields, at=at, of=OF)


def parameter(name: str, kind: str, value: str) -> JsonObject:
    return {"name": name, "type": kind, "value": value}


def invoked(**more: JsonValue) -> RawSpan:
    return span(1, None, "bedrock_agent.invoke_agent", of_kind("AGENT", **more), at=(0, 100), of=OF)


def test_parameters_become_arguments_by_name_of_the_type_that_is_told() -> None:
    listed = [
        parameter("city", "string", "5"),
        parameter("days", "integer", "2"),
        parameter("deep", "boolean", "true"),
        parameter("tags", "array", "[a, b]"),
    ]

    (run,) = runs_of([invoked(), called(2, 1, json.dumps(listed)), called(3, 1, "[]", at=(30, 40))])

    assert [{"city": "5", "days": 2, "deep": True, "tags": "[a, b]"}, {}] == [
        call.arguments for call in run.tool_calls
    ]
    assert [ValueState.PRESENT] * 2 == [call.arguments_state for call in run.tool_calls]


def test_a_collaborator_is_a_run_of_its_own_and_the_first_agent_is_called_as_the_service() -> None:
    asked = {"input.value": "Weather?", "output.value": "Cold."}
    spans = [
        invoked(**asked),
        span(2, 1, "agent_collaborator[helper]", of_kind("AGENT", **asked), at=(5, 90), of=OF),
        called(3, 2, json.dumps([parameter("city", "string", "Oslo")])),
    ]

    boss, helper = runs_of(spans)

    assert [("weather-app", None, 0), ("helper", "weather-app", 1)] == [
        (run.agent.name, run.parent_agent, len(run.tool_calls)) for run in (boss, helper)
    ]


def test_hidden_parameters_stay_hidden() -> None:
    (run,) = runs_of([invoked(), called(2, 1, "__REDACTED__")])

    assert [ValueState.REDACTED] == [call.arguments_state for call in run.tool_calls]
