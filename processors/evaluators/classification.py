"""Evaluators of classes and labels that the final output names.

`binary-classification`, `multiclass-classification` and `precision-recall-fscore`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from processors.comparison import (
    MASKED_OUTPUT,
    WHOLE_OUTPUT,
    OutputConfig,
    OutputPath,
    OutputTarget,
    is_too_large,
    kind_of,
    known_output,
    output_detail,
    output_line,
    python_text,
)
from processors.documents import EvaluatorModel, did_you_mean
from processors.model import (
    AgentRun,
    EvaluationError,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    contains_mask,
    has_mask,
    is_digest,
    parse_json,
)

_LISTED_CLASSES = 20


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


class ClassificationConfig(OutputConfig):
    """What evaluators of classifications share; the metric is one over many results."""

    f_value: float = Field(default=1.0, allow_inf_nan=False)
    """Beta of the F-score: above 1 recall weighs more, below 1 precision."""


class ClassificationCriteria(EvaluatorModel):
    """The class to expect."""

    expected_class: str = Field(examples=["refund"])
    """The class to expect; case does not count."""


class UnknownClassError(EvaluationError):
    """The output names a class that the configuration does not have."""


class _Classification(Evaluator):
    """The text at `target_output_key`, in lower case and not trimmed, compared with the expected class.

    An output that names none of `classes` is an error, unless these are empty.
    """

    needs_calls = False

    def __init__(
        self, config: ClassificationConfig, criteria: ClassificationCriteria, classes: Sequence[str] = ()
    ) -> None:
        if config.line_by_line_evaluator and isinstance(config.target_output_key, str):
            raise ValueError("line_by_line_evaluator: an output names one class, not one in each line")
        self._target = OutputTarget(config.target_output_key)
        self._expected = criteria.expected_class.lower()
        self._classes = frozenset(name.lower() for name in classes)
        listed = output_line(", ".join(classes[:_LISTED_CLASSES]))
        self._unknown = f"the output names none of the classes: {listed}"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output lacks the key, or names an unknown class."""
        value = self._target.in_run(run)
        if isinstance(value, NotEvaluated):
            return value
        predicted = python_text(value)
        if has_mask(predicted) or (is_digest(predicted) and not is_digest(self._expected)):
            return MASKED_OUTPUT
        predicted = predicted.lower()
        if self._classes and predicted not in self._classes:
            raise UnknownClassError(self._unknown)
        return Score(
            float(predicted == self._expected),
            {
                "expected": self._expected,
                "actual": predicted if self._classes else output_detail(predicted),
            },
            (f"expected: {output_line(self._expected)}", f"actual: {output_line(predicted)}"),
        )


class BinaryClassificationConfig(ClassificationConfig):
    """Settings of `binary-classification`."""

    positive_class: str = Field(min_length=1, examples=["spam"])
    """The class whose precision and recall count."""
    metric_type: Literal["precision", "recall", "f-score"] = "precision"
    """The metric over many results."""


class BinaryClassification(_Classification):
    """Whether the class that the output names is the expected one.

    score = 1 when they are equal without regard to case, else 0. Nothing is trimmed. The details contain both
    classes, for metrics over many results; the settings of the metric do not change the score.
    """

    id = "binary-classification"
    Config = BinaryClassificationConfig


class MulticlassClassificationConfig(ClassificationConfig):
    """Settings of `multiclass-classification`."""

    classes: tuple[str, ...] = Field(examples=[["refund", "order status", "complaint"]])
    """All classes; case does not count."""
    metric_type: Literal["precision", "recall", "f-score"] = "f-score"
    """The metric over many results."""
    averaging: Literal["micro", "macro"] = "macro"
    """How the metrics of the classes become one."""


class MulticlassClassification(_Classification):
    """Whether the class that the output names is the expected one.

    score = 1 when they are equal without regard to case, else 0. Nothing is trimmed. The details contain both
    classes, for metrics over many results; the settings of the metric do not change the score.

    An output that names none of `classes` is an error. An expected class outside `classes` is refused.
    """

    id = "multiclass-classification"

    def __init__(self, config: MulticlassClassificationConfig, criteria: ClassificationCriteria) -> None:
        super().__init__(config, criteria, config.classes)
        if self._expected not in self._classes:
            hint = did_you_mean(criteria.expected_class, config.classes)
            raise ValueError(
                f'expected_class: "{output_line(criteria.expected_class)}" is none of the classes{hint}'
            )


Label: TypeAlias = StrictStr | StrictInt | StrictFloat

_METRICS = ("precision", "recall", "f-score")
_ZERO_AND_ONE = {0, 1}


class LabelsError(EvaluationError):
    """The output does not contain labels that can be compared with the expected ones."""


class PrecisionRecallFscoreConfig(EvaluatorModel):
    """Settings of `precision-recall-fscore`."""

    metric_type: Literal["precision", "recall", "f-score"] = "f-score"
    """Which of the three is the score."""
    beta: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Above 1 recall weighs more in the F-score, below 1 precision."""
    average: Literal["macro", "micro", "weighted"] = "macro"
    """Over several labels: macro, their mean; weighted, by how often each is expected; micro, all taken
    together."""
    positive_label: Label | None = None
    """The one label that counts. Left out, it is 1 where all labels are 0 or 1 and the average is macro; else
    all labels count."""
    zero_division: float = Field(default=0.0, ge=0, le=1)
    """Precision of a label that was never given, and recall of one that was never expected."""
    target_output_key: str = Field(default=WHOLE_OUTPUT, examples=["labels"])
    """Where in the output the list of labels is, such as `labels` or `result.labels`."""


class PrecisionRecallFscoreCriteria(EvaluatorModel):
    """The labels to expect."""

    expected: list[Label] = Field(min_length=1, examples=[["spam", "ham", "spam"]])
    """The labels to expect, texts or numbers, in the order of the output's."""


class PrecisionRecallFscore(Evaluator):
    """Precision, recall or F-score of the labels in the output against the expected ones.

    For one label: precision = hits / times given, recall = hits / times expected, F = (1 + b²) · precision ·
    recall / (b² · precision + recall), 0 where both are 0. With a positive label this is the score, else the
    average over all labels that occur. Labels are equal with their type: "1" is not 1.

    An empty expectation is refused. An output without a list of labels, with one of another length, or
    without the positive label on either side is an error.
    """

    id = "precision-recall-fscore"
    needs_calls = False

    def __init__(self, config: PrecisionRecallFscoreConfig, criteria: PrecisionRecallFscoreCriteria) -> None:
        for number in (config.positive_label, *criteria.expected):
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"expected labels that are texts or finite numbers, found {number}")
        self._config = config
        self._path = OutputPath(config.target_output_key)
        self._expected = criteria.expected

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output does not hold the labels."""
        output = known_output(run)
        if isinstance(output, NotEvaluated):
            return output
        value = self._path.resolve(output)
        if is_too_large(value):
            return NotEvaluated.over_limit("output: too large to be compared")
        if contains_mask(value):
            return MASKED_OUTPUT
        metrics = self._metrics(_labels(value))
        details: JsonObject = dict(zip(_METRICS, metrics, strict=True))
        return Score(metrics[_METRICS.index(self._config.metric_type)], details)

    def _metrics(self, labels: list[str | int | float]) -> ClassMetrics:
        """The metrics of one label, or over all that occur.

        For `macro` and `weighted` the F-score too is a mean over labels.
        """
        expected, config = self._expected, self._config
        if len(labels) != len(expected):
            raise LabelsError(f"expected {len(expected)} labels, found {len(labels)}")
        occurring = {*expected, *labels}
        positive = config.positive_label
        if positive is None and config.average == "macro" and 1 in occurring <= _ZERO_AND_ONE:
            positive = 1
        hits = Counter(label for label, predicted in zip(expected, labels, strict=True) if label == predicted)
        predicted_times, expected_times = Counter(labels), Counter(expected)

        metrics = partial(class_metrics, beta=config.beta, zero_division=config.zero_division)

        def of_label(label: str | int | float) -> ClassMetrics:
            return metrics(hits[label], predicted_times[label], expected_times[label])

        if positive is not None:
            if positive not in occurring:
                raise LabelsError(
                    "the positive label occurs neither among the expected nor among the given labels"
                )
            return of_label(positive)
        if config.average == "micro":
            return metrics(hits.total(), len(labels), len(expected))
        each = list(dict.fromkeys((*expected, *labels)))
        weights = [expected_times[label] if config.average == "weighted" else 1 for label in each]
        means = [
            sum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)
            for values in zip(*map(of_label, each), strict=True)
        ]
        return ClassMetrics(*[min(mean, 1.0) for mean in means])


def _labels(value: JsonValue) -> list[str | int | float]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            raise LabelsError("expected a list of labels, found a text") from None
    if not isinstance(value, list):
        raise LabelsError(f"expected a list of labels, found {kind_of(value)}")
    labels: list[str | int | float] = []
    for label in value:
        if isinstance(label, bool) or not isinstance(label, str | int | float):
            raise LabelsError(f"expected labels that are texts or numbers, found {kind_of(label)}")
        labels.append(label)
    return labels
