"""Evaluator `regex-match`: whether a regular expression is found in a text of the run."""

from collections.abc import Callable
from functools import partial

from pydantic import Field

from processors.comparison.letta_grading import ExtractorSettings, TextGrading
from processors.comparison.output_path import kind_of
from processors.comparison.run_output import known_output
from processors.comparison.text_source import OneKeyCriteria
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.limits import MAX_SEARCHED_CHARACTERS
from processors.texts.linear_regex import LinearPattern, compile_linear


class RegexMatchConfig(ExtractorSettings):
    """Settings of `regex-match`; the extractor belongs to `ground_truth`."""


class RegexMatchCriteria(OneKeyCriteria):
    """What to find: exactly one of the two."""

    ground_truth: str | list[str] | None = Field(
        default=None,
        description="Regular expression to find in the extracted text; a list: one for each turn.",
        examples=[r"ORD-\d{6}"],
    )
    pattern: str | None = Field(
        default=None,
        description="Regular expression to find in the final output, which has to be a text.",
        examples=[r"^\d+$"],
    )


class RegexMatch(Evaluator):
    r"""Whether a regular expression is found anywhere in a text.

    With `ground_truth` the text is what the extractor takes from the run, by default the last answer; an
    empty text scores 0. With a list, expression i is held against turn i alone and the score is the mean.
    With `pattern` the text is the final output, which may be empty. score = 1 when the expression is found,
    else 0. There is no empty expectation. A text that may exist and was not captured is not evaluated.

    Expressions are written as for Python's `re`, without look-around and references to groups
    (`processors.texts.linear_regex`); case counts unless they say `(?i)`.

    Example: ground truth `ORD-\d{6}` over the answer "Your order is ORD-123456." scores 1.
    """

    id = "regex-match"
    Config = RegexMatchConfig
    Criteria = RegexMatchCriteria
    example = EvaluatorExample(
        run="messages: [{role: assistant, content: Your order is ORD-123456.}]",
        evaluation=r"criteria: {ground_truth: 'ORD-\d{6}'}",
    )

    def __init__(self, config: RegexMatchConfig, criteria: RegexMatchCriteria) -> None:
        self._grade: Callable[[AgentRun], Score | NotEvaluated]
        if criteria.pattern is None:
            self._grade = TextGrading("regex_match", criteria.ground_truth, config.extraction()).grade
        elif config.extractor_is_given:
            raise ValueError("pattern reads the final output: an extractor goes with ground_truth only")
        else:
            self._grade = partial(_search_output, compile_linear(criteria.pattern))

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `content_not_captured` where the text may exist but is not known."""
        return self._grade(run)


def _search_output(pattern: LinearPattern, run: AgentRun) -> Score | NotEvaluated:
    output = known_output(run)
    if isinstance(output, NotEvaluated):
        return output
    if not isinstance(output, str):
        text = f"output: expected a text, found {kind_of(output)}"
        return NotEvaluated(NotEvaluatedReason.NOT_APPLICABLE, text)
    if len(output) > MAX_SEARCHED_CHARACTERS:
        text = f"output: more than {MAX_SEARCHED_CHARACTERS} characters"
        return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, text)
    found = pattern.all_matches(output)
    if found == []:
        return Score(0.0, {"matches": 0}, (f"No substrings matched the regex pattern {pattern.pattern}",))
    count = None if found is None else len(found)
    number = "too many to count" if count is None else f"{count}"
    line = f"There are {number} matches for the regex: {pattern.pattern}"
    return Score(1.0, {"matches": count}, (line,))
