"""The page of evaluators is what their classes say of themselves, and its examples are true."""

import re
from inspect import getdoc
from pathlib import Path

import pytest

from collector.criteria import run_criteria_tests
from docs.generate.evaluators import evaluators_reference, example_of, examples, graded_example
from processors.criteria import CriteriaSet, evaluator_types, read_criteria
from processors.model import AgentRun, Evaluator, Outcome, RunFacts, Score

PAGE = Path(__file__).parents[2] / "docs" / "evaluators.md"
_TYPES = list(evaluator_types().values())
_SCORES = re.compile(r"scores? (?:(\d+)/(\d+)|(\d+(?:\.\d+)?))")


class _WithoutExample(Evaluator):
    id = "without-example"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score:
        return Score(1.0)


def test_the_page_is_up_to_date() -> None:
    assert evaluators_reference() == PAGE.read_text(), "run: make reference"


def test_every_criteria_file_on_the_page_is_valid_and_its_test_holds() -> None:
    files = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.M | re.S)

    assert len(_TYPES) == len(files)
    for text in files:
        document = read_criteria(text, "docs/evaluators.md", {})
        assert run_criteria_tests(document.cases, CriteriaSet(document.agents)) == []


@pytest.mark.parametrize("kind", _TYPES, ids=[kind.id for kind in _TYPES])
def test_every_evaluator_states_its_formula_and_has_an_example(kind: type[Evaluator]) -> None:
    paragraphs = (getdoc(kind) or "").split("\n\n")

    assert len(paragraphs) >= 2
    assert paragraphs[0].endswith(".")
    assert "\n" not in paragraphs[0], "the first sentence stands in a table"
    assert any("score" in paragraph for paragraph in paragraphs[1:])
    assert "score" in example_of(kind).text


@pytest.mark.parametrize("kind", _TYPES, ids=[kind.id for kind in _TYPES])
def test_the_example_gets_a_score_that_its_text_states(kind: type[Evaluator]) -> None:
    stated = {
        float(number) if number else int(over) / int(under)
        for over, under, number in _SCORES.findall(example_of(kind).text)
    }

    [result] = graded_example(kind).results

    assert result.outcome in (Outcome.PASS, Outcome.FAIL)
    assert result.evaluator == kind.id
    assert result.score in stated


def test_an_evaluator_without_an_example_is_refused() -> None:
    with pytest.raises(LookupError, match="without-example: expected an example"):
        example_of(_WithoutExample)


def test_every_example_is_of_an_evaluator() -> None:
    assert {kind.id for kind in _TYPES} == examples().keys()
