"""Evaluators of an extracted text and of labels, where the parity cases do not reach."""

import json
from typing import Any

import pytest

from collector.otlp import split_request
from processors.annotation import format_run, run_from_json
from processors.comparison import ExtractorSettings
from processors.evaluators.classification import (
    PrecisionRecallFscore,
    PrecisionRecallFscoreConfig,
    PrecisionRecallFscoreCriteria,
)
from processors.evaluators.output_match import (
    AsciiPrintableOnly,
    RegexMatch,
    RegexMatchCriteria,
)
from processors.model import (
    MAX_SEARCHED_CHARACTERS,
    AgentRun,
    EvaluationError,
    Evaluator,
    FinishReason,
    GradedRun,
    Message,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
)
from processors.reconstruction import reconstruct
from processors.spans import RawSpan
from tests.strategies import run_with
from tests.support.corpus import recorded_requests


def _answering(output: object, **fields: Any) -> AgentRun:
    return run_with([], output=output, output_state=ValueState.PRESENT, **fields)


def _recorded_run(framework: str, scenario: str) -> AgentRun:
    traces: dict[bytes, list[RawSpan]] = {}
    for request in recorded_requests(framework, scenario):
        for trace_id, spans in split_request(request).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    ((trace_id, spans),) = traces.items()
    (run,) = reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
    return run


def _regex(config: dict[str, Any] | None = None, **criteria: Any) -> RegexMatch:
    return RegexMatch(ExtractorSettings(**(config or {})), RegexMatchCriteria(**criteria))


def _labels(expected: list[Any], **config: Any) -> PrecisionRecallFscore:
    return PrecisionRecallFscore(
        PrecisionRecallFscoreConfig(**config), PrecisionRecallFscoreCriteria(expected=expected)
    )


def _value(answer: Score | NotEvaluated) -> float | NotEvaluatedReason:
    return answer.value if isinstance(answer, Score) else answer.reason


@pytest.mark.parametrize("framework", ["agent-framework", "ai-sdk-6", "ai-sdk-7"])
def test_recorded_run_whose_content_was_not_captured_is_not_graded_as_an_empty_one(framework: str) -> None:
    run = _recorded_run(framework, "s1-nocontent")
    line = format_run(GradedRun(run=run, results=[]))

    evaluators: list[Evaluator] = [
        AsciiPrintableOnly(ExtractorSettings()),
        _regex(ground_truth="."),
        _regex(pattern="."),
    ]

    for known in (run, run_from_json(json.loads(line), "printed.jsonl:1")):
        assert [NotEvaluatedReason.CONTENT_NOT_CAPTURED] * 3 == [
            _value(evaluator.evaluate(known, RunFacts())) for evaluator in evaluators
        ]


@pytest.mark.parametrize("framework", ["agent-framework", "ai-sdk-7", "pydantic_ai", "uipath_style"])
def test_last_answer_of_a_recorded_run_is_its_output(framework: str) -> None:
    run = _recorded_run(framework, "s1")

    answer = _regex(ground_truth=r"\d+").evaluate(run, RunFacts())

    assert isinstance(answer, Score)
    assert run.output == answer.details["submission"]


def test_line_that_says_nothing_of_messages_but_of_other_things_leaves_them_open() -> None:
    agent = {"name": "weather"}
    empty = run_from_json({"agent": agent}, "a.runs.jsonl:1")
    with_calls = run_from_json({"agent": agent, "tool_calls": [{"name": "f"}]}, "a.runs.jsonl:2")
    silent = run_from_json({"agent": agent, "messages": [], "tool_calls": [{"name": "f"}]}, "a.runs.jsonl:3")

    answers = [_regex(ground_truth=".").evaluate(run, RunFacts()) for run in (empty, with_calls, silent)]

    assert [0.0, NotEvaluatedReason.CONTENT_NOT_CAPTURED, 0.0] == [_value(answer) for answer in answers]
    assert isinstance(answers[0], Score)
    assert ("Empty trajectory - agent produced no messages",) == answers[0].lines


def test_a_run_in_which_a_call_was_only_asked_for_is_no_empty_trajectory() -> None:
    asked = run_with(
        [],
        requested_calls=[(0, ToolCall(name="search", executed=False))],
        output={},
        output_state=ValueState.PRESENT,
        messages=[],
        messages_state=ValueState.PRESENT,
    )

    answer = AsciiPrintableOnly(ExtractorSettings()).evaluate(asked, RunFacts())

    assert isinstance(answer, Score)
    assert ("Empty submission - extractor found no content",) == answer.lines


def test_turns_are_graded_one_by_one() -> None:
    messages = [Message(role="assistant", content=text, turn=turn) for turn, text in enumerate(("a1", "b"))]

    answer = _regex(ground_truth=[r"\d", r"\d", "c"]).evaluate(run_with([], messages=messages), RunFacts())

    assert isinstance(answer, Score)
    assert pytest.approx(1 / 3) == answer.value
    assert {
        "submission": "[Turn 0] a1 | [Turn 1] b | [Turn 2] ",
        "rationale": "1/3 passed: ✓ ✗ ✗",
    } == answer.details


def test_offending_characters_are_listed_up_to_five() -> None:
    messages = [Message(role="assistant", content="a\tбвгдежб\n")]

    answer = AsciiPrintableOnly(ExtractorSettings()).evaluate(run_with([], messages=messages), RunFacts())

    assert isinstance(answer, Score)
    assert ("Found non-printable ASCII characters: '\\t', 'б', 'в', 'г', 'д' (+2 more)",) == answer.lines


def test_pattern_is_searched_in_an_output_that_is_a_text() -> None:
    evaluator = _regex(pattern=r"^\d*$")

    assert 1.0 == _value(evaluator.evaluate(_answering(""), RunFacts()))
    assert 0.0 == _value(evaluator.evaluate(_answering("a"), RunFacts()))
    assert NotEvaluatedReason.NOT_APPLICABLE is _value(evaluator.evaluate(_answering({"a": 1}), RunFacts()))
    long = _answering("1" * (MAX_SEARCHED_CHARACTERS + 1))
    assert NotEvaluatedReason.OVER_LIMIT is _value(evaluator.evaluate(long, RunFacts()))


@pytest.mark.parametrize(
    ("config", "criteria", "message"),
    [
        ({"extractor": "last_turn"}, {"pattern": "a"}, "an extractor goes with ground_truth only"),
        ({}, {"ground_truth": ""}, "expected a text that is not empty"),
        ({}, {"ground_truth": ["a", ""]}, "expected a text that is not empty"),
        ({}, {"ground_truth": []}, "found an empty list"),
        ({}, {"ground_truth": "("}, "does not compile"),
        ({}, {"pattern": "("}, "does not compile"),
        ({}, {}, "found none of them"),
        ({}, {"ground_truth": "a", "pattern": "a"}, "found ground_truth and pattern"),
        (
            {"extractor": "tool_output", "extractor_config": {"tool_name": "f"}},
            {"ground_truth": ["a"]},
            "tool calls belong to no turn",
        ),
    ],
)
def test_criteria_by_which_no_run_could_be_graded_are_refused(
    config: dict[str, Any], criteria: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _regex(config, **criteria)


def test_one_label_or_all_of_them_count() -> None:
    given = _answering({"found": {"labels": ["spam", "spam", "eggs"]}})
    where = {"target_output_key": "found.labels"}
    expected = ["spam", "ham", "eggs"]

    of_one = _labels(expected, positive_label="spam", metric_type="precision", **where).evaluate(
        given, RunFacts()
    )
    of_all = _labels(expected, metric_type="recall", **where).evaluate(given, RunFacts())

    assert 0.5 == _value(of_one)
    assert pytest.approx(2 / 3) == _value(of_all)
    assert isinstance(of_one, Score)
    assert {"precision": 0.5, "recall": 1.0, "f-score": pytest.approx(2 / 3)} == of_one.details


def test_labels_are_equal_with_their_type_and_a_text_may_write_the_list() -> None:
    evaluator = _labels([1, "1"], average="micro")

    assert 1.0 == _value(evaluator.evaluate(_answering('[1, "1"]'), RunFacts()))
    assert 0.0 == _value(evaluator.evaluate(_answering('["1", 1]'), RunFacts()))


@pytest.mark.parametrize(
    "output", ["spam", "{}", "[]", '["ham", "ham"]', '[true, "ham"]', '[null, "ham"]', '["spam"]']
)
def test_output_without_fitting_labels_is_an_error(output: str) -> None:
    with pytest.raises(EvaluationError):
        _labels(["ham", "eggs"], positive_label="spam").evaluate(_answering(output), RunFacts())


@pytest.mark.parametrize(
    "config",
    [
        {"beta": 0},
        {"beta": float("inf")},
        {"average": "samples"},
        {"zero_division": 2},
        {"positive_label": True},
        {"target_output_key": ""},
    ],
)
def test_settings_of_metrics_that_mean_nothing_are_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"positive|beta|average|zero_division|target_output_key|expected"):
        _labels(["ham"], **config)
