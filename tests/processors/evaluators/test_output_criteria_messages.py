"""What a person reads who wrote criteria on the final output with a mistake in them."""

import json
from typing import Any

import pytest

from processors.criteria import read_criteria
from processors.documents import InvalidInput


def _problems(evaluator: str, criteria: dict[str, Any] | None, **config: Any) -> list[str]:
    entry: dict[str, Any] = {"evaluator": evaluator, "config": config}
    if criteria is not None:
        entry["criteria"] = criteria
    with pytest.raises(InvalidInput) as refusal:
        read_criteria(json.dumps({"agents": {"z": {"evaluations": [entry]}}}), "c.json", {})
    prefix = "c.json:1: agents.z.evaluations[0]"
    return [str(problem).removeprefix(prefix).lstrip(".: ") for problem in refusal.value.problems]


_EXPECTED = {"expectedOutput": "a"}
_FORMS = 'expected "*" or a path such as "answer" or "items[0].name"'
_AGGREGATORS = 'expected one of "precision", "recall", "fscore", "confusion_matrix"'


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"targetOutputKey": ""}, f"config.targetOutputKey: {_FORMS}"),
        ({"target_output_key": ["a", "."]}, f"config.target_output_key: {_FORMS}"),
        ({"targetOutputKey": 5}, "config.targetOutputKey: expected a text or a list; found the number 5"),
        ({"negated": "maybe"}, 'config.negated: expected true or false; found the text "maybe"'),
        (
            {"classes": ["a"], "aggregators": [{"type": "recal", "averaging": "macro"}]},
            f'config.aggregators[0].type: {_AGGREGATORS}; found the text "recal"; did you mean "recall"?',
        ),
        (
            {"classes": ["a"], "aggregators": [{"type": 5}]},
            f"config.aggregators[0].type: {_AGGREGATORS}; found the number 5",
        ),
        ({"classes": ["a"], "aggregators": [{}]}, 'config.aggregators[0]: missing key "type"'),
        (
            {"aggregators": [{"type": "confusion_matrix"}]},
            "config: classes: aggregators need the list of all classes",
        ),
        ({"extractor": "last_turn"}, "criteria: config.extractor has no effect with expected_output"),
    ],
)
def test_a_setting_with_a_mistake_is_told_with_what_was_expected(
    config: dict[str, Any], problem: str
) -> None:
    assert [problem] == _problems("exact-match", _EXPECTED, **config)


@pytest.mark.parametrize(
    ("evaluator", "criteria", "problem"),
    [
        (
            "exact-match",
            {"expectedOutput": [1]},
            "criteria.expectedOutput: expected a mapping of keys to values or a text; found a list",
        ),
        (
            "exact-match",
            {"expected": "a", "groundTruth": "a"},
            "criteria: expected exactly one of expected_output, ground_truth, expected; "
            "found ground_truth and expected",
        ),
        (
            "exact-match",
            {"expectedOutput": {"a": {"$rnage": [1, 2]}}},
            'criteria.expectedOutput.a.$rnage: unknown matcher "$rnage"; did you mean "$range"?',
        ),
        (
            "json-similarity",
            {"expectedOutput": {"a": {"$range": [1, 2]}}},
            "criteria.expectedOutput.a.$range: a matcher cannot stand here",
        ),
        ("contains", {"searchTex": "a"}, 'criteria.searchTex: unknown key; did you mean "search_text"?'),
    ],
)
def test_criteria_with_a_mistake_are_told_with_what_was_expected(
    evaluator: str, criteria: dict[str, Any], problem: str
) -> None:
    assert [problem] == _problems(evaluator, criteria)


def test_a_value_that_the_expected_output_lacks_is_told_before_any_run() -> None:
    problems = _problems("exact-match", {"expectedOutput": {"b": 1}}, targetOutputKey="answer")

    assert ['criteria: expected_output: no "answer": there is no key "answer"'] == problems
