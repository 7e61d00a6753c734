"""Evaluator `contains`: whether the final output, or a text of the run, holds the expected text."""

from collections.abc import Callable

from pydantic import Field

from processors.comparison.letta_grading import TextGrading
from processors.comparison.output_comparison import OutputComparison
from processors.comparison.output_target import OutputTarget
from processors.comparison.output_value import python_text
from processors.comparison.text_source import EXTRACTOR_SETTINGS, OUTPUT_SETTINGS, OneKeyCriteria, TextConfig
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue

_NO_DETAILS: JsonObject = {}


class ContainsCriteria(OneKeyCriteria):
    """What to look for; exactly one of the keys."""

    search_text: str | None = Field(
        default=None, description="The text to look for in the final output.", examples=["21.5 degrees"]
    )
    ground_truth: str | list[str] | None = Field(
        default=None,
        description="The text to look for in what `config.extractor` finds, case aside; a list: one for "
        "each turn.",
        examples=["New York"],
    )


class Contains(Evaluator):
    """Whether a text of the run holds the expected one.

    score = 1 when it does, else 0. With `search_text`, the text of what `target_output_key` names in the
    output is searched, without regard to case unless `case_sensitive`; an object or list is searched as the
    text that Python prints, with integers as floats. `negated` turns the result around.
    `line_by_line_evaluator` looks for all of `search_text` in each line and takes the mean
    (`processors.comparison.output_comparison`).

    With `ground_truth` the text that the extractor finds is searched, without regard to case
    (`processors.comparison.letta_grading`).

    An empty `search_text` is in every text, so it scores 1 over any output. An output that does not have
    `target_output_key` is an error; one that was not captured is not evaluated.

    Example: {"search_text": "sunny"} over the output "Sunny, 25 degrees"
    scores 1, and 0 when `case_sensitive`.
    """

    id = "contains"
    Config = TextConfig
    Criteria = ContainsCriteria
    example = EvaluatorExample(
        run='output: "Sunny, 25 degrees"',
        evaluation="criteria: {search_text: sunny}",
    )

    def __init__(self, config: TextConfig, criteria: ContainsCriteria) -> None:
        self._case_sensitive = config.case_sensitive
        self._negated = config.negated
        self._grade: Callable[[AgentRun], Score | NotEvaluated]
        if criteria.search_text is not None:
            config.refuse_unused("search_text", OUTPUT_SETTINGS)
            text = criteria.search_text
            self._searched = text if config.case_sensitive else text.lower()
            self._grade = OutputComparison(
                config,
                OutputTarget(config.target_output_key),
                text,
                lambda: self._compare,
                expected_label="not to contain" if config.negated else "to contain",
            ).evaluate
        else:
            config.refuse_unused("ground_truth", EXTRACTOR_SETTINGS)
            self._grade = TextGrading("contains", criteria.ground_truth, config.extraction()).grade

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output lacks what is searched."""
        return self._grade(run)

    def _compare(self, actual: JsonValue, _: JsonValue) -> tuple[float, JsonObject]:
        text = python_text(actual)
        found = self._searched in (text if self._case_sensitive else text.lower())
        return float(found != self._negated), _NO_DETAILS
