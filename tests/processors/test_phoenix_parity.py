"""The code evaluators against arize-phoenix-evals' results, through criteria files and lines of runs."""

from typing import Any

import pytest

from processors.model import EvaluationResult, Outcome
from tests.support.parity import Case, load_cases
from tests.support.run_lines import results_of

_METRICS = ("precision", "recall", "f-score")
_CARRIED_OVER = ("beta", "average", "positive_label", "zero_division")


def _cases(evaluator: str) -> list[Case]:
    return [case for case in load_cases("phoenix_code") if case["evaluator"] == f"phoenix-{evaluator}"]


def _results(case: Case, output: object, *evaluations: dict[str, Any]) -> list[EvaluationResult] | None:
    return results_of({"agent": {"name": case["id"]}, "output": output}, *evaluations)


def _expect(case: Case, results: list[EvaluationResult] | None) -> None:
    if case["expected"]["status"] == "error":
        assert results is None or all(
            result.score is None and result.outcome in (Outcome.ERROR, Outcome.NOT_EVALUATED)
            for result in results
        )
        return
    assert results is not None
    scores = [score["score"] for score in case["expected"]["scores"]]
    assert pytest.approx(scores, abs=1e-9) == [result.score for result in results]


@pytest.mark.parametrize("case", _cases("exact-match"), ids=lambda case: str(case["id"]))
def test_exact_match_ends_as_the_reference_does(case: Case) -> None:
    criteria = {key: value for key, value in case["input"].items() if key == "expected"}

    results = _results(case, case["input"]["output"], {"evaluator": "exact-match", "criteria": criteria})

    _expect(case, results)


@pytest.mark.parametrize("case", _cases("matches-regex"), ids=lambda case: str(case["id"]))
def test_regex_ends_as_the_reference_does(case: Case) -> None:
    criteria = {"pattern": case["config"]["pattern"]}

    results = _results(case, case["input"]["output"], {"evaluator": "regex-match", "criteria": criteria})

    _expect(case, results)
    if results is not None and case["expected"]["status"] == "ok":
        explanation = case["expected"]["scores"][0]["explanation"]
        assert results[0].explanation == explanation or explanation is None


@pytest.mark.parametrize("case", _cases("precision-recall-fscore"), ids=lambda case: str(case["id"]))
def test_precision_recall_and_f_score_are_those_of_the_reference(case: Case) -> None:
    settings = {key: value for key, value in case["config"].items() if key in _CARRIED_OVER}
    evaluations = [
        {
            "evaluator": "precision-recall-fscore",
            "name": metric,
            "config": {**settings, "metric_type": metric, "target_output_key": "labels"},
            "criteria": {"expected": case["input"]["expected"]},
        }
        for metric in _METRICS
    ]

    results = _results(case, {"labels": case["input"]["output"]}, *evaluations)

    _expect(case, results)


def test_cases_of_all_three_evaluators_are_there() -> None:
    assert 416 == sum(map(len, map(_cases, ("exact-match", "matches-regex", "precision-recall-fscore"))))
