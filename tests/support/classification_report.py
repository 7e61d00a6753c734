"""The metrics over many results that the reference package computes, from the details of its results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from processors.evaluators.classification import ClassMetrics, class_metrics
from processors.evaluators.output_match import Aggregator, ConfusionMatrixAggregator, FScoreAggregator
from processors.model import JsonObject

Metric = Literal["precision", "recall", "f-score"]
Averaging = Literal["macro", "micro"]


class LabelPair(NamedTuple):
    """The expected and the predicted class of one run."""

    expected: str
    predicted: str


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """How often one class was rightly predicted, wrongly predicted and missed."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0

    @property
    def support(self) -> int:
        """The number of results that this class was expected of."""
        return self.true_positives + self.false_negatives

    def metrics(self, beta: float = 1.0) -> ClassMetrics:
        """Precision, recall and the F-score with `beta`."""
        predicted = self.true_positives + self.false_positives
        return class_metrics(self.true_positives, predicted, self.support, beta)


def value_of(metrics: ClassMetrics, metric: Metric) -> float:
    """The one that `metric` names."""
    return dict(zip(("precision", "recall", "f-score"), metrics, strict=True))[metric]


def label_pairs(details: Iterable[object]) -> Iterator[LabelPair]:
    """The pairs in the details of results; details that hold none are left out."""
    for entry in details:
        if isinstance(entry, dict):
            expected, predicted = entry.get("expected"), entry.get("actual")
            if isinstance(expected, str) and isinstance(predicted, str):
                yield LabelPair(expected, predicted)


def mean_score(scores: Sequence[float]) -> float:
    """The mean of `scores`, 0 without any: the reduction of every evaluator that has no other."""
    return sum(scores) / len(scores) if scores else 0.0


def binary_metric(
    pairs: Iterable[LabelPair], positive_class: str, metric: Metric, beta: float = 1.0
) -> float:
    """A metric of one class; of `positive_class` case does not count, pairs are in lower case."""
    positive = positive_class.lower()
    right = wrong = missed = 0
    for expected, predicted in pairs:
        if predicted == positive:
            right += expected == positive
            wrong += expected != positive
        elif expected == positive:
            missed += 1
    return value_of(ClassCounts(right, wrong, missed).metrics(beta), metric)


class ConfusionMatrix:
    """How often each class was predicted where each class was expected.

    `cells[p][e]` counts the results that predicted class number p where class number e was expected, in the
    order of `classes`. A pair whose expected class is not among `classes` is not counted.
    """

    def __init__(self, classes: Sequence[str], pairs: Iterable[LabelPair], *, keep_unknown: bool) -> None:
        """Count `pairs`.

        Args:
            classes: The classes; case does not count.
            pairs: Pairs in lower case.
            keep_unknown: A predicted class that is not among `classes` counts as a miss of the expected
                one; otherwise its pair is not counted.
        """
        self.classes = tuple(classes)
        self.cells = [[0] * len(self.classes) for _ in self.classes]
        self.counted = 0
        self._unknown = [0] * len(self.classes)
        numbers: dict[str, int] = {}
        for number, name in enumerate(self.classes):
            numbers.setdefault(name.lower(), number)
        for expected, predicted in pairs:
            column, row = numbers.get(expected), numbers.get(predicted)
            if column is None or (row is None and not keep_unknown):
                continue
            self.counted += 1
            if row is None:
                self._unknown[column] += 1
            else:
                self.cells[row][column] += 1

    def counts(self) -> list[ClassCounts]:
        """The counts of each class, in the order of `classes`."""
        found = []
        for number, row in enumerate(self.cells):
            right = row[number]
            expected = sum(other[number] for other in self.cells) + self._unknown[number]
            found.append(ClassCounts(right, sum(row) - right, expected - right))
        return found

    def macro(self, beta: float = 1.0) -> ClassMetrics:
        """The unweighted mean of the metrics of all classes; 0 without classes."""
        metrics = [counts.metrics(beta) for counts in self.counts()]
        return ClassMetrics(
            mean_score([entry.precision for entry in metrics]),
            mean_score([entry.recall for entry in metrics]),
            mean_score([entry.f_score for entry in metrics]),
        )

    def micro(self, beta: float = 1.0) -> ClassMetrics:
        """The metrics of the counts of all classes taken together."""
        counts = self.counts()
        return ClassCounts(
            sum(entry.true_positives for entry in counts),
            sum(entry.false_positives for entry in counts),
            sum(entry.false_negatives for entry in counts),
        ).metrics(beta)

    def metric(self, metric: Metric, averaging: Averaging, beta: float = 1.0) -> float:
        """One metric over all classes."""
        return value_of(self.macro(beta) if averaging == "macro" else self.micro(beta), metric)


_METRICS: dict[str, Metric] = {"precision": "precision", "recall": "recall", "fscore": "f-score"}


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
