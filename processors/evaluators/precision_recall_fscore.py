"""Evaluator `precision-recall-fscore`: how well the labels in the output agree with the expected ones."""

import math
from typing import Literal, TypeAlias

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from processors.comparison.label_metrics import Average, LabelMetrics, averaged_metrics, one_label_metrics
from processors.comparison.output_path import WHOLE_OUTPUT, OutputPath, kind_of
from processors.comparison.output_value import is_too_large
from processors.comparison.run_output import known_output
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.agent_run import AgentRun
from processors.model.evaluation_error import EvaluationError
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue
from processors.model.values import parse_json

Label: TypeAlias = StrictStr | StrictInt | StrictFloat

_METRICS = ("precision", "recall", "f-score")
_ZERO_AND_ONE = {0, 1}


class LabelsError(EvaluationError):
    """The output does not hold labels that the expected ones can be held against."""


class PrecisionRecallFscoreConfig(EvaluatorModel):
    """Settings of `precision-recall-fscore`."""

    metric_type: Literal["precision", "recall", "f-score"] = Field(
        default="f-score", description="Which of the three is the score."
    )
    beta: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Above 1 recall weighs more in the F-score, below 1 precision.",
    )
    average: Average = Field(
        default="macro",
        description="Over several labels: macro, their mean; weighted, by how often each is expected; "
        "micro, all taken together.",
    )
    positive_label: Label | None = Field(
        default=None,
        description="The one label that counts. Left out, it is 1 where all labels are 0 or 1 and the "
        "average is macro; else all labels count.",
    )
    zero_division: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Precision of a label that was never given, and recall of one that was never expected.",
    )
    target_output_key: str = Field(
        default=WHOLE_OUTPUT,
        description="Where in the output the list of labels is, such as `labels` or `result.labels`.",
        examples=["labels"],
    )


class PrecisionRecallFscoreCriteria(EvaluatorModel):
    """The labels to expect."""

    expected: list[Label] = Field(
        min_length=1,
        description="The labels to expect, texts or numbers, in the order of the output's.",
        examples=[["spam", "ham", "spam"]],
    )


class PrecisionRecallFscore(Evaluator):
    """Precision, recall or F-score of the labels in the output against the expected ones.

    For one label: precision = hits / times given, recall = hits / times expected, F = (1 + b²) · precision ·
    recall / (b² · precision + recall), 0 where both are 0. With a positive label this is the score, else the
    average over all labels that occur. Labels are equal with their type: "1" is not 1.

    An empty expectation is refused. An output without a list of labels, with one of another length, or
    without the positive label on either side is an error. One that was not captured is not evaluated.

    Example: expected ["spam", "ham"] over the labels ["spam", "spam"], `positive_label: spam` and
    `metric_type: precision`, scores 0.5.
    """

    id = "precision-recall-fscore"
    Config = PrecisionRecallFscoreConfig
    Criteria = PrecisionRecallFscoreCriteria
    example = EvaluatorExample(
        run="output: {labels: [spam, spam]}",
        evaluation="""
            config: {metric_type: precision, positive_label: spam, target_output_key: labels}
            criteria: {expected: [spam, ham]}
        """,
    )

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
            return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, "output: too large to be compared")
        metrics = self._metrics(_labels(value))
        details: JsonObject = dict(zip(_METRICS, metrics, strict=True))
        return Score(metrics[_METRICS.index(self._config.metric_type)], details)

    def _metrics(self, labels: list[str | int | float]) -> LabelMetrics:
        expected, config = self._expected, self._config
        if len(labels) != len(expected):
            raise LabelsError(f"expected {len(expected)} labels, found {len(labels)}")
        occurring = {*expected, *labels}
        positive = config.positive_label
        if positive is None and config.average == "macro" and 1 in occurring <= _ZERO_AND_ONE:
            positive = 1
        if positive is None:
            return averaged_metrics(expected, labels, config.average, config.beta, config.zero_division)
        if positive not in occurring:
            raise LabelsError(
                "the positive label occurs neither among the expected nor among the given labels"
            )
        return one_label_metrics(expected, labels, positive, config.beta, config.zero_division)


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
