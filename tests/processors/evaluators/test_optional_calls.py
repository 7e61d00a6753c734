"""Optional expected calls, held against every alternative with and without each of them."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.criteria import evaluator_types
from processors.model import AgentRun, Evaluator, NotEvaluated, RunFacts, Score, ToolCall, ValueState
from tests.strategies import run_with

_TRAJECTORIES = (
    "trajectory-exact", "trajectory-in-order", "trajectory-any-order", "trajectory-precision",
    "trajectory-recall", "trajectory-f1", "trajectory-order-f1",
)  # fmt: skip

_NAMES = st.sampled_from("abc")
_ARGUMENTS = st.sampled_from([None, {"x": 1}, {"x": 2}])
_EXPECTED = st.lists(
    st.builds(
        lambda name, args, optional: {"name": name, "args": args, "optional": optional},
        _NAMES, _ARGUMENTS, st.booleans(),
    ),
    max_size=5,
)  # fmt: skip
_CALLS = st.lists(
    st.builds(
        lambda name, value, group: ToolCall(
            name=name,
            arguments={"x": value},
            arguments_state=ValueState.PRESENT if value else ValueState.ABSENT,
            parallel_group=group,
        ),
        _NAMES, st.sampled_from([1, 1, 2, 0]), st.sampled_from([None, None, 1, 2]),
    ),
    max_size=6,
)  # fmt: skip


def _alternatives(expected: Sequence[Any]) -> Iterator[list[Any]]:
    """Every list with and without each optional call, none marked any more."""
    optional = [position for position, call in enumerate(expected) if call["optional"]]
    for number in range(len(optional) + 1):
        for left_out in combinations(optional, number):
            yield [
                {**call, "optional": False}
                for position, call in enumerate(expected)
                if position not in left_out
            ]


def _trajectory(metric: str, expected: Sequence[Any]) -> Evaluator:
    kind = evaluator_types()[metric]
    assert kind.Criteria is not None
    return kind(kind.Config(), kind.Criteria.model_validate({"tool_calls": expected}))


def _order(expected: Sequence[Any], *, strict: bool) -> Evaluator:
    kind = evaluator_types()["tool-call-order"]
    assert kind.Criteria is not None
    keys = [{"name": call["name"], "optional": call["optional"]} for call in expected]
    return kind(
        kind.Config.model_validate({"strict": strict}),
        kind.Criteria.model_validate({"tool_calls_order": keys}),
    )


def _evaluator(metric: str, expected: Sequence[Any]) -> Evaluator:
    if metric.startswith("tool-call-order"):
        return _order(expected, strict=metric.endswith("strict"))
    return _trajectory(metric, expected)


def _best(metric: str, expected: Sequence[Any], run: AgentRun) -> float | None:
    """The best score of all alternatives; None where one of them is not evaluated."""
    answers = [_evaluator(metric, option).evaluate(run, RunFacts()) for option in _alternatives(expected)]
    scores = [answer.value for answer in answers if isinstance(answer, Score)]
    return max(scores) if len(scores) == len(answers) else None


@pytest.mark.parametrize("metric", [*_TRAJECTORIES, "tool-call-order", "tool-call-order strict"])
def test_the_score_is_that_of_the_best_alternative(metric: str) -> None:
    @settings(max_examples=100, deadline=None)
    @given(_EXPECTED, _CALLS)
    def check(expected: list[Any], calls: list[ToolCall]) -> None:
        run = run_with(calls)
        best = _best(metric, expected, run)
        answer = _evaluator(metric, expected).evaluate(run, RunFacts())

        if best is not None:
            assert isinstance(answer, Score)
            assert answer.value == pytest.approx(best)
        elif isinstance(answer, Score):  # what is not known changes nothing, whatever it is
            for value in (1, 2, 3):
                known = [_with_arguments(call, value) for call in calls]
                assert _best(metric, expected, run_with(known)) == pytest.approx(answer.value)

    check()


def _with_arguments(call: ToolCall, value: int) -> ToolCall:
    if call.arguments_state is ValueState.PRESENT:
        return call
    return ToolCall(
        name=call.name,
        arguments={"x": value},
        arguments_state=ValueState.PRESENT,
        parallel_group=call.parallel_group,
    )


@pytest.mark.parametrize("metric", [*_TRAJECTORIES, "tool-call-order", "tool-call-order strict"])
def test_further_calls_reach_no_score_outside_of_what_is_attainable(metric: str) -> None:
    @settings(max_examples=100, deadline=None)
    @given(
        _EXPECTED,
        st.lists(st.tuples(_CALLS.filter(bool).map(lambda calls: calls[0]), st.booleans()), max_size=6),
    )
    def check(expected: list[Any], calls: list[tuple[ToolCall, bool]]) -> None:
        evaluator = _evaluator(metric, expected)
        low, high = evaluator.attainable(run_with([call for call, is_known in calls if is_known]))
        answer = evaluator.evaluate(run_with([call for call, _ in calls]), RunFacts())

        assert isinstance(answer, NotEvaluated) or low - 1e-9 <= answer.value <= high + 1e-9

    check()


def test_optional_calls_that_were_not_made_are_not_missing() -> None:
    expected = ["search", {"name": "confirm", "optional": True}, "book"]
    evaluator = _trajectory("trajectory-exact", expected)
    short = evaluator.evaluate(run_with([ToolCall(name="search"), ToolCall(name="book")]), RunFacts())
    wrong = evaluator.evaluate(run_with([ToolCall(name="search"), ToolCall(name="pay")]), RunFacts())

    assert isinstance(short, Score)
    assert isinstance(wrong, Score)
    assert (short.value, short.details["assigned"]) == (1.0, [0, None, 1])
    assert short.lines == (
        "expected: [search, confirm (optional), book]",
        "actual: [search, book]",
        "matched: 2 of 2 expected, 2 of 2 actual",
    )
    assert "missing: [book]" in wrong.lines


def test_more_optional_calls_than_can_be_tried_in_order_are_refused() -> None:
    expected = [{"name": f"t{number}", "optional": True} for number in range(9)]

    assert _trajectory("trajectory-f1", expected).attainable(run_with([])) == (0.0, 1.0)
    for metric in ("trajectory-in-order", "tool-call-order"):
        with pytest.raises(ValueError, match="9 optional calls: at most 8 where their order counts"):
            _evaluator(metric, expected)
