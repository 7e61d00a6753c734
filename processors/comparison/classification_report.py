"""Aggregators of `exact-match`: what its results over many runs say about a set of classes."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from processors.comparison.classification_metrics import (
    ClassMetrics,
    ConfusionMatrix,
    LabelPair,
    Metric,
    label_pairs,
)
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.json_value import JsonObject

_METRICS: dict[str, Metric] = {"precision": "precision", "recall": "recall", "fscore": "f-score"}


class PrecisionAggregator(EvaluatorModel):
    """Precision over all classes."""

    type: Literal["precision"]
    averaging: Literal["macro", "micro"] = Field(description="How the metrics of the classes become one.")


class RecallAggregator(EvaluatorModel):
    """Recall over all classes."""

    type: Literal["recall"]
    averaging: Literal["macro", "micro"] = Field(description="How the metrics of the classes become one.")


class FScoreAggregator(EvaluatorModel):
    """F-score over all classes."""

    type: Literal["fscore"]
    averaging: Literal["macro", "micro"] = Field(description="How the metrics of the classes become one.")
    f_value: float = Field(
        default=1.0, gt=0, le=1000, description="Beta: above 1 recall weighs more, below 1 precision."
    )


class ConfusionMatrixAggregator(EvaluatorModel):
    """The table of predicted against expected classes."""

    type: Literal["confusion_matrix"]


Aggregator: TypeAlias = Annotated[
    PrecisionAggregator | RecallAggregator | FScoreAggregator | ConfusionMatrixAggregator,
    Field(discriminator="type"),
]


def check_classes(classes: Sequence[str] | None) -> None:
    """Raises ValueError unless `classes` can be told apart in results, where case does not count."""
    if not classes:
        raise ValueError("classes: aggregators need the list of all classes")
    for name in classes:
        if not name or name != name.strip():
            raise ValueError(f'classes: "{name[:100]}" is blank or begins or ends with white space')
    if len({name.lower() for name in classes}) != len(classes):
        raise ValueError("classes: two of them differ in case only, and case does not count")


def classification_report(
    classes: Sequence[str], aggregator: Aggregator, details: Sequence[object]
) -> tuple[float | None, JsonObject]:
    """The value of an aggregator over the details of results, and the report behind it.

    Case does not count. A result without a readable pair of classes, or whose expected class is not among
    `classes`, is skipped; one whose predicted class is not among them is a miss of the expected one. A
    confusion matrix has no value.
    """
    pairs = [LabelPair(pair.expected.lower(), pair.predicted.lower()) for pair in label_pairs(details)]
    matrix = ConfusionMatrix(classes, pairs, keep_unknown=True)
    report: JsonObject = {
        "metric": aggregator.type,
        "classes": [*matrix.classes],
        "confusionMatrix": [[*row] for row in matrix.cells],
        "nTotal": len(details),
        "nScored": matrix.counted,
        "nSkipped": len(details) - matrix.counted,
    }
    if isinstance(aggregator, ConfusionMatrixAggregator):
        return None, report
    beta = aggregator.f_value if isinstance(aggregator, FScoreAggregator) else 1.0
    per_class: JsonObject = {}
    for name, counts in zip(matrix.classes, matrix.counts(), strict=True):
        wrong = counts.false_positives + counts.false_negatives
        per_class[name] = {
            "tp": counts.true_positives,
            "tn": matrix.counted - counts.true_positives - wrong,
            "fp": counts.false_positives,
            "fn": counts.false_negatives,
            "support": counts.support,
            **_metrics(counts.metrics(beta)),
        }
    report["averaging"] = aggregator.averaging
    report["fValue"] = beta
    report["perClass"] = per_class
    report["macro"] = _metrics(matrix.macro(beta))
    report["micro"] = _metrics(matrix.micro(beta))
    return matrix.metric(_METRICS[aggregator.type], aggregator.averaging, beta), report


def _metrics(metrics: ClassMetrics) -> JsonObject:
    return {"precision": metrics.precision, "recall": metrics.recall, "fScore": metrics.f_score}
