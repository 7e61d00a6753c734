"""Which runs `when` selects."""

import pytest
from msgspec.structs import replace

from processors.comparison import Expected, compile_expected
from processors.criteria.selector import Selector, WhenEntry, selector_of
from processors.model import JsonValue, NotEvaluated, NotEvaluatedReason, ToolCall, ToolError, ValueState
from tests.strategies import run_with


def selects_input(expected: JsonValue, actual: JsonValue) -> bool | NotEvaluated:
    run = run_with([], input=actual, input_state=ValueState.PRESENT)
    return Selector(input=compile_expected(expected)).selects(run)


def compiled(**members: JsonValue) -> dict[str, Expected]:
    return {key.replace("__", "."): compile_expected(value) for key, value in members.items()}


@pytest.mark.parametrize(
    ("expected", "actual", "selected"),
    [
        ({"action": "get_forecast"}, {"action": "get_forecast", "city": "London"}, True),
        ({"action": "get_forecast"}, {"action": "get_humidity"}, False),
        ({"action": "get_forecast"}, {"city": "London"}, False),
        ({"action": "get_forecast"}, '{"action": "get_forecast", "days": 2}', True),
        ({"action": "get_forecast"}, '{"action": ', False),
        ({"action": "get_forecast"}, "get_forecast", False),
        ({"action": {"$in": ["a", "b"]}, "test": {"$absent": True}}, {"action": "b"}, True),
        ({"action": {"$in": ["a", "b"]}, "test": {"$absent": True}}, {"action": "b", "test": 1}, False),
        ({"user": {"tier": "gold"}}, {"user": {"tier": "gold", "id": 5}}, False),
        ({"user": {"$schema": {"required": ["tier"]}}}, {"user": {"tier": "gold", "id": 5}}, True),
        ({}, {"a": 1}, True),
        ({}, "hello", False),
        ("hello", "hello", True),
        ("hello", "hello there", False),
        ({"$regex": "(?i)forecast"}, "The Forecast, please", True),
        ({"$regex": "(?i)forecast"}, {"text": "The Forecast"}, False),
        ([1], [1], True),
        (None, None, True),
    ],
)
def test_an_input_is_held_against_its_condition(
    expected: JsonValue, actual: JsonValue, selected: bool
) -> None:
    assert selected is selects_input(expected, actual)


@pytest.mark.parametrize(
    ("expected", "session", "selected"),
    [
        ("s-1", "s-1", True),
        ("s-1", "s-2", False),
        ("s-1", None, False),
        ({"$glob": "s-*"}, "s-2", True),
        ({"$present": True}, None, False),
        ({"$absent": True}, None, True),
        ({"$absent": True}, "s-1", False),
    ],
)
def test_a_session_is_held_against_its_condition(
    expected: JsonValue, session: str | None, selected: bool
) -> None:
    selector = Selector(session=compile_expected(expected))

    assert selected is selector.selects(run_with([], session=session))


def test_attributes_are_looked_up_by_name_and_further_ones_do_not_count() -> None:
    selector = Selector(
        resource_attributes=compiled(deployment__environment="prod"),
        span_attributes=compiled(user__tier={"$in": ["gold", "silver"]}),
    )
    resource: dict[str, JsonValue] = {"deployment.environment": "prod", "host.name": "a"}

    assert True is selector.selects(
        run_with([], resource=resource, span_attributes={"user.tier": "gold", "x": 1})
    )
    assert False is selector.selects(run_with([], resource=resource))
    assert False is selector.selects(run_with([], span_attributes={"user.tier": "gold"}))


def test_an_input_that_is_not_known_leaves_it_open_only_where_all_else_holds() -> None:
    selector = Selector(input=compile_expected({"a": 1}), session=compile_expected("s"))
    open_run = run_with([], session="s", input_state=ValueState.REDACTED)

    answer = selector.selects(open_run)

    assert False is selector.selects(run_with([], session="other"))
    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is answer.reason
    assert "`when`: the input of the run is redacted" == answer.text


def test_the_input_of_an_incomplete_run_may_still_come() -> None:
    answer = Selector(input="x").selects(run_with([], complete=False, incomplete_reason="over_limit"))

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.OVER_LIMIT is answer.reason


_REFUND = ToolCall(
    name="refund",
    arguments={"amount": 5},
    arguments_state=ValueState.PRESENT,
    result={"status": "done"},
    result_state=ValueState.PRESENT,
)
_FAILED = replace(_REFUND, error=ToolError(type="TimeoutError", message=""))
_UNREAD = replace(_REFUND, result=None, result_state=ValueState.ABSENT)


@pytest.mark.parametrize(
    ("called", "calls", "selected"),
    [
        ("refund", [_REFUND], True),
        ("refund", [], False),
        ("re*", [_REFUND], True),
        (["refund", "cancel"], [_REFUND], False),
        ({"tool": "refund", "status": "failed"}, [_FAILED], True),
        ({"tool": "*", "status": "failed"}, [_REFUND], False),
        ({"tool": "refund", "args": {"amount": {"$range": [10, None]}}}, [_REFUND], False),
        ({"tool": "refund", "result": {"status": "done"}}, [_REFUND], True),
        (
            {"tool": "refund", "result": {"status": "done"}},
            [_UNREAD],
            NotEvaluatedReason.CONTENT_NOT_CAPTURED,
        ),
        (["cancel", {"tool": "refund", "result": "x"}], [_UNREAD], False),
    ],
)
def test_what_happened_in_the_run_selects_it(
    called: JsonValue, calls: list[ToolCall], selected: bool | NotEvaluatedReason
) -> None:
    selector = selector_of(WhenEntry.model_validate({"called": called}))

    answer = selector.selects(run_with(calls))
    of_incomplete = selector.selects(run_with(calls, complete=False))

    assert selected == (answer.reason if isinstance(answer, NotEvaluated) else answer)
    assert of_incomplete is True if selected is True else isinstance(of_incomplete, NotEvaluated)


def test_a_schema_that_takes_too_long_is_over_the_limit() -> None:
    schema: JsonValue = {"$schema": {"items": {"type": "integer"}}}

    answer = selects_input({"rows": schema}, {"rows": [1] * 20_000})

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.OVER_LIMIT is answer.reason
