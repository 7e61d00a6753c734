"""Classes that outputs name: the metrics of one, and how many results are aggregated over all.

An aggregator does not change a score. A result counts for it by the texts `expected` and `actual` in its
details, as `exact-match`, `binary-classification` and `multiclass-classification` leave them.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from processors.documents import EvaluatorModel


class ClassMetrics(NamedTuple):
    """Precision, recall and F-score, each in [0, 1]."""

    precision: float
    recall: float
    f_score: float


def class_metrics(
    hits: int, predicted: int, expected: int, beta: float = 1.0, zero_division: float = 0.0
) -> ClassMetrics:
    """The metrics of a class that was predicted and expected so often, `hits` times rightly.

    `beta` weighs recall that many times as much as precision in the F-score. `zero_division` stands in for
    precision or recall that would be divided by zero.
    """
    precision = hits / predicted if predicted else zero_division
    recall = hits / expected if expected else zero_division
    squared = beta * beta
    weighted = squared * precision + recall
    f_score = (1 + squared) * precision * recall / weighted if weighted > 0 else 0.0
    return ClassMetrics(precision, recall, min(f_score, 1.0))


class AveragedAggregator(EvaluatorModel):
    """Precision or recall over all classes."""

    type: Literal["precision", "recall"]
    averaging: Literal["macro", "micro"]
    """How the metrics of the classes become one."""


class FScoreAggregator(EvaluatorModel):
    """F-score over all classes."""

    type: Literal["fscore"]
    averaging: Literal["macro", "micro"]
    """How the metrics of the classes become one."""
    f_value: float = Field(default=1.0, gt=0, le=1000)
    """Beta: above 1 recall weighs more, below 1 precision."""


class ConfusionMatrixAggregator(EvaluatorModel):
    """The table of predicted against expected classes."""

    type: Literal["confusion_matrix"]


Aggregator: TypeAlias = Annotated[
    AveragedAggregator | FScoreAggregator | ConfusionMatrixAggregator, Field(discriminator="type")
]


def check_classes(classes: Sequence[str] | None) -> None:
    """Raises ValueError unless `classes` differ in results, where case does not count."""
    if not classes:
        raise ValueError("classes: aggregators need the list of all classes")
    for name in classes:
        if not name or name != name.strip():
            raise ValueError(f'classes: "{name[:100]}" is blank or begins or ends with white space')
    if len({name.lower() for name in classes}) != len(classes):
        raise ValueError("classes: two of them differ in case only, and case does not count")
