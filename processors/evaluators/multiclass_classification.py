"""Evaluator `multiclass-classification`: whether the final output names the expected one of some classes."""

from typing import Literal

from pydantic import Field

from processors.comparison.class_label import ClassificationConfig, PredictedClass
from processors.comparison.output_value import output_line
from processors.documents.evaluator_model import EvaluatorModel
from processors.documents.problem import did_you_mean
from processors.model.agent_run import AgentRun
from processors.model.evaluation_error import EvaluationError
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts

_LISTED_CLASSES = 20


class UnknownClassError(EvaluationError):
    """The output names a class that the configuration does not have."""


class MulticlassClassificationConfig(ClassificationConfig):
    """Settings of `multiclass-classification`."""

    classes: tuple[str, ...] = Field(
        description="All classes; case does not count.", examples=[["refund", "order status", "complaint"]]
    )
    metric_type: Literal["precision", "recall", "f-score"] = Field(
        default="f-score", description="The metric over many results."
    )
    averaging: Literal["micro", "macro"] = Field(
        default="macro", description="How the metrics of the classes become one."
    )


class MulticlassClassificationCriteria(EvaluatorModel):
    """The class to expect."""

    expected_class: str = Field(
        description="The class to expect, one of `classes`; case does not count.", examples=["refund"]
    )


class MulticlassClassification(Evaluator):
    """Whether the class that the output names is the expected one.

    score = 1 when they are equal without regard to case, else 0. Nothing is trimmed. The details hold the
    pair of classes, from which metrics over many results are computed
    (`processors.comparison.classification_metrics`); the settings of the metric do not change the score.

    An output that names none of `classes`, or does not have `target_output_key`, is an error; one that was
    not captured is not evaluated. An expected class outside `classes` is refused.

    Example: classes [refund, complaint], expected class "refund", over the output "complaint"
    scores 0.
    """

    id = "multiclass-classification"
    Config = MulticlassClassificationConfig
    Criteria = MulticlassClassificationCriteria
    example = EvaluatorExample(
        run="output: complaint",
        evaluation="""
            config: {classes: [refund, complaint]}
            criteria: {expected_class: refund}
        """,
    )

    def __init__(
        self, config: MulticlassClassificationConfig, criteria: MulticlassClassificationCriteria
    ) -> None:
        self._predicted = PredictedClass(config)
        self._expected = criteria.expected_class.lower()
        self._classes = frozenset(name.lower() for name in config.classes)
        if self._expected not in self._classes:
            hint = did_you_mean(criteria.expected_class, config.classes)
            raise ValueError(
                f'expected_class: "{output_line(criteria.expected_class)}" is none of the classes{hint}'
            )
        listed = ", ".join(config.classes[:_LISTED_CLASSES])
        self._unknown = f"the output names none of the classes: {output_line(listed)}"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output does not name one of the classes."""
        predicted = self._predicted.in_run(run)
        if isinstance(predicted, NotEvaluated):
            return predicted
        if predicted not in self._classes:
            raise UnknownClassError(self._unknown)
        return Score(
            float(predicted == self._expected),
            {"expected": self._expected, "actual": predicted},
            (f"expected: {output_line(self._expected)}", f"actual: {output_line(predicted)}"),
        )
