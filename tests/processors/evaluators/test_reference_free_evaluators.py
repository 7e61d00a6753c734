"""`tool-repetition` and `tool-error-recovery`: their rules, call by call."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from processors.evaluators.repeated_calls import (
    ToolErrorRecovery,
    ToolErrorRecoveryConfig,
    ToolRepetition,
    ToolRepetitionConfig,
)
from processors.model import (
    JsonObject,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.strategies import run_with

_FAILED = ToolError(type="TimeoutError", message="")


def _search(arguments: JsonObject) -> ToolCall:
    return ToolCall(name="search", arguments=arguments, arguments_state=ValueState.PRESENT)


def _repetition(*calls: ToolCall, **config: Any) -> Score | NotEvaluated:
    return ToolRepetition(ToolRepetitionConfig(**config)).evaluate(run_with(list(calls)), RunFacts())


def _recovery(*calls: ToolCall, **config: Any) -> Score:
    answer = ToolErrorRecovery(ToolErrorRecoveryConfig(**config)).evaluate(run_with(list(calls)), RunFacts())
    assert isinstance(answer, Score)
    return answer


@pytest.mark.parametrize(
    ("written", "is_same"),
    [
        ("oslo  weather", True), ("OSLO weather?", True), (" Oslo weather.", True), ("Oslo, weather", False),
        ("Oslo whether", False),
    ],
)  # fmt: skip
def test_normalized_texts_differ_in_more_than_how_they_are_written(written: str, is_same: bool) -> None:
    calls = [_search({"q": "Oslo weather"}), _search({"q": written})]

    for normalize, score in ((False, 1.0), (True, 0.5 if is_same else 1.0)):
        answer = _repetition(*calls, threshold=2, normalize=normalize)
        assert isinstance(answer, Score)
        assert score == answer.value


def test_normalized_numbers_are_equal_however_they_are_written() -> None:
    values: list[JsonValue] = [5, "5", "5.0", {"at": ["5"]}, {"at": [5]}, "-5", "5 km"]
    answer = _repetition(*[_search({"q": value}) for value in values], threshold=2, normalize=True)

    assert isinstance(answer, Score)
    assert answer.details["identical_calls"] == 3


def test_a_masked_text_may_be_any_normalized_one() -> None:
    calls = [_search({"q": "Oslo"}), _search({"q": "OSL[REDACTED]"})]

    assert isinstance(_repetition(*calls, threshold=2, normalize=True), NotEvaluated)
    assert isinstance(_repetition(*calls, threshold=2), Score)


def test_identical_calls_are_counted_among_the_calls_of_a_window() -> None:
    far = [_search({"q": number % 4}) for number in range(12)]
    near = [_search({"q": number // 3}) for number in range(12)]

    for calls, window, count in ((far, 8, 2), (far, 9, 3), (far, None, 3), (near, 3, 3), (near, 2, 2)):
        answer = _repetition(*calls, window=window)
        assert isinstance(answer, Score)
        assert answer.details["identical_calls"] == count
    evaluator = ToolRepetition(ToolRepetitionConfig(window=3))
    assert evaluator.attainable(run_with(near)) == (0.0, 1.0)  # further calls can stand between these


def _named(names: str) -> list[ToolCall]:
    known = ValueState.PRESENT, ValueState.ABSENT
    return [
        ToolCall(name=name.lower(), arguments={}, arguments_state=known[name.isupper()]) for name in names
    ]


@pytest.mark.parametrize(
    ("names", "rounds", "cycle"),
    [("abab", 2, "ab"), ("xababay", 2, "ab"), ("abcabcabc", 3, "abc"), ("aaaa", 1, ""),
     ("abxabxab", 2, "abx"), ("aabaab", 2, "aab"), ("abba", 1, ""), ("", 1, ""), ("abcdefghijk" * 2, 1, "")],
)  # fmt: skip
def test_a_cycle_is_the_same_calls_again_and_again(names: str, rounds: int, cycle: str) -> None:
    answer = _repetition(*_named(names), threshold=100, cycle_threshold=2)

    assert isinstance(answer, Score)
    assert (answer.details["rounds"], answer.details["cycle"]) == (rounds, [*cycle])
    assert answer.value == (0.5 if rounds > 1 else 1.0)


def test_a_cycle_is_named_with_its_rounds() -> None:
    answer = _repetition(*_named("xabababab"), threshold=10, cycle_threshold=2)

    assert isinstance(answer, Score)
    assert answer.value == 0.0
    assert answer.lines[1] == "a, b: 4 rounds from call 2 on, cycle_threshold 2"


@example("aaaAAA")
@settings(max_examples=200, deadline=None)
@given(st.text("abAB", max_size=9))
def test_unknown_arguments_decide_cycles_only_where_they_could(names: str) -> None:
    """An upper-case name is a call with unknown arguments, which may be any of two."""
    answer = _repetition(*_named(names), threshold=100, cycle_threshold=2)
    options: list[list[ToolCall]] = [[]]
    for name in names:
        values: list[JsonObject] = [{}, {"v": 1}] if name.isupper() else [{}]
        known = [
            ToolCall(name=name.lower(), arguments=value, arguments_state=ValueState.PRESENT)
            for value in values
        ]
        options = [[*calls, call] for calls in options for call in known]
    certain = [_repetition(*calls, threshold=100, cycle_threshold=2) for calls in options]

    if isinstance(answer, Score):
        assert {score.value for score in certain if isinstance(score, Score)} == {answer.value}
    else:
        assert answer.reason is NotEvaluatedReason.CONTENT_NOT_CAPTURED


@pytest.mark.parametrize(("times", "score"), [(0, 1.0), (1, 1.0), (2, 1.0), (3, 0.5), (5, 0.5), (6, 0.0)])
def test_repetition_falls_at_the_threshold_and_at_twice_the_threshold(times: int, score: float) -> None:
    answer = _repetition(*[_search({"q": 1})] * times)

    assert isinstance(answer, Score)
    assert score == answer.value
    assert {"threshold": 3, "identical_calls": times, "tool": "search" if times else None} == answer.details


def test_calls_are_identical_by_value_and_need_not_follow_each_other() -> None:
    calls = _search({"q": 1}), _search({"q": 2}), _search({"q": 1.0}), _search({"q": True})

    answer = _repetition(*calls, threshold=2)

    assert isinstance(answer, Score)
    assert 0.5 == answer.value
    assert ("search: 2 identical calls, threshold 2",) == answer.lines


def test_ignored_arguments_do_not_make_a_call_another_one() -> None:
    calls = [_search({"q": 1, "request_id": number, "sent_at": f"{number} s"}) for number in range(3)]
    masked = _search({"q": 1, "request_id": "[REDACTED]"})
    other = _search({"q": 2, "request_id": 0})
    ignored = {"ignore_args": ["request_id", "*_at"]}

    distinct = _repetition(*calls, other)
    answer = _repetition(*calls, other, **ignored)
    with_masked = _repetition(*calls, *[masked] * 3, **ignored)

    assert isinstance(distinct, Score)
    assert isinstance(answer, Score)
    assert isinstance(with_masked, Score)
    assert (1.0, 1) == (distinct.value, distinct.details["identical_calls"])
    assert (0.5, 3) == (answer.value, answer.details["identical_calls"])
    assert (0.0, 6) == (with_masked.value, with_masked.details["identical_calls"])
    run = run_with([*calls, other])
    assert (0.0, 0.5) == ToolRepetition(ToolRepetitionConfig(**ignored)).attainable(run)


def test_unknown_arguments_matter_only_if_they_could_change_the_score() -> None:
    unknown = ToolCall(name="search")

    few = _repetition(unknown, unknown)
    many = _repetition(unknown, unknown, unknown)
    decided = _repetition(*[_search({"q": 1})] * 6, unknown)

    assert isinstance(few, Score)
    assert 1.0 == few.value
    assert isinstance(many, NotEvaluated)
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is many.reason
    assert isinstance(decided, Score)
    assert 0.0 == decided.value


def test_doubt_about_one_tool_does_not_weigh_against_a_larger_group_of_another() -> None:
    unknown = ToolCall(name="fetch")

    answer = _repetition(unknown, *[_search({"q": 1})] * 3)

    assert isinstance(answer, Score)
    assert 0.5 == answer.value


def test_without_failed_calls_recovery_scores_1() -> None:
    assert 1.0 == _recovery().value
    assert 1.0 == _recovery(ToolCall(name="book")).value


def test_recovery_is_the_share_of_failed_calls_that_were_tried_again() -> None:
    answer = _recovery(
        ToolCall(name="book", error=_FAILED),
        ToolCall(name="pay", error=_FAILED),
        ToolCall(name="book"),
    )

    assert 0.5 == answer.value
    assert {"failed": 2, "recovered": 1, "not_recovered": ["pay"]} == answer.details
    assert ("failed: 2", "recovered: 1", "not recovered: pay") == answer.lines


def test_a_retry_that_fails_is_a_failure_of_its_own() -> None:
    failed = ToolCall(name="book", error=_FAILED)

    assert pytest.approx(2 / 3) == _recovery(failed, failed, failed).value


def test_a_declared_fallback_recovers_and_another_tool_does_not() -> None:
    calls = ToolCall(name="search web", error=_FAILED), ToolCall(name="search_archive")

    assert 0.0 == _recovery(*calls).value
    assert 1.0 == _recovery(*calls, fallbacks={"search_web": ["search archive"]}).value


def test_a_call_beside_the_failed_one_is_no_retry() -> None:
    failed = ToolCall(name="book", error=_FAILED, parallel_group=1)
    beside = ToolCall(name="book", parallel_group=1)
    later = ToolCall(name="book", parallel_group=2)

    assert 0.0 == _recovery(failed, beside).value
    assert 1.0 == _recovery(failed, beside, later).value


def test_a_result_that_tells_an_error_counts_as_a_failure() -> None:
    call = ToolCall(name="book", result={"ok": False}, result_state=ValueState.PRESENT)

    assert 0.0 == _recovery(call).value


def test_only_failures_of_the_classes_named_are_to_be_followed() -> None:
    refused = ToolCall(name="refund", error=ToolError(type="", message="the order is not delivered yet"))
    timed_out = ToolCall(name="book", error=_FAILED)

    assert 0.0 == _recovery(refused, timed_out).value
    assert 1.0 == _recovery(refused, errors=["retryable"]).value
    assert _recovery(refused, errors=["retryable", "argument"]).lines == (
        "failed: 1, none with an error that is retryable or argument",
    )
    assert 0.0 == _recovery(refused, timed_out, errors=["retryable"]).value
    assert ["book"] == _recovery(refused, timed_out, errors=["retryable"]).details["not_recovered"]
