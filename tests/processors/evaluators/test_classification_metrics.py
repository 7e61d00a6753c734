"""Metrics over many results: the reference package's numbers, and what it takes for them to be computed."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from processors.evaluators.output_match import Aggregator, ExactMatchConfig
from tests.support.classification_report import (
    ClassCounts,
    ConfusionMatrix,
    LabelPair,
    binary_metric,
    classification_report,
    label_pairs,
    mean_score,
)
from tests.support.parity import Case, load_cases

_AGGREGATOR: TypeAdapter[Aggregator] = TypeAdapter(Aggregator)


def _approximately(value: Any) -> Any:
    """`value` with its numbers compared within 1e-9."""
    if isinstance(value, dict):
        return {key: _approximately(member) for key, member in value.items()}
    return pytest.approx(value, abs=1e-9) if isinstance(value, float) else value


def _of(evaluator: str) -> list[Case]:
    return [case for case in load_cases("aggregate") if case["evaluator"] == evaluator]


def _details(case: Case) -> list[object]:
    return [result["details"] for result in case["results"]]


@pytest.mark.parametrize("case", _of("uipath-binary-classification"), ids=lambda case: str(case["id"]))
def test_a_metric_of_one_class_is_that_of_the_reference(case: Case) -> None:
    config = case["config"]

    value = binary_metric(
        label_pairs(_details(case)), config["positiveClass"], config["metricType"], config["fValue"]
    )

    assert pytest.approx(case["expected"]["score"], abs=1e-9) == value


@pytest.mark.parametrize("case", _of("uipath-multiclass-classification"), ids=lambda case: str(case["id"]))
def test_a_metric_over_classes_is_that_of_the_reference(case: Case) -> None:
    config = case["config"]

    matrix = ConfusionMatrix(config["classes"], label_pairs(_details(case)), keep_unknown=False)

    value = matrix.metric(config["metricType"], config["averaging"], config["fValue"])
    assert pytest.approx(case["expected"]["score"], abs=1e-9) == value


@pytest.mark.parametrize("case", _of("uipath-dataset-aggregator"), ids=lambda case: str(case["id"]))
def test_a_report_is_that_of_the_reference(case: Case) -> None:
    config, expected = case["config"], case["expected"]

    value, report = classification_report(
        config["classes"], _AGGREGATOR.validate_python(config["aggregator"]), _details(case)
    )

    if config["aggregator"]["type"] == "confusion_matrix":
        assert value is None  # where the reference has a 0 that is no score
    else:
        assert pytest.approx(expected["score"], abs=1e-9) == value
    assert _approximately(expected["details"]) == report


def test_cases_of_all_reductions_are_there() -> None:
    assert 290 < len(load_cases("aggregate"))
    assert {
        "uipath-binary-classification",
        "uipath-multiclass-classification",
        "uipath-dataset-aggregator",
    } == {case["evaluator"] for case in load_cases("aggregate")}


def test_results_without_a_pair_of_texts_are_skipped() -> None:
    details = [
        None,
        "text",
        {},
        {"expected": "a"},
        {"expected": 1, "actual": "a"},
        {"expected": "a", "actual": "b"},
    ]

    assert [LabelPair("a", "b")] == list(label_pairs(details))


def test_metrics_without_cases_are_0() -> None:
    empty = ConfusionMatrix([], [], keep_unknown=True)

    assert 0.0 == ClassCounts().metrics().f_score
    assert 0.0 == empty.metric("precision", "macro")
    assert 0.0 == empty.metric("recall", "micro")
    assert 0.0 == mean_score([])


def test_rows_are_predicted_and_columns_expected_classes() -> None:
    pairs = [LabelPair("ham", "spam"), LabelPair("ham", "spam"), LabelPair("spam", "spam")]

    matrix = ConfusionMatrix(["Ham", "Spam"], pairs, keep_unknown=True)

    assert [[0, 0], [2, 1]] == matrix.cells
    assert [ClassCounts(0, 0, 2), ClassCounts(1, 2, 0)] == matrix.counts()


def test_a_prediction_outside_the_classes_is_a_miss_only_where_unknown_ones_are_kept() -> None:
    pairs = [LabelPair("ham", "eggs")]

    kept = ConfusionMatrix(["ham"], pairs, keep_unknown=True)
    dropped = ConfusionMatrix(["ham"], pairs, keep_unknown=False)

    assert [ClassCounts(0, 0, 1)] == kept.counts()
    assert [ClassCounts(0, 0, 0)] == dropped.counts()
    assert (1, 0) == (kept.counted, dropped.counted)


def test_a_pair_that_expects_an_unknown_class_is_not_counted() -> None:
    matrix = ConfusionMatrix(["ham"], [LabelPair("eggs", "ham")], keep_unknown=True)

    assert 0 == matrix.counted
    assert [ClassCounts(0, 0, 0)] == matrix.counts()


@pytest.mark.parametrize("classes", [None, [], ["a", ""], ["a", " b"], ["a", "A"]])
def test_classes_that_cannot_be_told_apart_are_refused(classes: list[str] | None) -> None:
    with pytest.raises(ValueError, match="classes"):
        ExactMatchConfig.model_validate({"aggregators": [{"type": "confusion_matrix"}], "classes": classes})
