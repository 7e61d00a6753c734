"""Criteria that take expected values from the run's own input."""

import json

import pytest

from processors.criteria import Evaluation, read_criteria
from processors.evaluate import evaluate_run
from processors.model import (
    AgentRun,
    EvaluationResult,
    JsonObject,
    JsonValue,
    NotEvaluatedReason,
    Outcome,
    ToolCall,
    ValueState,
)
from tests.strategies import run_with


def evaluation(**args: JsonValue) -> Evaluation:
    entry: JsonObject = {
        "evaluator": "tool-call-args",
        "criteria": {"tool_calls": [{"name": "look", "args": args}]},
    }
    (agent,) = read_criteria(json.dumps({"agents": {"a": {"evaluations": [entry]}}}), "c.yaml", {}).agents
    return agent.evaluations[0]


def graded(run_input: JsonValue, arguments: JsonObject, **args: JsonValue) -> EvaluationResult:
    (result,) = evaluate_run(run(run_input, arguments), [evaluation(**args)])
    return result


def run(run_input: JsonValue, arguments: JsonObject) -> AgentRun:
    call = ToolCall(
        name="look",
        arguments=arguments,
        arguments_text=json.dumps(arguments),
        arguments_state=ValueState.PRESENT,
    )
    return run_with([call], input=run_input, input_state=ValueState.PRESENT)


@pytest.mark.parametrize(
    ("run_input", "path", "value"),
    [
        ({"city": "London"}, "city", "London"),
        ({"trip": {"stops": ["Oslo", "Rome"]}}, "trip.stops[1]", "Rome"),
        ('{"city": "London"}', "city", "London"),
        ("London", "", "London"),
        ({"a": 1}, "$", {"a": 1}),
        ({"user.id": 7}, '["user.id"]', 7),
        ({"city": None}, "city", None),
        ({"where": {"$glob": "L*"}}, "where", {"$glob": "L*"}),
        ({"where": [{"$any": True}]}, "where", [{"$any": True}]),
    ],
)  # fmt: skip
def test_the_value_at_the_path_is_expected(run_input: JsonValue, path: str, value: JsonValue) -> None:
    assert Outcome.PASS is graded(run_input, {"x": value}, x={"$input": path}).outcome
    assert Outcome.FAIL is graded(run_input, {"x": "another"}, x={"$input": path}).outcome


def test_a_reference_stands_anywhere_in_an_expected_value() -> None:
    args: JsonObject = {
        "where": {"$in": [{"city": {"$input": "city"}}, "home"]},
        "days": [{"$input": "days"}],
    }
    told: JsonObject = {"city": "Oslo", "days": 3}

    assert Outcome.PASS is graded(told, {"where": {"city": "Oslo"}, "days": [3]}, **args).outcome
    assert Outcome.PASS is graded(told, {"where": "home", "days": [3]}, **args).outcome
    assert Outcome.FAIL is graded(told, {"where": {"city": "Rome"}, "days": [3]}, **args).outcome


def test_one_evaluation_grades_runs_with_different_inputs() -> None:
    shared = evaluation(x={"$input": "city"})

    outcomes = [
        evaluate_run(run({"city": f"c{number % 100}"}, {"x": f"c{wanted % 100}"}), [shared])[0].outcome
        for number, wanted in [*((number, number) for number in range(150)), (1, 2)]
    ]

    assert [Outcome.PASS] * 150 + [Outcome.FAIL] == outcomes


def test_the_explanation_shows_the_value() -> None:
    result = graded({"city": "London"}, {"x": "Paris"}, x={"$input": "city"})

    assert "look_0: Actual: {'x': 'Paris'}, Expected: {'x': 'London'}, Score: 0.0" == result.explanation


def test_an_input_that_says_nothing_about_it_makes_the_evaluation_not_applicable() -> None:
    inputs: list[JsonValue] = [{"town": "London"}, "hello", ["London"], None]

    for told in inputs:
        result = graded(told, {"x": "London"}, x={"$input": "city"})

        assert NotEvaluatedReason.NOT_APPLICABLE is result.reason
        assert '`$input`: the input of the run has nothing at "city"' == result.explanation


def test_an_input_that_was_not_captured_is_told() -> None:
    (result,) = evaluate_run(run_with([]), [evaluation(x={"$input": "city"})])
    (incomplete,) = evaluate_run(run_with([], complete=False), [evaluation(x={"$input": "city"})])

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is result.reason
    assert NotEvaluatedReason.INCOMPLETE_TRACE is incomplete.reason


def test_a_literal_that_looks_like_a_reference_stays_as_it_is() -> None:
    args: JsonObject = {"x": {"$literal": {"$input": "city"}}, "y": {"$input": "city"}}

    assert Outcome.PASS is graded({"city": 1}, {"x": {"$input": "city"}, "y": 1}, **args).outcome
    assert evaluation(x={"$literal": {"$input": "city"}}).template is None
