"""Matchers in the criteria of `tool-call-args` and `tool-call-output`."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.evaluators.tool_calls import (
    ToolCallArgs,
    ToolCallArgsConfig,
    ToolCallArgsCriteria,
    ToolCallOutput,
    ToolCallOutputConfig,
    ToolCallOutputCriteria,
)
from processors.model import (
    MAX_MATCHED_CHARACTERS,
    AgentRun,
    JsonObject,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
)
from tests.strategies import agent_runs, json_values, run_with

EXPECTED: st.SearchStrategy[JsonValue] = st.recursive(
    json_values
    | st.sampled_from([
        {"$regex": "a|s"}, {"$glob": "*a*"}, {"$range": [0, 1]}, {"$approx": 1}, {"$type": "string"},
        {"$schema": {"type": "object"}}, {"$present": True}, {"$absent": True}, {"$any": True},
        {"$literal": {"$any": True}},
    ]),
    lambda inner: (
        st.builds(lambda members: {"$in": members}, st.lists(inner, min_size=1, max_size=2))
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
        | st.lists(inner, max_size=2)
    ),
    max_leaves=4,
)  # fmt: skip


def calls(*values: JsonValue) -> AgentRun:
    """One call of `t` for each value, which is its arguments and its result."""
    return run_with([
        ToolCall(
            name="t",
            arguments=value,
            arguments_text=json.dumps(value),
            arguments_state=ValueState.PRESENT,
            result=value,
            result_text=value if isinstance(value, str) else json.dumps(value),
            result_state=ValueState.PRESENT,
        )
        for value in values
    ])  # fmt: skip


def args(*expected: JsonObject, subset: bool = True) -> ToolCallArgs:
    criteria = {"tool_calls": [{"name": "t", "args": one} for one in expected]}
    return ToolCallArgs(ToolCallArgsConfig(subset=subset), ToolCallArgsCriteria.model_validate(criteria))


def output(*expected: JsonValue, **config: object) -> ToolCallOutput:
    criteria = {"tool_outputs": [{"name": "t", "output": one} for one in expected]}
    return ToolCallOutput(
        ToolCallOutputConfig.model_validate(config), ToolCallOutputCriteria.model_validate(criteria)
    )


def score(answer: Score | NotEvaluated) -> float:
    assert isinstance(answer, Score)
    return answer.value


@pytest.mark.parametrize(
    ("expected", "actual", "subset", "value"),
    [
        ({"city": {"$glob": "L*"}}, {"city": "London", "days": 1}, True, 1.0),
        ({"city": {"$glob": "L*"}}, {"city": "London", "days": 1}, False, 0.0),
        ({"city": {"$glob": "L*"}, "days": {"$any": True}}, {"city": "London", "days": 1}, False, 1.0),
        ({"city": {"$glob": "L*"}, "days": {"$any": True}}, {"city": "London"}, False, 1.0),
        ({"city": {"$present": True}}, {"town": "London"}, True, 0.0),
        ({"password": {"$absent": True}}, {"city": "London"}, True, 1.0),
        ({"password": {"$absent": True}}, {"password": None}, True, 0.0),
        ({"a": [{"b": {"$range": [1, 2]}}], "c": 1}, {"a": [{"b": 2}], "c": 1}, True, 1.0),
        ({"a": [{"b": {"$range": [1, 2]}}], "c": 1}, {"a": [{"b": 2}], "c": 2}, True, 0.0),
        ({"$schema": {"required": ["city"]}}, {"city": "London"}, True, 1.0),
        ({"$schema": {"required": ["city"]}}, {"town": "London"}, False, 0.0),
        ({"$in": [{"a": 1}, {"b": {"$type": "string"}}]}, {"b": "x"}, False, 1.0),
    ],
)
def test_arguments_fit_where_their_matchers_are_met(
    expected: JsonObject, actual: JsonObject, subset: bool, value: float
) -> None:
    evaluator = args(expected, subset=subset)

    assert value == score(evaluator.evaluate(calls(actual), RunFacts()))
    assert (value, 1.0) == evaluator.attainable(calls(actual))


def test_plain_and_matched_expectations_stand_side_by_side() -> None:
    evaluator = args({"n": 1}, {"n": {"$range": [5, 9]}}, {"n": {"$in": [3]}})

    answer = evaluator.evaluate(calls({"n": 7}, {"n": 1}, {"n": 4}), RunFacts())

    assert isinstance(answer, Score)
    assert 2 / 3 == answer.value
    assert {
        "t_0": "Actual: {'n': 7}, Expected: {'n': 1}, Score: 0.0",
        "t_1": "Actual: {'n': 1}, Expected: {'n': 1}, Score: 1.0",
        "t_2": "Actual: {'n': 7}, Expected: {'n': {'$range': [5, 9]}}, Score: 1.0",
        "t_3": "Actual: {'n': 4}, Expected: {'n': {'$in': [3]}}, Score: 0.0",
    } == answer.details["explained_tool_calls_args"]


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ({"$regex": "^ok"}, "ok, done", 1.0),
        ({"$regex": "^ok"}, "not ok", 0.0),
        ({"$regex": '"temperature": 2'}, {"temperature": 25}, 1.0),
        ({"$regex": "^25$"}, "25", 1.0),
        ({"$range": [20, 30]}, "25", 1.0),
        ({"$range": [20, 30]}, 25, 1.0),
        ({"temperature": {"$range": [20, 30]}}, '{"temperature": 25}', 1.0),
        ({"temperature": {"$range": [20, 30]}}, {"temperature": 31}, 0.0),
        ({"$in": ["sunny", {"$glob": "*rain*"}, {"sky": "grey"}, None]}, "sunny", 1.0),
        ({"$in": ["sunny", {"$glob": "*rain*"}, {"sky": "grey"}, None]}, "some rain", 1.0),
        ({"$in": ["sunny", {"$glob": "*rain*"}, {"sky": "grey"}, None]}, {"sky": "grey"}, 1.0),
        ({"$in": ["sunny", {"$glob": "*rain*"}, {"sky": "grey"}, None]}, "", 1.0),
        ({"$in": ["sunny", {"$glob": "*rain*"}, {"sky": "grey"}, None]}, "snow", 0.0),
        ({"$type": "object"}, "{}", 1.0),
        ({"$literal": {"$regex": "a"}}, {"$regex": "a"}, 1.0),
        ({"$literal": "a"}, "a", 1.0),
        ({"$any": True}, "", 1.0),
    ],
)
def test_outputs_fit_where_their_matchers_are_met(
    expected: JsonValue, actual: JsonValue, value: float
) -> None:
    evaluator = output(expected)

    assert value == score(evaluator.evaluate(calls(actual), RunFacts()))
    assert (value, 1.0) == evaluator.attainable(calls(actual))


def test_alternatives_follow_the_way_of_comparison() -> None:
    assert 0.0 == score(output({"$in": ['{"a":1}']}).evaluate(calls({"a": 1}), RunFacts()))
    assert 1.0 == score(output({"$in": ['{"a":1}']}, comparison="json").evaluate(calls({"a": 1}), RunFacts()))


def test_matching_more_than_the_cap_is_over_the_limit() -> None:
    long = "x" * 200_000
    many = -(-MAX_MATCHED_CHARACTERS // len(long)) + 1
    value: JsonValue = {"text": long}
    run = calls(*[value] * many)

    for evaluator in (args({"text": {"$regex": "y"}}), output({"text": {"$regex": "y"}})):
        answer = evaluator.evaluate(run, RunFacts())

        assert isinstance(answer, NotEvaluated)
        assert NotEvaluatedReason.OVER_LIMIT is answer.reason
        assert (0.0, 1.0) == evaluator.attainable(run)


def test_a_schema_that_takes_too_long_is_over_the_limit() -> None:
    schema: JsonObject = {"rows": {"$schema": {"items": {"type": "integer"}}}}
    run = calls({"rows": [1] * 20_000})

    for evaluator in (args(schema), output(schema)):
        answer = evaluator.evaluate(run, RunFacts())

        assert isinstance(answer, NotEvaluated)
        assert NotEvaluatedReason.OVER_LIMIT is answer.reason


def test_criteria_with_a_bad_matcher_are_refused() -> None:
    for make in (args, output):
        with pytest.raises(ValueError, match="unknown matcher"):
            make({"a": {"$nonsense": 1}})


@settings(deadline=None)
@given(
    expected=st.lists(st.dictionaries(st.sampled_from("ab"), EXPECTED, max_size=2), max_size=3),
    threshold=st.sampled_from((0.4, 1.0)),
    run=agent_runs(),
    data=st.data(),
)
def test_with_matchers_an_incomplete_run_passes_or_fails_only_as_the_complete_one_does(
    expected: list[JsonObject], threshold: float, run: AgentRun, data: st.DataObject
) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(run.tool_calls), max_size=len(run.tool_calls)))
    some = [call for call, kept in zip(run.tool_calls, keep, strict=True) if kept]
    tool_calls = [{"name": "search", "args": one} for one in expected]
    tool_outputs = [{"name": "search", "output": one} for one in expected]
    evaluators = (
        ToolCallArgs(ToolCallArgsConfig(), ToolCallArgsCriteria.model_validate({"tool_calls": tool_calls})),
        ToolCallOutput(
            ToolCallOutputConfig(), ToolCallOutputCriteria.model_validate({"tool_outputs": tool_outputs})
        ),
    )

    for evaluator in evaluators:
        evaluation = Evaluation(name="n", evaluator=evaluator, pass_threshold=threshold)
        (early,) = evaluate_run(replace(run, tool_calls=some, complete=False), [evaluation])
        (final,) = evaluate_run(run, [evaluation])

        assert Outcome.ERROR not in (early.outcome, final.outcome)
        if Outcome.NOT_EVALUATED not in (early.outcome, final.outcome):
            assert early.outcome is final.outcome
