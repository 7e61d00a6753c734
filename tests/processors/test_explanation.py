from hypothesis import given
from hypothesis import strategies as st

from processors.criteria import Evaluation
from processors.evaluate import finish
from processors.evaluators.tool_policy import SingleToolUse, SingleToolUseConfig, SingleToolUseCriteria
from processors.model import Score

_EVALUATOR = SingleToolUse(SingleToolUseConfig(), SingleToolUseCriteria(tool_name="search"))


def explanation(score: Score) -> str:
    return finish(Evaluation(name="n", evaluator=_EVALUATOR), score).explanation


def test_lines_are_joined_by_semicolons() -> None:
    score = Score(0.5, {"ignored": 1}, ("a: Actual: 1, Expected: 2, Score: 0.0", "b: fine"))

    assert "a: Actual: 1, Expected: 2, Score: 0.0; b: fine" == explanation(score)


def test_without_lines_the_details_are_told_objects_member_by_member() -> None:
    score = Score(0.5, {"explained": {"a": "one", "b": "two"}, "lcs": ["x"]})

    assert "a: one; b: two; lcs: ['x']" == explanation(score)


def test_what_is_too_long_is_cut_and_ends_with_an_ellipsis() -> None:
    fits = explanation(Score(1.0, {}, ("x" * 1024,)))
    cut = explanation(Score(1.0, {}, ("x" * 1024, "y")))

    assert "x" * 1024 == fits
    assert "x" * 1023 + "…" == cut


@given(st.lists(st.text(st.characters(codec=None), max_size=300), max_size=9))
def test_an_explanation_is_short_and_can_be_encoded(lines: list[str]) -> None:
    text = explanation(Score(1.0, {}, tuple(lines)))

    assert len(text) <= 1024
    text.encode()
