"""Evaluator `binary-classification`: whether the final output names the expected one of two classes."""

from typing import Literal

from pydantic import Field

from processors.comparison.class_label import ClassificationConfig, PredictedClass
from processors.comparison.output_value import output_detail, output_line
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts


class BinaryClassificationConfig(ClassificationConfig):
    """Settings of `binary-classification`."""

    positive_class: str = Field(
        min_length=1, description="The class whose precision and recall count.", examples=["spam"]
    )
    metric_type: Literal["precision", "recall", "f-score"] = Field(
        default="precision", description="The metric over many results."
    )


class BinaryClassificationCriteria(EvaluatorModel):
    """The class to expect."""

    expected_class: str = Field(description="The class to expect; case does not count.", examples=["spam"])


class BinaryClassification(Evaluator):
    """Whether the class that the output names is the expected one.

    score = 1 when they are equal without regard to case, else 0. Nothing is trimmed. The details hold the
    pair of classes, from which metrics over many results are computed
    (`processors.comparison.classification_metrics`); the settings of the metric do not change the score.

    An output that does not have `target_output_key` is an error; one that was not captured is not
    evaluated.

    Example: expected class "spam", `target_output_key: label`, over the output {"label": "Spam"}
    scores 1.
    """

    id = "binary-classification"
    Config = BinaryClassificationConfig
    Criteria = BinaryClassificationCriteria
    example = EvaluatorExample(
        run="output: {label: Spam}",
        evaluation="""
            config: {positive_class: spam, target_output_key: label}
            criteria: {expected_class: spam}
        """,
    )

    def __init__(self, config: BinaryClassificationConfig, criteria: BinaryClassificationCriteria) -> None:
        self._predicted = PredictedClass(config)
        self._expected = criteria.expected_class.lower()

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output does not have the key."""
        predicted = self._predicted.in_run(run)
        if isinstance(predicted, NotEvaluated):
            return predicted
        return Score(
            float(predicted == self._expected),
            {"expected": self._expected, "actual": output_detail(predicted)},
            (f"expected: {output_line(self._expected)}", f"actual: {output_line(predicted)}"),
        )
