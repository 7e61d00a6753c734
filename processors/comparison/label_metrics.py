"""Precision, recall and F-score of one list of labels against another."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple, TypeAlias

Average: TypeAlias = Literal["macro", "micro", "weighted"]


class LabelMetrics(NamedTuple):
    """The three metrics, each from 0 to 1."""

    precision: float
    recall: float
    f_score: float


class _Counts(NamedTuple):
    """What became of one label, or of several taken together."""

    hits: int
    predicted: int
    expected: int

    def metrics(self, beta: float, zero_division: float) -> LabelMetrics:
        precision = self.hits / self.predicted if self.predicted else zero_division
        recall = self.hits / self.expected if self.expected else zero_division
        weight = beta * beta
        divisor = weight * precision + recall
        f_score = (1 + weight) * precision * recall / divisor if divisor else 0.0
        return LabelMetrics(precision, recall, min(f_score, 1.0))


def one_label_metrics(
    expected: Sequence[Hashable],
    predicted: Sequence[Hashable],
    label: Hashable,
    beta: float,
    zero_division: float,
) -> LabelMetrics:
    """How well one label was found; `zero_division` stands in where a denominator is zero."""
    hits = sum(1 for wanted, given in zip(expected, predicted, strict=True) if wanted == label == given)
    counts = _Counts(hits, list(predicted).count(label), list(expected).count(label))
    return counts.metrics(beta, zero_division)


def averaged_metrics(
    expected: Sequence[Hashable],
    predicted: Sequence[Hashable],
    average: Average,
    beta: float,
    zero_division: float,
) -> LabelMetrics:
    """The metrics over all labels that occur; both lists have one length and are not empty.

    `macro` is the mean over labels and `weighted` the mean weighted by how often a label is expected, also
    of the F-score; `micro` takes all labels together.
    """
    hits = Counter(wanted for wanted, given in zip(expected, predicted, strict=True) if wanted == given)
    wanted_times, given_times = Counter(expected), Counter(predicted)
    if average == "micro":
        return _Counts(hits.total(), len(predicted), len(expected)).metrics(beta, zero_division)
    labels = list(dict.fromkeys((*expected, *predicted)))
    each = [
        _Counts(hits[label], given_times[label], wanted_times[label]).metrics(beta, zero_division)
        for label in labels
    ]
    weights = [wanted_times[label] for label in labels] if average == "weighted" else [1] * len(labels)
    total = sum(weights)
    means = [
        sum(weight * value for weight, value in zip(weights, values, strict=True)) / total
        for values in zip(*each, strict=True)
    ]
    return LabelMetrics(*[min(mean, 1.0) for mean in means])
