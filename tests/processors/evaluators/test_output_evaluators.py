"""What the evaluators of the final output do beyond the reference cases."""

from typing import Any

import pytest

from processors.comparison.output import OutputNumberError, OutputPathError
from processors.criteria import Evaluation, evaluator_types
from processors.evaluate import evaluate_run
from processors.evaluators.classification import UnknownClassError
from processors.model import (
    MAX_COMPARED_LINES,
    MAX_DETAIL_CHARACTERS,
    MAX_EDIT_STEPS,
    MAX_OUTPUT_CHARACTERS,
    MAX_OUTPUT_VALUES,
    AgentRun,
    EvaluationError,
    Evaluator,
    JsonValue,
    Message,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    RunFacts,
    Score,
    ValueState,
)
from processors.texts.edit_distance import edit_steps
from tests.strategies import run_with

_CRITERIA: dict[str, dict[str, Any]] = {
    "exact-match": {"expected_output": "warm"},
    "contains": {"search_text": "warm"},
    "json-similarity": {"expected_output": "warm"},
    "binary-classification": {"expected_class": "warm"},
    "multiclass-classification": {"expected_class": "warm"},
}
_CONFIG: dict[str, dict[str, Any]] = {
    "binary-classification": {"positive_class": "warm"},
    "multiclass-classification": {"classes": ["warm", "cold"]},
}


def _evaluator(id: str, criteria: dict[str, Any] | None = None, **config: Any) -> Evaluator:
    kind = evaluator_types()[id]
    assert kind.Criteria is not None
    written = kind.Criteria.model_validate(_CRITERIA[id] if criteria is None else criteria)
    return kind(kind.Config.model_validate(_CONFIG.get(id, {}) | config), written)


def _run(output: JsonValue) -> AgentRun:
    return run_with([], output=output, output_state=ValueState.PRESENT)


def _score(evaluator: Evaluator, output: JsonValue) -> Score:
    answer = evaluator.evaluate(_run(output), RunFacts())
    assert isinstance(answer, Score)
    return answer


def _reason(evaluator: Evaluator, run: AgentRun) -> NotEvaluatedReason:
    answer = evaluator.evaluate(run, RunFacts())
    assert isinstance(answer, NotEvaluated)
    assert answer.text
    return answer.reason


@pytest.fixture(params=sorted(_CRITERIA))
def id(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.mark.parametrize("state", [ValueState.ABSENT, ValueState.REDACTED, ValueState.TRUNCATED])
def test_an_output_that_is_not_known_is_not_graded(id: str, state: ValueState) -> None:
    run = run_with([], output="warm", output_state=state)

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(_evaluator(id), run)


def test_an_output_too_long_to_be_read_is_over_the_limit(id: str) -> None:
    run = run_with([], output=None, output_state=ValueState.UNPARSED)

    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator(id), run)


@pytest.mark.parametrize("output", [None, 5, 0.5, True, ["warm"]])
def test_an_output_that_is_neither_text_nor_object_is_not_graded(id: str, output: JsonValue) -> None:
    assert NotEvaluatedReason.NOT_APPLICABLE is _reason(_evaluator(id), _run(output))


def test_an_output_over_the_caps_is_not_graded(id: str) -> None:
    deep: JsonValue = "warm"
    for _ in range(200):
        deep = {"a": deep}
    too_large: list[JsonValue] = [
        "w" * (MAX_OUTPUT_CHARACTERS + 1),
        {"a": ["w" * MAX_OUTPUT_CHARACTERS, "w"]},
        {"w" * MAX_OUTPUT_CHARACTERS: "w"},
        {"a": [1] * (MAX_OUTPUT_VALUES + 1)},
        deep,
    ]

    reasons = {_reason(_evaluator(id), _run(output)) for output in too_large}

    assert {NotEvaluatedReason.OVER_LIMIT} == reasons


def test_only_what_is_compared_has_to_be_within_the_caps(id: str) -> None:
    output: JsonValue = {"answer": "warm", "log": "x" * (MAX_OUTPUT_CHARACTERS + 1)}
    criteria = {"expected_output": {"answer": "warm"}} if "expected_output" in _CRITERIA[id] else None

    assert 1.0 == _score(_evaluator(id, criteria, target_output_key="answer"), output).value


def test_an_output_without_what_is_compared_ends_in_an_error_that_tells_no_content(id: str) -> None:
    criteria = {"expected_output": {"answer": "warm"}} if "expected_output" in _CRITERIA[id] else None
    evaluator = _evaluator(id, criteria, target_output_key="answer")
    run = _run({"reply": "secret"})

    (result,) = evaluate_run(run, [Evaluation(name="check", evaluator=evaluator)])

    assert Outcome.ERROR is result.outcome
    assert result.score is None
    assert "OutputPathError" == result.error_type
    assert 'no "answer": there is no key "answer"' == result.explanation


def test_a_run_that_is_not_complete_is_not_graded(id: str) -> None:
    run = run_with([], output="warm", output_state=ValueState.PRESENT, complete=False)

    (result,) = evaluate_run(run, [Evaluation(name="check", evaluator=_evaluator(id))])

    assert NotEvaluatedReason.INCOMPLETE_TRACE is result.reason


def test_a_number_beyond_all_floats_is_an_error() -> None:
    with pytest.raises(OutputNumberError):
        _evaluator("contains").evaluate(_run({"n": 10**400}), RunFacts())


def test_several_paths_are_compared_as_one_object() -> None:
    evaluator = _evaluator(
        "exact-match",
        {"expected_output": {"city": "Oslo", "days": [{"high": 3}], "note": "x"}},
        target_output_key=["city", "days[0].high"],
    )

    score = _score(evaluator, {"city": "Oslo", "days": [{"high": 3.0}]})

    assert 1.0 == score.value
    assert {"city": "Oslo", "days[0].high": 3.0} == score.details["actual"]
    with pytest.raises(OutputPathError, match="several values: expected an object, found a text"):
        evaluator.evaluate(_run("Oslo"), RunFacts())


@pytest.mark.parametrize(
    ("config", "output", "score"),
    [
        ({}, "Warm", 1.0),
        ({"case_sensitive": True}, "Warm", 0.0),
        ({"negated": True}, "Warm", 0.0),
        ({"negated": True}, "cold", 1.0),
    ],
)
def test_case_and_negation_decide_an_exact_match(config: dict[str, Any], output: str, score: float) -> None:
    assert score == _score(_evaluator("exact-match", **config), output).value


def test_values_compare_with_integers_as_floats_and_texts_as_python_prints_them() -> None:
    expected = {"expected_output": {"n": 5, "ok": True}}

    assert 1.0 == _score(_evaluator("exact-match", expected), {"ok": True, "n": 5.0}).value
    assert 0.0 == _score(_evaluator("exact-match", expected), {"ok": True, "n": "5"}).value
    assert 1.0 == _score(_evaluator("exact-match", expected), "{'n': 5.0, 'ok': True}").value


def test_matchers_stand_for_expected_values_of_an_exact_match() -> None:
    criteria = {"expected_output": {"city": {"$glob": "O*"}, "days": 3, "high": {"$range": [0, 30]}}}
    evaluator = _evaluator("exact-match", criteria)

    assert 1.0 == _score(evaluator, {"city": "Oslo", "days": 3, "high": 12}).value
    assert 0.0 == _score(evaluator, {"city": "Oslo", "days": 3, "high": 31}).value
    assert 0.0 == _score(evaluator, {"city": "Oslo", "days": 3}).value
    assert 0.0 == _score(evaluator, "warm").value
    assert 1.0 == _score(_evaluator("exact-match", criteria, negated=True), "warm").value


def test_matchers_cannot_be_held_against_lines() -> None:
    with pytest.raises(ValueError, match="a matcher stands for a value"):
        _evaluator("exact-match", {"expected_output": {"$glob": "a*"}}, line_by_line_evaluator=True)


def test_a_text_of_dollar_signs_is_no_matcher() -> None:
    criteria = {"expected_output": '{"answer": {"$glob": "a*"}}'}

    evaluator = _evaluator("exact-match", criteria, target_output_key="answer")

    assert 0.0 == _score(evaluator, {"answer": "abc"}).value
    assert 1.0 == _score(evaluator, {"answer": {"$glob": "a*"}}).value


def test_an_expected_text_is_compared_as_it_stands_with_a_text_only() -> None:
    evaluator = _evaluator("exact-match", {"expected": " It is warm."})

    assert 1.0 == _score(evaluator, " It is warm.").value
    assert 0.0 == _score(evaluator, "It is warm.").value
    assert NotEvaluatedReason.NOT_APPLICABLE is _reason(evaluator, _run({"a": 1}))


@pytest.mark.parametrize("id", ["exact-match", "contains"])
def test_a_ground_truth_is_held_against_what_the_extractor_finds(id: str) -> None:
    evaluator = _evaluator(id, {"ground_truth": "4"}, extractor="first_assistant")
    run = run_with(
        [], messages=[Message(role="assistant", content="4"), Message(role="assistant", content="5")]
    )

    answer = evaluator.evaluate(run, RunFacts())

    assert isinstance(answer, Score)
    assert 1.0 == answer.value
    assert "4" == answer.details["submission"]


@pytest.mark.parametrize(
    ("id", "criteria"),
    [
        ("exact-match", {}),
        ("exact-match", {"expected_output": None}),
        ("exact-match", {"expected_output": "a", "expected": "a"}),
        ("exact-match", {"ground_truth": "a", "expected": "a"}),
        ("contains", {}),
        ("contains", {"search_text": "a", "ground_truth": "a"}),
    ],
)
def test_criteria_give_exactly_one_of_their_keys(id: str, criteria: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected exactly one of"):
        _evaluator(id, criteria)


@pytest.mark.parametrize(
    ("id", "criteria", "config", "setting"),
    [
        ("exact-match", {"expected_output": "a"}, {"extractor": "last_assistant"}, "extractor"),
        ("exact-match", {"expected_output": "a"}, {"extractor": "all_assistant"}, "extractor"),
        ("exact-match", {"expected": "a"}, {"target_output_key": "b"}, "target_output_key"),
        ("exact-match", {"expected": "a"}, {"case_sensitive": True}, "case_sensitive"),
        ("exact-match", {"ground_truth": "a"}, {"negated": True}, "negated"),
        ("contains", {"ground_truth": "a"}, {"target_output_key": "b"}, "target_output_key"),
        ("contains", {"search_text": "a"}, {"extractor": "last_turn"}, "extractor"),
    ],
)
def test_a_setting_without_effect_is_refused(
    id: str, criteria: dict[str, Any], config: dict[str, Any], setting: str
) -> None:
    with pytest.raises(ValueError, match=f"config.{setting} has no effect"):
        _evaluator(id, criteria, **config)


@pytest.mark.parametrize(
    ("criteria", "config", "message"),
    [
        ({"expected_output": {"b": 1}}, {"target_output_key": "a"}, 'there is no key "a"'),
        ({"expected_output": "no JSON"}, {"target_output_key": "a"}, "its JSON text"),
        ({"expected_output": "[1]"}, {"target_output_key": ["a"]}, "found a list"),
        ({"expected_output": "a"}, {"target_output_key": "[]"}, "a path such as"),
        ({"expected_output": "a"}, {"line_by_line_evaluator": True, "line_delimiter": ""}, "at least one"),
        ({"expected_output": {"a": 10**400}}, {}, "too large"),
        ({"expected_output": {"a": "x" * (MAX_OUTPUT_CHARACTERS + 1)}}, {}, "too large"),
    ],
)
def test_an_expectation_that_no_run_can_be_held_against_is_refused(
    criteria: dict[str, Any], config: dict[str, Any], message: str
) -> None:
    for id in ("exact-match", "json-similarity"):
        with pytest.raises(ValueError, match=message):
            _evaluator(id, criteria, **config)


def test_contains_searches_the_python_text_of_an_object() -> None:
    evaluator = _evaluator("contains", {"search_text": "'high': 12.0"})

    assert 1.0 == _score(evaluator, {"high": 12}).value


def test_contains_looks_for_the_whole_text_in_each_line() -> None:
    evaluator = _evaluator("contains", {"search_text": "warm"}, line_by_line_evaluator=True)

    score = _score(evaluator, "it is warm\n\n  \nit was cold\nwarmer soon")

    assert pytest.approx(2 / 3) == score.value
    assert (3, 1) == (score.details["total_lines_actual"], score.details["total_lines_expected"])
    assert "line 2: 0, expected: , actual: it was cold" in score.lines


def test_lines_beyond_those_shown_still_count() -> None:
    evaluator = _evaluator("exact-match", {"expected_output": "a"}, line_by_line_evaluator=True)

    score = _score(evaluator, "\n".join(["a"] * 250))

    lines = score.details["line_by_line_results"]
    assert isinstance(lines, list)
    assert (100, 150) == (len(lines), score.details["lines_not_shown"])
    assert pytest.approx(1 / 250) == score.value


def test_no_line_on_either_side_scores_0() -> None:
    evaluator = _evaluator("exact-match", {"expected_output": " "}, line_by_line_evaluator=True)

    assert 0.0 == _score(evaluator, "\n\n").value


def test_too_many_lines_are_not_graded() -> None:
    evaluator = _evaluator("exact-match", line_by_line_evaluator=True)

    assert NotEvaluatedReason.OVER_LIMIT is _reason(evaluator, _run("a\n" * (MAX_COMPARED_LINES + 1)))


def test_long_values_are_cut_in_details_and_explanation() -> None:
    score = _score(_evaluator("exact-match"), "x" * 100_000)
    of_object = _score(_evaluator("exact-match"), {"a": "x" * 100_000})

    for details in (score.details, of_object.details):
        actual = details["actual"]
        assert isinstance(actual, str)
        assert MAX_DETAIL_CHARACTERS == len(actual)
    assert all(len(line) < MAX_DETAIL_CHARACTERS / 2 for line in score.lines)


def test_similarity_is_the_share_of_leaves_that_are_met() -> None:
    evaluator = _evaluator("json-similarity", {"expected_output": {"city": "Oslo", "temperature": 20}})

    score = _score(evaluator, {"city": "Oslo", "temperature": 18, "further": "free"})

    assert pytest.approx(0.95) == score.value
    assert 2 == score.details["total_leaves"]
    assert pytest.approx(1.9) == score.details["matched_leaves"]


def test_texts_over_the_configured_length_are_similar_only_if_equal() -> None:
    criteria = {"expected_output": {"a": "x" * 11, "b": "short"}}
    evaluator = _evaluator("json-similarity", criteria, max_text_length=10)

    equal = _score(evaluator, {"a": "x" * 11, "b": "short"})
    different = _score(evaluator, {"a": "x" * 12, "b": "shore"})

    assert 1.0 == equal.value
    assert "texts_compared_for_equality_only" not in equal.details
    assert pytest.approx(0.4) == different.value
    assert 1 == different.details["texts_compared_for_equality_only"]


def test_similarity_of_more_text_than_is_worked_through_is_not_graded() -> None:
    length = 3000
    pairs = MAX_EDIT_STEPS // edit_steps("a" * length, "c" * length) + 1
    output: JsonValue = {"texts": ["ab" * (length // 2)] * pairs}
    expected = {"expected_output": output}
    run = _run({"texts": ["cd" * (length // 2)] * pairs})

    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator("json-similarity", expected), run)
    assert 1.0 == _score(_evaluator("json-similarity", expected), output).value


def test_lines_share_the_work_that_similarity_may_take() -> None:
    line = "ab" * 1500
    lines = MAX_EDIT_STEPS // edit_steps(line, line) + 1
    evaluator = _evaluator(
        "json-similarity", {"expected_output": "\n".join([line] * lines)}, line_by_line_evaluator=True
    )

    run = _run("\n".join(["cd" * 1500] * lines))

    assert NotEvaluatedReason.OVER_LIMIT is _reason(evaluator, run)


@pytest.mark.parametrize("id", ["binary-classification", "multiclass-classification"])
def test_a_class_is_compared_without_case_and_not_trimmed(id: str) -> None:
    evaluator = _evaluator(id, target_output_key="label")

    score = _score(evaluator, {"label": "WARM"})

    assert 1.0 == score.value
    assert {"expected": "warm", "actual": "warm"} == score.details
    assert 0.0 == _score(evaluator, {"label": "cold"}).value


def test_of_two_classes_an_unknown_one_is_wrong_and_of_several_it_is_an_error() -> None:
    assert 0.0 == _score(_evaluator("binary-classification"), " warm").value
    with pytest.raises(UnknownClassError) as refusal:
        _evaluator("multiclass-classification").evaluate(_run("mild"), RunFacts())

    assert "the output names none of the classes: warm, cold" == str(refusal.value)
    assert isinstance(refusal.value, EvaluationError)


def test_an_expected_class_outside_the_classes_is_refused() -> None:
    with pytest.raises(ValueError, match='"wram" is none of the classes; did you mean "warm"'):
        _evaluator("multiclass-classification", {"expected_class": "wram"})


@pytest.mark.parametrize("id", ["binary-classification", "multiclass-classification"])
def test_classes_are_not_read_line_by_line(id: str) -> None:
    with pytest.raises(ValueError, match="line_by_line_evaluator"):
        _evaluator(id, line_by_line_evaluator=True)
