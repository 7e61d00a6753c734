"""Arguments against schemas, against earlier results, and against all that the agent was told."""

from typing import Any

import pytest
from msgspec.structs import replace

from processors.criteria import evaluator_types
from processors.model import (
    AgentRun,
    Evaluator,
    JsonValue,
    Message,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.strategies import run_with

_FAILED = ToolError(type="TimeoutError", message="no flight AX7")


def _evaluator(kind: str, criteria: dict[str, Any] | None, **config: Any) -> Evaluator:
    found = evaluator_types()[kind]
    valid = None if found.Criteria is None else found.Criteria.model_validate(criteria)
    return found(found.Config.model_validate(config), valid)


def _call(
    name: str, result: JsonValue = None, /, parallel_group: int | None = None, **arguments: Any
) -> ToolCall:
    return ToolCall(
        name=name,
        arguments=arguments,
        arguments_state=ValueState.PRESENT,
        result=result,
        result_text=result if isinstance(result, str) else None,
        result_state=ValueState.PRESENT,
        parallel_group=parallel_group,
    )


def _score(evaluator: Evaluator, run: AgentRun) -> Score:
    answer = evaluator.evaluate(run, RunFacts())
    assert isinstance(answer, Score)
    return answer


def _reason(evaluator: Evaluator, run: AgentRun) -> NotEvaluatedReason:
    answer = evaluator.evaluate(run, RunFacts())
    assert isinstance(answer, NotEvaluated)
    return answer.reason


_CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_the_schema_score_is_the_share_of_valid_calls() -> None:
    calls = [_call("get weather", city="Oslo"), _call("get_weather", town="Oslo"), _call("other")]

    answer = _score(
        _evaluator("tool-args-schema", {}),
        run_with(calls, available_tools={"get_weather": _CITY, "other": None}),
    )

    assert 0.5 == answer.value
    assert ("call 2, get_weather.city: missing",) == answer.lines
    assert {
        "checked": 2,
        "valid": 1,
        "unchecked": 1,
        "violations": ["call 2, get_weather.city: missing"],
    } == answer.details


def test_a_configured_schema_goes_before_the_one_in_the_trace() -> None:
    run = run_with([_call("get_weather", city="Oslo")], available_tools={"get_weather": _CITY})
    stricter = {"schemas": {"get weather": {"properties": {"city": {"const": "Bergen"}}}}}

    assert 1.0 == _score(_evaluator("tool-args-schema", {}), run).value
    assert 0.0 == _score(_evaluator("tool-args-schema", stricter), run).value


def test_a_reference_to_what_the_schema_lacks_leaves_the_arguments_that_it_is_about_unjudged() -> None:
    schema = {"properties": {"place": {"$ref": "#/$defs/Place"}, "unit": {"enum": ["C", "F"]}}}
    evaluator = _evaluator("tool-args-schema", {})

    answer = evaluator.evaluate(
        run_with([_call("get", place={"city": "Oslo"})], available_tools={"get": schema}), RunFacts()
    )

    assert answer == NotEvaluated.not_captured("the schema of get lacks what it refers to: #/$defs/Place")
    run = run_with([_call("get", unit="C")], available_tools={"get": schema})
    assert 1.0 == _score(evaluator, run).value


def test_schemas_in_the_criteria_leave_other_tools_alone() -> None:
    calls = [_call("refund", amount=50), _call("ask", question="?")]
    run = run_with(calls, available_tools={"ask": {"additionalProperties": False}, "refund": {}})
    criteria = {"schemas": {"refund": {"properties": {"amount": {"maximum": 100}}}}}
    evaluator = _evaluator("tool-args-schema", criteria)

    answer = _score(evaluator, run)

    assert (1.0, ("1 of 1 calls are valid",)) == (answer.value, answer.lines)
    none = _score(evaluator, run_with(calls[1:], available_tools=run.available_tools))
    assert (1.0, ("no call of a tool with a schema was made",)) == (none.value, none.lines)


def test_calls_that_failed_or_never_ran_can_be_left_out_of_the_schema_check() -> None:
    refused = replace(_call("refund", amount="lots"), error=_FAILED)
    denied = replace(_call("refund", amount=5000), executed=False)
    run = run_with([refused, denied, _call("refund", amount=50), _call("refund", amount=500)])
    criteria = {"schemas": {"refund": {"properties": {"amount": {"type": "number", "maximum": 100}}}}}

    assert 0.25 == _score(_evaluator("tool-args-schema", criteria), run).value
    answer = _score(_evaluator("tool-args-schema", criteria, include_failed=False), run)
    assert (0.5, ("call 4, refund.amount: more than 100",)) == (answer.value, answer.lines)


def test_the_schema_does_not_apply_where_none_is_known_of_what_was_called() -> None:
    evaluator = _evaluator("tool-args-schema", {})

    assert NotEvaluatedReason.NOT_APPLICABLE is _reason(evaluator, run_with([_call("t")]))
    assert NotEvaluatedReason.NOT_APPLICABLE is _reason(
        evaluator, run_with([_call("t")], available_tools={"t": None})
    )
    assert 1.0 == _score(evaluator, run_with([])).value


def test_arguments_that_are_broken_json_are_not_valid_and_unknown_ones_are_not_judged() -> None:
    evaluator = _evaluator("tool-args-schema", {"schemas": {"t": {}}})
    broken = ToolCall(name="t", arguments_text='{"city": Oslo}', arguments_state=ValueState.UNPARSED)
    bare = ToolCall(name="t", arguments_text="Oslo", arguments_state=ValueState.UNPARSED)

    assert ("call 1, t.arguments: no JSON object",) == _score(evaluator, run_with([broken])).lines
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(evaluator, run_with([bare]))
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(evaluator, run_with([ToolCall(name="t")]))


def test_invalid_arguments_are_not_hidden_by_unknown_ones() -> None:
    evaluator = _evaluator(
        "tool-args-schema", {"schemas": {"pay": {"properties": {"to": {"type": "string"}}}}}
    )
    unknown = replace(_call("pay"), arguments=None, arguments_text=None, arguments_state=ValueState.REDACTED)

    answer = evaluator.evaluate(run_with([unknown, _call("pay", to=7)]), RunFacts())

    assert isinstance(answer, NotEvaluated)
    best = answer.settled(1.0)
    assert isinstance(best, Score)
    assert 0.5 == best.value
    assert best.lines[0].startswith("call 2, pay.to")
    assert best.lines[-1].startswith("not known: ")
    assert answer is answer.settled(0.5)


def test_a_schema_check_that_is_given_up_is_over_limit() -> None:
    evaluator = _evaluator("tool-args-schema", {"schemas": {"t": {"$ref": "#"}}})

    assert NotEvaluatedReason.OVER_LIMIT is _reason(evaluator, run_with([_call("t")]))


def test_a_schema_with_mistakes_is_refused_with_its_path() -> None:
    with pytest.raises(ValueError, match=r"^t\.properties\.a\.type: expected one of object"):
        _evaluator("tool-args-schema", {"schemas": {"t": {"properties": {"a": {"type": "txt"}}}}})


_FLOW: dict[str, Any] = {
    "flows": [
        {"tool": "book", "argument": "flight_id", "from_tool": "search_*", "from_path": "flights[*].id"}
    ]
}
_FLIGHTS: JsonValue = {"flights": [{"id": 7}, {"id": "AX7"}]}


@pytest.mark.parametrize(
    ("flight", "score"), [(7, 1.0), (7.0, 1.0), ("AX7", 1.0), ("7", 0.0), ("ax7", 0.0), (None, 0.0)]
)
def test_an_argument_has_to_equal_what_an_earlier_call_returned(flight: JsonValue, score: float) -> None:
    run = run_with([_call("search_flights", _FLIGHTS), _call("book", flight_id=flight)])

    assert score == _score(_evaluator("tool-args-flow", _FLOW), run).value


def test_texts_may_stand_for_numbers_where_values_are_compared_as_text() -> None:
    run = run_with([_call("search_flights", _FLIGHTS), _call("book", flight_id="7")])

    assert 1.0 == _score(_evaluator("tool-args-flow", _FLOW, comparison="text"), run).value


def test_only_earlier_calls_are_sources() -> None:
    evaluator = _evaluator("tool-args-flow", _FLOW)
    later = [_call("book", flight_id=7), _call("search_flights", _FLIGHTS)]
    beside = [_call("search_x", _FLIGHTS, parallel_group=0), _call("book", parallel_group=0, flight_id=7)]

    answer = _score(evaluator, run_with(later))

    assert 0.0 == answer.value
    assert ("call 1, book.flight_id: no earlier call of search_*.flights[*].id",) == answer.lines
    assert 0.0 == _score(evaluator, run_with(beside)).value


def test_the_explanation_of_a_flow_never_holds_the_value() -> None:
    run = run_with([_call("search_flights", _FLIGHTS), _call("book", flight_id="hunter2")])

    answer = _score(_evaluator("tool-args-flow", _FLOW), run)

    assert ("call 2, book.flight_id: not in any earlier search_*.flights[*].id",) == answer.lines
    assert "hunter2" not in str(answer)


def test_a_missing_argument_is_a_violation_unless_it_is_optional() -> None:
    run = run_with([_call("search_flights", _FLIGHTS), _call("book")])
    optional = {"flows": [{**_FLOW["flows"][0], "required": False}]}

    assert ("call 2, book.flight_id: missing",) == _score(_evaluator("tool-args-flow", _FLOW), run).lines
    assert 1.0 == _score(_evaluator("tool-args-flow", optional), run).value


def test_every_value_of_a_path_is_checked() -> None:
    flow = {"flows": [{"tool": "pay", "argument": "items[*].id", "fromTool": "cart", "fromPath": "[*]"}]}
    run = run_with([_call("cart", [1, 2]), _call("pay", items=[{"id": 1}, {"id": 2}, {"id": 3}])])

    assert pytest.approx(2 / 3) == _score(_evaluator("tool-args-flow", flow), run).value


def test_a_source_whose_result_is_not_known_matters_only_where_nothing_else_fits() -> None:
    evaluator = _evaluator("tool-args-flow", _FLOW)
    unknown = ToolCall(name="search_x")
    failed = ToolCall(name="search_x", error=_FAILED)

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(
        evaluator, run_with([unknown, _call("book", flight_id=7)])
    )
    assert (
        1.0
        == _score(
            evaluator, run_with([unknown, _call("search_y", _FLIGHTS), _call("book", flight_id=7)])
        ).value
    )
    assert 0.0 == _score(evaluator, run_with([failed, _call("book", flight_id=7)])).value


def test_a_result_that_is_json_text_is_read() -> None:
    run = run_with([_call("search_flights", '{"flights": [{"id": 7}]}'), _call("book", flight_id=7)])

    assert 1.0 == _score(_evaluator("tool-args-flow", _FLOW), run).value


def test_without_anything_to_check_flow_and_grounding_score_1() -> None:
    assert (
        1.0
        == _score(_evaluator("tool-args-flow", _FLOW), run_with([_call("search_flights", _FLIGHTS)])).value
    )
    assert 1.0 == _score(_evaluator("tool-args-grounded", None), run_with([])).value
    assert (
        1.0 == _score(_evaluator("tool-args-grounded", None), run_with([_call("t", count=3, all=True)])).value
    )


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ({"tool": "a", "argument": "b[", "from_tool": "c"}, "is no path"),
        ({"tool": "a", "argument": "b"}, "either from_tool or any_of"),
        ({"tool": "a", "argument": "b", "from_tool": "c", "any_of": [{"from_tool": "d"}]}, "either"),
        ({"tool": "a", "argument": "b", "from_path": "x", "any_of": [{"from_tool": "d"}]}, "from_path"),
    ],
)
def test_a_flow_with_a_broken_path_or_no_one_source_is_refused(flow: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _evaluator("tool-args-flow", {"flows": [flow]})


def test_one_of_several_sources_suffices_and_all_are_named_where_none_does() -> None:
    flow = {
        "tool": "pay",
        "argument": "to",
        "any_of": [{"from_tool": "a", "from_path": "id"}, {"from_tool": "b"}],
    }
    evaluator = _evaluator("tool-args-flow", {"flows": [flow]})
    sources = [
        ToolCall(name="a", result={"id": 1}, result_state=ValueState.PRESENT),
        ToolCall(name="b", result=2, result_text="2", result_state=ValueState.PRESENT),
    ]

    assert 1.0 == _score(evaluator, run_with([*sources, _call("pay", to=1), _call("pay", to=2)])).value
    answer = _score(evaluator, run_with([*sources, _call("pay", to=3)]))
    assert ("call 3, pay.to: not in any earlier a.id or b",) == answer.lines


def _asked(text: JsonValue, *calls: ToolCall, **fields: Any) -> AgentRun:
    return run_with([*calls], input=text, input_state=ValueState.PRESENT, **fields)


def test_values_come_from_the_input_and_from_earlier_results() -> None:
    run = _asked(
        "Fly me to Oslo on March 5, 2026 for at most 250 euros",
        _call("search", [{"id": "AX7", "price": 199.5}], to="OSLO", day="2026-03-05", limit=250),
        _call("book", id="AX-9", price=199.5),
    )

    answer = _score(_evaluator("tool-args-grounded", None), run)

    assert pytest.approx(4 / 5) == answer.value
    assert ("call 2, book.id: not grounded",) == answer.lines
    assert {"checked": 5, "grounded": 4, "ungrounded": ["call 2, book.id"]} == answer.details


def test_an_explanation_of_grounding_names_the_path_and_never_the_value() -> None:
    run = _asked("log in", _call("login", user={"names": ["a b"], "password": "hunter2"}))

    answer = _score(_evaluator("tool-args-grounded", None), run)

    assert "call 1, login.user.password: not grounded" in answer.lines
    assert "hunter2" not in str(answer)


def test_results_of_later_calls_and_of_calls_beside_are_no_source() -> None:
    later = _asked("book a flight", _call("book", id="AX7"), _call("search", ["AX7"]))
    beside = _asked(
        "book a flight", _call("search", ["AX7"], parallel_group=0), _call("book", parallel_group=0, id="AX7")
    )

    for run in (later, beside):
        assert 0.0 == _score(_evaluator("tool-args-grounded", None), run).value


def test_a_call_s_own_arguments_are_no_source_for_the_next_one() -> None:
    run = _asked("book a flight", _call("hold", id="AX7"), _call("book", id="AX7"))

    assert 0.0 == _score(_evaluator("tool-args-grounded", None), run).value


def test_instructions_and_earlier_turns_are_sources_and_the_agent_s_own_words_are_not() -> None:
    messages = [
        Message(role="system", content="The shop is S-100.", turn=0),
        Message(role="user", content="What flights are there?", turn=0),
        Message(role="tool", content='["AX7"]', turn=0),
        Message(role="assistant", content="AX7, or maybe BY8", turn=0),
        Message(role="user", content="Book the first for Ada", turn=1),
        Message(role="tool", content='{"reference": "ZZ1"}', turn=1),
    ]
    run = run_with(
        [_call("book", id="AX7", shop="S-100", name="Ada"), _call("book", id="BY8"), _call("book", id="ZZ1")],
        messages=messages,
    )

    answer = _score(_evaluator("tool-args-grounded", None), run)

    assert ["call 2, book.id", "call 3, book.id"] == answer.details["ungrounded"]


def test_choices_of_the_schema_and_configured_constants_are_sources() -> None:
    schema = {"properties": {"unit": {"enum": ["celsius", "kelvin"]}, "lang": {"default": "nb"}}}
    run = _asked(
        "weather in Oslo",
        _call("weather", city="Oslo", unit="celsius", lang="nb", client="acme"),
        available_tools={"weather": schema},
    )

    assert 0.75 == _score(_evaluator("tool-args-grounded", None), run).value
    assert 1.0 == _score(_evaluator("tool-args-grounded", None, constants=["ACME"]), run).value


def test_arguments_may_be_left_out_or_picked_by_path() -> None:
    run = _asked("mail Ada", _call("send_mail", to="Ada", body="Dear Madam", meta=[{"id": "x77"}]))

    def value(**config: Any) -> float:
        return _score(_evaluator("tool-args-grounded", None, **config), run).value

    assert pytest.approx(1 / 3) == value()
    assert 0.5 == value(ignore={"send_*": ["body"]})
    assert 1.0 == value(ignore={"*": ["body", "meta[*].id"]})
    assert 1.0 == value(only={"send_mail": ["to"]})
    assert 1.0 == value(only={"other": ["to"]})


def test_what_is_not_known_could_be_the_source() -> None:
    evaluator = _evaluator("tool-args-grounded", None)
    no_input = run_with([_call("book", id="AX7")])
    no_result = _asked(
        "book a flight", ToolCall(name="search", arguments={}, arguments_state=ValueState.PRESENT)
    )
    no_arguments = _asked("book a flight", ToolCall(name="book"))

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(evaluator, no_input)
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(
        evaluator, _asked("book", *no_result.tool_calls, _call("book", id="AX7"))
    )
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(evaluator, no_arguments)
    assert 1.0 == _score(evaluator, _asked("book AX7", *no_result.tool_calls, _call("book", id="AX7"))).value


def test_the_message_of_a_failed_call_is_a_source() -> None:
    failed = ToolCall(name="search", arguments={}, arguments_state=ValueState.PRESENT, error=_FAILED)

    assert (
        1.0
        == _score(_evaluator("tool-args-grounded", None), _asked("x", failed, _call("book", id="AX7"))).value
    )


def test_more_text_than_is_read_is_over_limit() -> None:
    run = _asked("word " * 100_000, _call("book", id="AX7"))

    assert NotEvaluatedReason.OVER_LIMIT is _reason(_evaluator("tool-args-grounded", None), run)
