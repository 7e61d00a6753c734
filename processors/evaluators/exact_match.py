"""Evaluator `exact-match`: whether the final output, or a text of the run, is the expected one."""

from collections.abc import Callable
from functools import partial

from pydantic import Field, model_validator

from processors.comparison.classification_report import Aggregator, check_classes
from processors.comparison.expected_value import Expected, compile_expected, fits, matching_cost
from processors.comparison.json_schema_check import SchemaTooComplexError
from processors.comparison.letta_grading import TextGrading
from processors.comparison.output_comparison import Comparison, OutputComparison
from processors.comparison.output_path import kind_of
from processors.comparison.output_target import OutputTarget
from processors.comparison.output_value import output_detail, output_line, python_text, with_floats
from processors.comparison.run_output import known_output
from processors.comparison.text_source import EXTRACTOR_SETTINGS, OUTPUT_SETTINGS, OneKeyCriteria, TextConfig
from processors.documents.evaluator_model import ExpectedObject
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue
from processors.model.limits import MAX_MATCHED_CHARACTERS

_NO_DETAILS: JsonObject = {}


class ExactMatchConfig(TextConfig):
    """Settings of `exact-match`."""

    classes: tuple[str, ...] | None = Field(
        default=None, description="All classes that aggregators speak of; case does not count."
    )
    aggregators: tuple[Aggregator, ...] | None = Field(
        default=None,
        description="Metrics over many results, where outputs name classes. They do not change the score.",
        examples=[[{"type": "fscore", "averaging": "macro"}]],
    )

    @model_validator(mode="after")
    def _aggregators_can_be_computed(self) -> "ExactMatchConfig":
        if self.aggregators:
            check_classes(self.classes)
            for name in ("line_by_line_evaluator", "case_sensitive", "negated"):
                if getattr(self, name):
                    raise ValueError(f"aggregators: cannot be computed from results with {name}")
        return self


class ExactMatchCriteria(OneKeyCriteria):
    """What to expect; exactly one of the keys."""

    expected_output: ExpectedObject | str | None = Field(
        default=None,
        description="The final output to expect: a text, or an object, matchers such as {$range: [0, 30]} "
        "among its values.",
        examples=[{"city": "Oslo", "temperature": 21.5}],
    )
    ground_truth: str | list[str] | None = Field(
        default=None,
        description="The text that `config.extractor` should find, white space around it aside; a list: one "
        "for each turn.",
        examples=["4"],
    )
    expected: str | None = Field(
        default=None, description="The final output to expect, a text that is compared as it stands."
    )


class ExactMatch(Evaluator):
    """Whether a text or value of the run equals the expected one.

    score = 1 when it does, else 0. With `expected_output`, what `target_output_key` names in the output is
    compared: as texts, without regard to case unless `case_sensitive`, where either side is a text (any
    other value becomes the text that Python prints), else by value. Integers count as floats, and true is
    1. `negated` turns the result around. `line_by_line_evaluator` takes the mean over lines
    (`processors.comparison.output_comparison`). An expected object with matchers in it is met as
    `processors.comparison.expected_value` says: case counts there, and a boolean is no number.

    With `expected` the output must be that text, character by character. With `ground_truth` the text that
    the extractor finds is compared, both sides trimmed (`processors.comparison.letta_grading`).

    There is no empty expectation: an empty expected text equals the empty output. An output that does not
    have `target_output_key` is an error; one that was not captured is not evaluated.

    Example: {"expected_output": {"total": 3}} over the output {"total": 3.0}
    scores 1; {"expected_output": "It is warm."} over the output "it is warm." too.
    """

    id = "exact-match"
    Config = ExactMatchConfig
    Criteria = ExactMatchCriteria
    example = EvaluatorExample(
        run="output: {total: 3.0}",
        evaluation="criteria: {expected_output: {total: 3}}",
    )

    def __init__(self, config: ExactMatchConfig, criteria: ExactMatchCriteria) -> None:
        self._case_sensitive = config.case_sensitive
        self._negated = config.negated
        self._grade: Callable[[AgentRun], Score | NotEvaluated]
        if criteria.expected_output is not None:
            config.refuse_unused("expected_output", OUTPUT_SETTINGS | {"classes", "aggregators"})
            self._grade = self._of_output(config, criteria.expected_output)
        elif criteria.ground_truth is not None:
            config.refuse_unused("ground_truth", EXTRACTOR_SETTINGS)
            self._grade = TextGrading("exact_match", criteria.ground_truth, config.extraction()).grade
        else:
            config.refuse_unused("expected", ())
            self._text = criteria.expected
            self._grade = self._grade_text

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output lacks what is compared."""
        return self._grade(run)

    def _of_output(
        self, config: ExactMatchConfig, written: JsonObject | str
    ) -> Callable[[AgentRun], Score | NotEvaluated]:
        target = OutputTarget(config.target_output_key)
        expected = target.in_expected(written)
        compiled = expected if isinstance(written, str) else compile_expected(expected)
        compare: Comparison
        if compiled is expected:
            expected = with_floats(expected)
            compare = self._compare
        else:
            if config.line_by_line_evaluator and target.path is not None:
                raise ValueError("expected_output: a matcher stands for a value, not for lines")
            compare = partial(self._match, compiled, matching_cost(compiled))
        label = "not expected" if config.negated else "expected"
        return OutputComparison(config, target, expected, lambda: compare, expected_label=label).evaluate

    def _match(
        self, matching: Expected, cost: int, actual: JsonValue, _: JsonValue
    ) -> tuple[float, JsonObject] | NotEvaluated:
        try:
            if cost * len(python_text(actual)) <= MAX_MATCHED_CHARACTERS:
                return float(fits(matching, actual) != self._negated), _NO_DETAILS
        except SchemaTooComplexError:
            pass
        return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, "output: takes too much work to match")

    def _compare(self, actual: JsonValue, expected: JsonValue) -> tuple[float, JsonObject]:
        if isinstance(actual, str) or isinstance(expected, str):
            left, right = python_text(actual), python_text(expected)
            equal = left == right if self._case_sensitive else left.lower() == right.lower()
        else:
            equal = actual == expected
        return float(equal != self._negated), _NO_DETAILS

    def _grade_text(self, run: AgentRun) -> Score | NotEvaluated:
        output = known_output(run)
        if isinstance(output, NotEvaluated):
            return output
        if not isinstance(output, str):
            return NotEvaluated(
                NotEvaluatedReason.NOT_APPLICABLE, f"output: expected a text, found {kind_of(output)}"
            )
        return Score(
            float(output == self._text),
            {"expected": output_detail(self._text), "actual": output_detail(output)},
            (f"expected: {output_line(self._text)}", f"actual: {output_line(output)}"),
        )
