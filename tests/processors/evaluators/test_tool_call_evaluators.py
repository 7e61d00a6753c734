"""What the tool-call evaluators do beyond the reference cases: values not captured, ids, caps, groups."""

from typing import Any

import pytest

from processors.comparison import ToolCallConfig
from processors.criteria import evaluator_types
from processors.evaluators.tool_calls import ToolCallArgs, ToolCallArgsConfig, ToolCallArgsCriteria
from processors.model import (
    AgentRun,
    CallCategory,
    Evaluator,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
    json_text,
)
from tests.strategies import run_with


def _evaluator(id: str, criteria: dict[str, Any] | None = None, **config: Any) -> Evaluator:
    kind = evaluator_types()[id]
    model = None if kind.Criteria is None else kind.Criteria.model_validate(criteria)
    return kind(kind.Config.model_validate(config), model)


def _call(name: str, arguments: JsonValue = None, result: JsonValue = None, **fields: Any) -> ToolCall:
    """A call whose values were captured."""
    values: dict[str, Any] = {
        "arguments": arguments or {},
        "arguments_text": json_text(arguments or {}),
        "arguments_state": ValueState.PRESENT,
        "result": result,
        "result_text": result if isinstance(result, str) else json_text(result),
        "result_state": ValueState.PRESENT,
    }
    return ToolCall(name=name, **{**values, **fields})


def _value(evaluator: Evaluator, *calls: ToolCall) -> float:
    answer = evaluator.evaluate(run_with(list(calls)), RunFacts())
    assert isinstance(answer, Score)
    return answer.value


def _reason(evaluator: Evaluator, *calls: ToolCall) -> NotEvaluatedReason:
    answer = evaluator.evaluate(run_with(list(calls)), RunFacts())
    assert isinstance(answer, NotEvaluated)
    return answer.reason


_BOOK = {"tool_calls": [{"name": "book", "args": {"seat": "4A"}}]}
_SAID = {"tool_outputs": [{"name": "say", "output": "hi"}]}

_HIDDEN = [ValueState.ABSENT, ValueState.REDACTED, ValueState.TRUNCATED, ValueState.UNPARSED]


@pytest.mark.parametrize("state", _HIDDEN)
def test_arguments_that_are_needed_and_not_known_are_not_graded(state: ValueState) -> None:
    reason = _reason(_evaluator("tool-call-args", _BOOK), ToolCall(name="book", arguments_state=state))

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is reason


def test_arguments_of_other_tools_need_not_be_known() -> None:
    calls = ToolCall(name="other"), _call("book", {"seat": "4B"})

    assert 0.0 == _value(_evaluator("tool-call-args", _BOOK), *calls)


def test_arguments_that_could_not_change_the_score_need_not_be_known() -> None:
    calls = ToolCall(name="book"), _call("book", {"seat": "4A"})

    assert 1.0 == _value(_evaluator("tool-call-args", _BOOK), *calls)


def test_no_arguments_expected_fits_a_call_with_unknown_ones_unless_further_ones_are_forbidden() -> None:
    criteria = {"tool_calls": [{"name": "book", "args": {}}]}

    assert 1.0 == _value(_evaluator("tool-call-args", criteria), ToolCall(name="book"))
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(
        _evaluator("tool-call-args", criteria, subset=False), ToolCall(name="book")
    )


@pytest.mark.parametrize("state", [ValueState.ABSENT, ValueState.UNPARSED])
def test_where_empty_input_is_left_out_missing_arguments_are_none(state: ValueState) -> None:
    call = ToolCall(name="book", arguments_state=state, lenient_values=True)

    assert 0.0 == _value(_evaluator("tool-call-args", _BOOK), call)


@pytest.mark.parametrize("state", [ValueState.ABSENT, ValueState.REDACTED, ValueState.TRUNCATED])
def test_a_result_that_is_needed_and_not_known_is_not_graded(state: ValueState) -> None:
    for strict in (False, True):
        reason = _reason(
            _evaluator("tool-call-output", _SAID, strict=strict), ToolCall(name="say", result_state=state)
        )

        assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is reason


def test_where_empty_output_is_left_out_a_missing_result_is_the_empty_text() -> None:
    criteria = {"tool_outputs": [{"name": "say", "output": ""}]}

    assert 1.0 == _value(_evaluator("tool-call-output", criteria), ToolCall(name="say", lenient_values=True))


@pytest.mark.parametrize(
    ("text", "expected", "score"),
    [
        ("{'a': 1}", {"a": 1.0}, 1.0),
        ('{"a": true}', {"a": 1}, 0.0),
        ("7", 7, 1.0),
        ("True", True, 1.0),
        ("(1, 2)", [1, 2], 1.0),
        ("", None, 1.0),
        ("None", None, 1.0),
        ("plain text", {"a": 1}, 0.0),
    ],
)
def test_a_structured_expectation_is_held_against_the_value_that_a_text_writes(
    text: str, expected: JsonValue, score: float
) -> None:
    criteria = {"tool_outputs": [{"name": "say", "output": expected}]}

    assert score == _value(_evaluator("tool-call-output", criteria), _call("say", result=text))


def test_expected_texts_can_be_compared_as_json() -> None:
    criteria = {"tool_outputs": [{"name": "say", "output": '{"t": 1}'}]}
    call = _call("say", result={"t": 1.0}, result_text='{"t":1.0}')

    assert 0.0 == _value(_evaluator("tool-call-output", criteria), call)
    assert 1.0 == _value(_evaluator("tool-call-output", criteria, comparison="json"), call)


def test_an_expected_id_takes_the_call_with_that_id_or_by_name_one_without() -> None:
    criteria = {"tool_calls": [{"name": "book", "args": {"seat": "4A"}, "id": "c-2"}]}
    evaluator = _evaluator("tool-call-args", criteria)

    assert 1.0 == _value(evaluator, _call("other", {"seat": "4A"}, call_id="c-2"))
    assert 1.0 == _value(evaluator, _call("book", {"seat": "4A"}))
    assert 0.0 == _value(evaluator, _call("book", {"seat": "4A"}, call_id="c-1"))


def test_a_key_counts_a_call_once_that_it_means_by_name_and_by_id() -> None:
    evaluator = _evaluator("tool-call-count", {"toolCallsCount": {"search": ["=", 2]}})

    assert 1.0 == _value(evaluator, _call("search", call_id="search"), _call("find", call_id="search"))


def test_handoffs_are_seen_where_criteria_name_them_or_the_configuration_asks_for_them() -> None:
    handoff = _call("transfer_to_b", category=CallCategory.HANDOFF)

    assert 1.0 == _value(_evaluator("tool-call-order", {"toolCallsOrder": ["transfer_to_b"]}), handoff)
    assert 1.0 == _value(_evaluator("tool-call-order", {"toolCallsOrder": []}), handoff)
    assert 0.0 == _value(
        _evaluator("tool-call-order", {"toolCallsOrder": []}, includeCategories=["handoff"]), handoff
    )


def test_parallel_calls_are_taken_in_the_order_that_fits_unless_strict() -> None:
    criteria = {"toolCallsOrder": ["a", "b", "c"]}
    calls = [_call("b", parallel_group=1), _call("a", parallel_group=1), _call("c")]
    apart = [_call("b"), _call("a"), _call("c")]

    assert 1.0 == _value(_evaluator("tool-call-order", criteria), *calls)
    assert 0.0 == _value(_evaluator("tool-call-order", criteria, strict=True), *calls)
    assert pytest.approx(2 / 3) == _value(_evaluator("tool-call-order", criteria), *apart)


def test_more_calls_than_can_be_ordered_are_over_limit() -> None:
    calls = [ToolCall(name="a")] * 10_001

    assert NotEvaluatedReason.OVER_LIMIT is _reason(
        _evaluator("tool-call-order", {"toolCallsOrder": ["a"]}), *calls
    )


def test_more_comparisons_than_allowed_are_over_limit() -> None:
    args = {"tool_calls": [{"name": "book", "args": {"seat": "4A"}}] * 101}
    outputs = {"tool_outputs": [{"name": "book", "output": "x"}] * 101}
    calls = [_call("book", result="y")] * 100

    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator("tool-call-args", args), *calls)
    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator("tool-call-output", outputs), *calls)


def test_values_too_long_to_be_read_are_over_limit_not_a_low_score() -> None:
    text = "x" * (256 * 1024 + 1)
    call = ToolCall(
        name="book",
        arguments_text=text,
        arguments_state=ValueState.UNPARSED,
        result_text=text,
        result_state=ValueState.UNPARSED,
        lenient_values=True,
    )
    outputs = {"tool_outputs": [{"name": "book", "output": "x"}]}

    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator("tool-call-args", _BOOK), call)
    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator("tool-call-output", outputs), call)
    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator("tool-repetition"), call, call, call)


def test_long_values_are_cut_in_details() -> None:
    answer = _evaluator("tool-call-args", _BOOK).evaluate(
        run_with([_call("book", {"seat": "x" * 5000})]), RunFacts()
    )

    assert isinstance(answer, Score)
    assert len(answer.lines[0]) < 1200


def test_details_tell_operator_expectation_and_what_was_there() -> None:
    evaluator = _evaluator("tool-call-count", {"toolCallsCount": {"search": [">=", 2]}})

    answer = evaluator.evaluate(run_with([_call("search"), _call("find")]), RunFacts())

    assert isinstance(answer, Score)
    assert {
        "expected": {"search": [">=", 2]},
        "actual": {"search": 1, "find": 1},
        "explained_tool_calls_count": {"search": "Actual: 1, Expected: 2, Score: 0.0"},
    } == answer.details
    assert ("search: Actual: 1, Expected: >= 2, Score: 0.0",) == answer.lines


def _attainable(evaluator: Evaluator, *calls: ToolCall) -> tuple[float, float]:
    return evaluator.attainable(run_with(list(calls), complete=False))


@pytest.mark.parametrize(
    ("operator", "before", "at", "beyond"),
    [
        ("=", (0.0, 1.0), (0.0, 1.0), (0.0, 0.0)),
        ("==", (0.0, 1.0), (0.0, 1.0), (0.0, 0.0)),
        ("!=", (0.0, 1.0), (0.0, 1.0), (1.0, 1.0)),
        (">", (0.0, 1.0), (0.0, 1.0), (1.0, 1.0)),
        (">=", (0.0, 1.0), (1.0, 1.0), (1.0, 1.0)),
        ("<", (0.0, 1.0), (0.0, 0.0), (0.0, 0.0)),
        ("<=", (0.0, 1.0), (0.0, 1.0), (0.0, 0.0)),
    ],
)
def test_a_count_is_settled_once_more_calls_cannot_change_it(
    operator: str, before: tuple[float, float], at: tuple[float, float], beyond: tuple[float, float]
) -> None:
    call = _call("a")
    for strict in (False, True):
        evaluator = _evaluator("tool-call-count", {"toolCallsCount": {"a": [operator, 2]}}, strict=strict)

        assert before == _attainable(evaluator, call)
        assert at == _attainable(evaluator, call, call)
        assert beyond == _attainable(evaluator, call, call, call)


def test_the_bounds_of_counts_add_up_over_criteria() -> None:
    criteria = {"toolCallsCount": {"a": ["=", 0], "b": [">=", 1], "c": ["=", 1], "d": ["=", 0]}}
    calls = _call("a"), _call("b")

    assert (0.25, 0.75) == _attainable(_evaluator("tool-call-count", criteria), *calls)
    assert (0.0, 0.0) == _attainable(_evaluator("tool-call-count", criteria, strict=True), *calls)


def test_an_order_keeps_what_it_has_and_can_be_completed() -> None:
    evaluator = _evaluator("tool-call-order", {"toolCallsOrder": ["a", "b", "c", "d"]})

    assert (0.5, 1.0) == _attainable(evaluator, _call("a"), _call("d"), _call("c"))


def test_of_a_parallel_group_only_one_call_is_counted_on() -> None:
    evaluator = _evaluator("tool-call-order", {"toolCallsOrder": ["a", "b"]})
    calls = _call("a", parallel_group=1), _call("b", parallel_group=1)

    assert (0.5, 1.0) == _attainable(evaluator, *calls)


@pytest.mark.parametrize(
    ("names", "attainable"),
    [
        (["a", "b", "a"], (0.0, 1.0)),
        (["b", "a"], (0.0, 1.0)),
        (["b", "b"], (0.0, 0.0)),
        (["x"], (0.0, 0.0)),
        (["a", "b", "a", "a"], (0.0, 0.0)),
    ],
)
def test_a_strict_order_is_lost_once_a_call_has_no_place_in_it(
    names: list[str], attainable: tuple[float, float]
) -> None:
    evaluator = _evaluator("tool-call-order", {"toolCallsOrder": ["a", "b", "a"]}, strict=True)

    assert attainable == _attainable(evaluator, *map(_call, names))


def test_fitted_arguments_stay_fitted_and_others_can_still_be() -> None:
    criteria = {"tool_calls": [{"name": "a", "args": {"x": 1}}, {"name": "a", "args": {"x": 2}}]}
    one, both = [_call("a", {"x": 1})], [_call("a", {"x": 2}), _call("a", {"x": 1})]

    assert (0.5, 1.0) == _attainable(_evaluator("tool-call-args", criteria), *one)
    assert (0.0, 1.0) == _attainable(_evaluator("tool-call-args", criteria, strict=True), *one)
    assert (1.0, 1.0) == _attainable(_evaluator("tool-call-args", criteria, strict=True), *both)


def test_a_fitted_output_stays_fitted_unless_strict() -> None:
    said = _call("say", result="hi")

    assert (1.0, 1.0) == _attainable(_evaluator("tool-call-output", _SAID), said)
    assert (0.0, 1.0) == _attainable(_evaluator("tool-call-output", _SAID, strict=True), said)


@pytest.mark.parametrize("id", ["tool-call-count", "tool-call-order", "tool-call-args", "tool-call-output"])
def test_an_empty_expectation_is_missed_for_good_by_any_call(id: str) -> None:
    (key,) = (evaluator_types()[id].Criteria or ToolCallConfig).model_fields
    evaluator = _evaluator(id, {key: {} if id == "tool-call-count" else []})

    assert (0.0, 0.0) == _attainable(evaluator, _call("a"))
    assert (0.0, 1.0) == _attainable(evaluator)


@pytest.mark.parametrize(("times", "highest"), [(0, 1.0), (3, 0.5), (6, 0.0)])
def test_a_repetition_cannot_be_undone(times: int, highest: float) -> None:
    assert (0.0, highest) == _attainable(_evaluator("tool-repetition"), *[_call("a")] * times)


def _refunds(*amounts: JsonValue) -> AgentRun:
    calls = [ToolCall(name="search")]
    for amount in amounts:
        state = ValueState.ABSENT if amount is None else ValueState.PRESENT
        arguments: JsonValue = None if amount is None else {"amount": amount}
        calls.append(ToolCall(name="refund", arguments=arguments, arguments_state=state))
    return run_with(calls)


def _which_calls(calls: str, **config: Any) -> Evaluator:
    expected = {"name": "refund", "args": {"amount": {"$range": [0, 100]}}}
    return ToolCallArgs(
        ToolCallArgsConfig.model_validate({"calls": calls, **config}),
        ToolCallArgsCriteria.model_validate({"tool_calls": [expected]}),
    )


@pytest.mark.parametrize(
    ("calls", "amounts", "score"),
    [
        ("any", [50, 5000], 1.0),
        ("every", [50, 5000], 0.0),
        ("every", [50, 60], 1.0),
        ("every", [], 0.0),
        ("first", [50, 5000], 1.0),
        ("first", [5000, 50], 0.0),
        ("last", [50, 5000], 0.0),
        ("last", [5000, 50], 1.0),
        ("every", [None, 5000], 0.0),
        ("every", [None, 50], None),
        ("first", [None, 50], None),
        ("first", [50, None], 1.0),
        ("last", [50, None], None),
    ],
)
def test_criteria_say_which_calls_have_to_fit(
    calls: str, amounts: list[JsonValue], score: float | None
) -> None:
    answer = _which_calls(calls).evaluate(_refunds(*amounts), RunFacts())

    if score is None:
        assert isinstance(answer, NotEvaluated)
        assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is answer.reason
    else:
        assert isinstance(answer, Score)
        assert score == answer.value


def test_the_explanation_names_the_calls_that_do_not_fit() -> None:
    answer = _which_calls("every").evaluate(_refunds(50, 5000, 7000), RunFacts())

    assert isinstance(answer, Score)
    expected = "Expected: {'amount': {'$range': [0, 100]}}, Score: 0.0"
    assert (
        f"refund (call 3): Actual: {{'amount': 5000}}, {expected}",
        f"refund (call 4): Actual: {{'amount': 7000}}, {expected}",
    ) == answer.lines
    nothing = _which_calls("last").evaluate(_refunds(), RunFacts())
    assert isinstance(nothing, Score)
    assert (f"refund (no call): {expected}",) == nothing.lines


def test_an_incomplete_run_fails_once_a_call_misfits_where_every_call_has_to_fit() -> None:
    run = _refunds(50, 5000)

    assert (0.0, 0.0) == _which_calls("every").attainable(run)
    assert (0.0, 1.0) == _which_calls("every").attainable(_refunds(50))
    assert (0.0, 1.0) == _which_calls("last").attainable(run) == _which_calls("first").attainable(run)


def test_a_call_is_meant_by_its_id_where_there_is_one() -> None:
    calls = [
        ToolCall(name="refund", call_id="c1", arguments={"amount": 500}, arguments_state=ValueState.PRESENT),
        ToolCall(name="refund", call_id="c2", arguments={"amount": 50}, arguments_state=ValueState.PRESENT),
        ToolCall(name="other", arguments={}, arguments_state=ValueState.PRESENT),
    ]
    criteria = {"tool_calls": [{"name": "refund", "id": "c2", "args": {"amount": 50}}]}
    evaluator = ToolCallArgs(ToolCallArgsConfig(calls="every"), ToolCallArgsCriteria.model_validate(criteria))

    answer = evaluator.evaluate(run_with(calls), RunFacts())

    assert isinstance(answer, Score)
    assert 1.0 == answer.value
