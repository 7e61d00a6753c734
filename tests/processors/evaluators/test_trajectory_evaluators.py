"""The `trajectory-*` evaluators: published vectors, arguments, parallel calls, and runs cut short."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.criteria import evaluator_types
from processors.model import (
    MAX_ORDERED_CALLS,
    Evaluator,
    JsonObject,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.strategies import run_with

_METRICS = (
    "trajectory-exact", "trajectory-in-order", "trajectory-any-order", "trajectory-precision",
    "trajectory-recall", "trajectory-f1", "trajectory-order-f1",
)  # fmt: skip

# Names only, one letter each. What other libraries give, but for no expectation at all: that means no call.
_VECTORS = {
    "c1 identical": ("abc", "abc", (1, 1, 1, 1, 1, 1, 1)),
    "c2 one inserted call": ("abc", "axbc", (0, 1, 1, 0.75, 1, 0.857, 0.857)),
    "c3 two calls swapped": ("abc", "bac", (0, 0, 1, 1, 1, 1, 0.667)),
    "c4 last call missing": ("abc", "ab", (0, 0, 0, 1, 0.667, 0.8, 0.8)),
    "c5 first call repeated": ("abc", "aabc", (0, 1, 1, 0.75, 1, 0.857, 0.857)),
    "c6 the agent did nothing": ("abc", "", (0, 0, 0, 0, 0, 0, 0)),
    "c7 both empty": ("", "", (1, 1, 1, 1, 1, 1, 1)),
    "c8 unexpected call": ("", "a", (0, 0, 0, 0, 0, 0, 0)),
    "c9 repeat missing": ("aa", "a", (0, 0, 0, 1, 0.5, 0.667, 0.667)),
    "c10 repeat present": ("aa", "aa", (1, 1, 1, 1, 1, 1, 1)),
    "c11 rotation": ("cab", "abc", (0, 0, 1, 1, 1, 1, 0.667)),
    "c12 disjoint": ("ab", "xy", (0, 0, 0, 0, 0, 0, 0)),
    "c13 both repeated": ("ab", "aabb", (0, 1, 1, 0.5, 1, 0.667, 0.667)),
}


def _evaluator(metric: str, expected: list[Any], **config: Any) -> Evaluator:
    kind = evaluator_types()[metric]
    assert kind.Criteria is not None
    criteria = kind.Criteria.model_validate({"tool_calls": expected})
    return kind(kind.Config.model_validate(config), criteria)


def _call(name: str, arguments: JsonObject | None = None, **fields: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments or {}, arguments_state=ValueState.PRESENT, **fields)


def _value(metric: str, expected: list[Any], calls: list[ToolCall], **config: Any) -> float:
    answer = _evaluator(metric, expected, **config).evaluate(run_with(calls), RunFacts())
    assert isinstance(answer, Score)
    return answer.value


@pytest.mark.parametrize("vector", _VECTORS)
def test_the_published_vectors_score_as_published(vector: str) -> None:
    expected, actual, scores = _VECTORS[vector]

    found = [_value(metric, [*expected], [_call(name) for name in actual]) for metric in _METRICS]

    assert pytest.approx(scores, abs=5e-4) == found


@pytest.mark.parametrize("order", [[{}, {"x": 1}], [{"x": 1}, {}]])
def test_the_order_of_expectations_does_not_decide_what_fits(order: list[JsonObject]) -> None:
    expected = [{"name": "s", "args": arguments} for arguments in order]
    calls = [_call("s", {"x": 1, "y": 2}), _call("s", {"z": 3})]

    for metric in ("trajectory-any-order", "trajectory-recall", "trajectory-f1", "trajectory-precision"):
        assert 1.0 == _value(metric, expected, calls, args_match="partial")


@pytest.mark.parametrize(
    ("mode", "fitting", "failing"),
    [
        ("exact", [{"a": 1, "b": {"c": 1, "d": 2}}], [{"a": 1, "b": {"c": 1, "d": 2}, "e": 0}, {"a": 1}]),
        ("partial", [{"a": 1.0, "b": {"c": 1, "d": 2}, "e": 0}], [{"a": 1, "b": {"c": 1, "d": 2, "e": 0}}]),
        ("partial_deep", [{"a": 1, "b": {"c": 1, "d": 2, "e": 0}, "f": 0}], [{"a": 1, "b": {"c": 1}}]),
        ("subset", [{"a": 1}, {}], [{"a": 1, "e": 0}, {"a": True}]),
        ("ignore", [{}, {"e": 0}], []),
    ],
)
def test_arguments_are_compared_in_the_mode_that_is_configured(
    mode: str, fitting: list[JsonObject], failing: list[JsonObject]
) -> None:
    expected = [{"name": "t", "args": {"a": 1, "b": {"c": 1, "d": 2}}}]

    assert [1.0] * len(fitting) == [
        _value("trajectory-recall", expected, [_call("t", arguments)], args_match=mode)
        for arguments in fitting
    ]
    assert [0.0] * len(failing) == [
        _value("trajectory-recall", expected, [_call("t", arguments)], args_match=mode)
        for arguments in failing
    ]


def test_lists_inside_partial_arguments_are_compared_entry_by_entry() -> None:
    expected = [{"name": "t", "args": {"a": [{"b": 1}]}, "args_match": "partial_deep"}]

    assert 1.0 == _value("trajectory-recall", expected, [_call("t", {"a": [{"b": 1, "c": 2}]})])
    assert 0.0 == _value("trajectory-recall", expected, [_call("t", {"a": [{"b": 1}, {}]})])


def test_an_expected_call_may_choose_its_own_mode() -> None:
    expected = [{"name": "t", "args": {"a": 1}, "argsMatch": "partial"}, {"name": "t", "args": {"a": 1}}]
    calls = [_call("t", {"a": 1}), _call("t", {"a": 1, "b": 2})]

    assert 1.0 == _value("trajectory-any-order", expected, calls)


def test_ignored_arguments_make_no_difference() -> None:
    expected = [{"name": "get weather", "args": {"city": "Oslo", "request_id": 1}}]
    call = _call("get_weather", {"city": "Oslo", "request_id": 2, "sent_at": 3})

    assert 0.0 == _value("trajectory-exact", expected, [call])
    assert 1.0 == _value("trajectory-exact", expected, [call], ignore_args=["request_id", "*_at"])


def test_expected_values_may_be_matchers() -> None:
    expected = [{"name": "t", "args": {"city": {"$regex": "^O"}}}]

    assert 1.0 == _value("trajectory-exact", expected, [_call("t", {"city": "Oslo"})])
    assert 0.0 == _value("trajectory-exact", expected, [_call("t", {"city": "Bergen"})])


@pytest.mark.parametrize(
    ("occurrence", "score"), [("any", 1), ("first", 0), ("last", 0), (1, 1), (-2, 1), (7, 0), ("all", 0)]
)
def test_an_occurrence_says_which_calls_may_stand_for_the_expected_one(
    occurrence: str | int, score: float
) -> None:
    expected = [{"name": "t", "args": {"a": 2}, "occurrence": occurrence}]
    calls = [_call("x"), _call("t", {"a": 1}), _call("t", {"a": 2}), _call("t", {"a": 3})]

    assert score == _value("trajectory-any-order", expected, calls)


def test_all_occurrences_have_to_fit_and_one_stands_for_the_expected_call() -> None:
    expected = [{"name": "t", "args": {"a": 1}, "occurrence": "all"}]

    assert 1.0 == _value("trajectory-any-order", expected, [_call("t", {"a": 1})] * 2)
    assert 0.5 == _value("trajectory-precision", expected, [_call("t", {"a": 1})] * 2)


def test_calls_are_matched_by_id_where_the_criteria_and_the_call_have_one() -> None:
    expected = [{"name": "t", "id": "c-2"}]

    assert 1.0 == _value(
        "trajectory-any-order", expected, [_call("t", call_id="c-1"), _call("t", call_id="c-2")]
    )
    assert 0.0 == _value("trajectory-any-order", expected, [_call("t", call_id="c-1")])
    assert 1.0 == _value("trajectory-any-order", expected, [_call("t")])


def test_failed_calls_count_unless_they_are_left_out() -> None:
    calls = [_call("a", error=ToolError(type="TimeoutError", message="")), _call("a"), _call("b")]

    assert 0.0 == _value("trajectory-exact", ["a", "b"], calls)
    assert 1.0 == _value("trajectory-exact", ["a", "b"], calls, include_failed=False)


@pytest.mark.parametrize("metric", ["trajectory-exact", "trajectory-in-order", "trajectory-order-f1"])
def test_calls_that_ran_side_by_side_are_taken_in_the_order_that_fits(metric: str) -> None:
    calls = [_call("a"), _call("c", parallel_group=0), _call("b", parallel_group=0), _call("d")]

    assert 1.0 == _value(metric, [*"abcd"], calls)
    assert 1.0 > _value(metric, [*"badc"], calls)


def test_an_exact_group_has_to_hold_just_the_calls_of_its_places() -> None:
    calls = [_call("a", parallel_group=0), _call("a", parallel_group=0), _call("b", parallel_group=0)]

    assert 0.0 == _value("trajectory-exact", [*"abb"], calls)
    assert 1.0 == _value("trajectory-exact", [*"baa"], calls)


@pytest.mark.parametrize("metric", _METRICS)
def test_unknown_arguments_count_only_where_they_decide(metric: str) -> None:
    unknown = ToolCall(name="t")
    expected = [{"name": "t", "args": {"a": 1}}]

    undecided = _evaluator(metric, expected).evaluate(run_with([unknown]), RunFacts())

    assert isinstance(undecided, NotEvaluated)
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is undecided.reason
    assert 1.0 == _value(metric, ["t"], [unknown])
    assert 1.0 == _value(metric, expected, [unknown], args_match="ignore")


def test_an_unknown_argument_of_another_tool_does_not_matter() -> None:
    calls = [_call("t", {"a": 1}), ToolCall(name="x")]

    assert 0.5 == _value("trajectory-precision", [{"name": "t", "args": {"a": 1}}], calls)


def test_the_explanation_tells_what_was_missing_and_what_was_not_expected() -> None:
    expected = ["search", {"name": "book", "args": {"seat": "4A"}}, "pay"]
    calls = [_call("search"), _call("search"), _call("book", {"seat": "9F"}), _call("pay")]

    answer = _evaluator("trajectory-in-order", expected).evaluate(run_with(calls), RunFacts())

    assert isinstance(answer, Score)
    assert (
        'expected: [search, book("seat": "4A"), pay]',
        "actual: [search, search, book, pay]",
        "matched: 2 of 3 expected, 2 of 4 actual",
        'missing: [book("seat": "4A")]',
        "unexpected: [search, book]",
        "call 3, book: args_match: exact: another seat",
    ) == answer.lines
    assert [0, None, 3] == answer.details["assigned"]


def test_too_many_calls_or_comparisons_are_over_limit() -> None:
    many = run_with([_call("t", {"a": 1})] * 6000)
    more = run_with([_call("t")] * (MAX_ORDERED_CALLS + 1))

    for run, expected in ((many, [{"name": "t", "args": {"a": 2}}]), (more, ["t"])):
        answer = _evaluator("trajectory-f1", expected).evaluate(run, RunFacts())

        assert isinstance(answer, NotEvaluated)
        assert NotEvaluatedReason.OVER_LIMIT is answer.reason


def test_a_regular_expression_over_very_long_arguments_is_over_limit() -> None:
    text = "x" * 200_000
    calls = [_call("t", {"a": text}, arguments_text=text)] * 100

    answer = _evaluator("trajectory-recall", [{"name": "t", "args": {"a": {"$regex": "y"}}}]).evaluate(
        run_with(calls), RunFacts()
    )

    assert isinstance(answer, NotEvaluated)


@pytest.mark.parametrize(
    ("metric", "calls", "bounds"),
    [
        ("trajectory-exact", "ab", (0.0, 1.0)),
        ("trajectory-exact", "ax", (0.0, 0.0)),
        ("trajectory-exact", "abca", (0.0, 0.0)),
        ("trajectory-in-order", "ab", (0.0, 1.0)),
        ("trajectory-in-order", "axbc", (1.0, 1.0)),
        ("trajectory-any-order", "cab", (1.0, 1.0)),
        ("trajectory-precision", "ax", (0.0, 0.75)),
        ("trajectory-recall", "ax", (1 / 3, 1.0)),
        ("trajectory-f1", "ax", (0.0, 6 / 7)),
        ("trajectory-order-f1", "cba", (0.0, 1.0)),
        ("trajectory-order-f1", "xx", (0.0, 0.75)),
    ],
)
def test_what_an_incomplete_run_could_still_reach(
    metric: str, calls: str, bounds: tuple[float, float]
) -> None:
    run = run_with([_call(name) for name in calls], complete=False)

    assert pytest.approx(bounds) == _evaluator(metric, [*"abc"]).attainable(run)


@pytest.mark.parametrize("metric", _METRICS)
def test_where_nothing_may_be_called_an_incomplete_run_is_lost_with_its_first_call(metric: str) -> None:
    evaluator = _evaluator(metric, [])

    assert (0.0, 1.0) == evaluator.attainable(run_with([], complete=False))
    assert (0.0, 0.0) == evaluator.attainable(run_with([_call("a")], complete=False))


_letters = st.lists(st.sampled_from("abc"), max_size=5)
_occurrences = st.sampled_from(["any", "any", "first", "last", "all", 0, 1])


@pytest.mark.parametrize("metric", _METRICS)
def test_no_further_call_moves_a_score_out_of_the_bounds(metric: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(
        expected=st.lists(
            st.tuples(st.sampled_from("abc"), st.none() | st.integers(1, 2), _occurrences), max_size=4
        ),
        actual=st.lists(
            st.tuples(st.sampled_from("abc"), st.none() | st.integers(1, 2), st.booleans()), max_size=6
        ),
        groups=st.lists(st.none() | st.integers(0, 1), min_size=6, max_size=6),
    )
    def check(expected: list[Any], actual: list[Any], groups: list[int | None]) -> None:
        evaluator = _evaluator(
            metric,
            [
                {"name": name, "args": None if value is None else {"v": value}, "occurrence": occurrence}
                for name, value, occurrence in expected
            ],
        )
        calls = [
            ToolCall(name=name, parallel_group=group)
            if value is None
            else _call(name, {"v": value}, parallel_group=group)
            for (name, value, _), group in zip(actual, groups, strict=False)
        ]
        run = run_with(calls)
        early = replace(
            run, tool_calls=[call for call, (*_, kept) in zip(calls, actual, strict=True) if kept]
        )

        lowest, highest = evaluator.attainable(early)

        answer = evaluator.evaluate(run, RunFacts())
        if isinstance(answer, Score):
            assert lowest <= answer.value <= highest

    check()


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    @settings(max_examples=100, deadline=None)
    @given(expected=_letters.filter(bool), actual=_letters.filter(bool))
    def check(expected: list[str], actual: list[str]) -> None:
        calls = [_call(name) for name in actual]
        precision = _value("trajectory-precision", expected, calls)
        recall = _value("trajectory-recall", expected, calls)

        f1 = _value("trajectory-f1", expected, calls)

        mean = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        assert pytest.approx(mean) == f1
        assert _value("trajectory-order-f1", expected, calls) <= f1

    check()


@pytest.mark.parametrize(
    ("config", "arguments", "told"),
    [
        ({"args_match": "exact"}, {"seat": "4A", "cartId": 7}, "args_match: exact: unexpected cartId"),
        ({"args_match": "exact"}, {"cartId": 7}, "args_match: exact: missing seat, unexpected cartId"),
        ({"args_match": "partial"}, {"seat": "9F", "cartId": 7}, "args_match: partial: another seat"),
        ({"args_match": "partial_deep"}, {}, "args_match: partial_deep: missing seat"),
        (
            {"args_match": "subset"},
            {"seat": "9F", "cartId": 7},
            "args_match: subset: another seat, unexpected cartId",
        ),
    ],
)
def test_the_explanation_tells_which_rule_refused_a_call_of_the_right_tool(
    config: dict[str, Any], arguments: JsonObject, told: str
) -> None:
    calls = [_call("search"), _call("book", arguments)]
    expected = [{"name": "book", "args": {"seat": "4A"}}]

    for metric in _METRICS:
        answer = _evaluator(metric, expected, **config).evaluate(run_with(calls), RunFacts())

        assert isinstance(answer, Score)
        assert f"call 2, book: {told}" == answer.lines[-1]


def test_the_explanation_tells_that_a_call_stands_in_another_order_or_is_not_the_one_asked_for() -> None:
    in_order = _evaluator("trajectory-in-order", ["a", "b"])
    first = _evaluator("trajectory-recall", [{"name": "a", "args": {"n": 2}, "occurrence": "first"}])

    swapped = in_order.evaluate(run_with([_call("b"), _call("a")]), RunFacts())
    second = first.evaluate(run_with([_call("a", {"n": 1}), _call("a", {"n": 2})]), RunFacts())

    assert isinstance(swapped, Score)
    assert "call 1, b: not in the expected order" == swapped.lines[-1]
    assert isinstance(second, Score)
    assert "call 1, a: args_match: exact: another n" == second.lines[-1]
