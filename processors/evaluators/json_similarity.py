"""Evaluator `json-similarity`: how close the final output comes to an expected value."""

from pydantic import Field
from pydantic import JsonValue as AnyJson

from processors.comparison.leaf_similarity import LeafSimilarity
from processors.comparison.output_comparison import Comparison, OutputComparison
from processors.comparison.output_target import OutputConfig, OutputTarget
from processors.comparison.output_value import with_floats
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue
from processors.model.limits import MAX_EDIT_STEPS


class JsonSimilarityConfig(OutputConfig):
    """Settings of `json-similarity`."""

    max_text_length: int = Field(
        default=10_000,
        ge=0,
        description="Texts with more characters are similar only if they are equal.",
    )


class JsonSimilarityCriteria(EvaluatorModel):
    """The output to expect."""

    expected_output: dict[str, AnyJson] | str = Field(
        description="The output to expect, an object or a text.",
        examples=[{"city": "Oslo", "temperature": 21.5}],
    )


class JsonSimilarity(Evaluator):
    """The share of the leaves of the expected output that the actual output meets.

    score = sum of how far each expected leaf is met / number of expected leaves
    (`processors.comparison.leaf_similarity`); integers count as floats. What the output holds beyond the
    expected is free.

    An expected output without leaves, such as `{}`, scores 1 against anything. An output that does not have
    `target_output_key` is an error, one that was not captured is not evaluated; so is one whose texts take
    more work to compare than is spent on one run.

    Example: {"city": "Oslo", "temperature": 20} over the output {"city": "Oslo", "temperature": 18}
    scores 0.95.
    """

    id = "json-similarity"
    Config = JsonSimilarityConfig
    Criteria = JsonSimilarityCriteria
    example = EvaluatorExample(
        run="output: {city: Oslo, temperature: 18}",
        evaluation="""
            criteria: {expected_output: {city: Oslo, temperature: 20}}
            pass_threshold: 0.9
        """,
    )

    def __init__(self, config: JsonSimilarityConfig, criteria: JsonSimilarityCriteria) -> None:
        self._max_text_length = config.max_text_length
        target = OutputTarget(config.target_output_key)
        expected = with_floats(target.in_expected(criteria.expected_output))
        self._comparison = OutputComparison(config, target, expected, self._begin)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output lacks what is compared."""
        return self._comparison.evaluate(run)

    def _begin(self) -> Comparison:
        similarity = LeafSimilarity(self._max_text_length)

        def compare(actual: JsonValue, expected: JsonValue) -> tuple[float, JsonObject] | NotEvaluated:
            unmeasured_before = similarity.unmeasured
            met, total = similarity.compare(expected, actual)
            if similarity.is_over_limit:
                return NotEvaluated(
                    NotEvaluatedReason.OVER_LIMIT,
                    f"output: texts take more than {MAX_EDIT_STEPS} steps to compare",
                )
            further: JsonObject = {"matched_leaves": met, "total_leaves": total}
            unmeasured = similarity.unmeasured - unmeasured_before
            if unmeasured:
                further["texts_compared_for_equality_only"] = unmeasured
            return min(1.0, met / total) if total else 1.0, further

        return compare
