"""`tool-constraints` against the published formulas of DECLARE, and against every extension of a run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, groupby, permutations, product
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from processors.comparison import RELATIONS
from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.evaluators.tool_constraints import (
    ToolConstraints,
    ToolConstraintsConfig,
    ToolConstraintsCriteria,
)
from processors.model import (
    AgentIdentity,
    AgentRun,
    Conversation,
    JsonObject,
    Message,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    RunFacts,
    Score,
    ToolCall,
    ToolError,
    ValueState,
    json_text,
    over_conversation,
)
from tests.strategies import run_with

_Trace = Sequence[str]
_Formula = Callable[[_Trace, int], bool]
"""A formula of linear temporal logic on finite traces, at a place of the trace."""


def _is(letter: str) -> _Formula:
    return lambda trace, at: trace[at][0] == letter


def _not(inner: _Formula) -> _Formula:
    return lambda trace, at: not inner(trace, at)


def _implies(first: _Formula, second: _Formula) -> _Formula:
    return lambda trace, at: not first(trace, at) or second(trace, at)


def _both(first: _Formula, second: _Formula) -> _Formula:
    return lambda trace, at: first(trace, at) and second(trace, at)


def _either(first: _Formula, second: _Formula) -> _Formula:
    return lambda trace, at: first(trace, at) or second(trace, at)


def _always(inner: _Formula) -> _Formula:
    return lambda trace, at: all(inner(trace, later) for later in range(at, len(trace)))


def _finally(inner: _Formula) -> _Formula:
    return lambda trace, at: any(inner(trace, later) for later in range(at, len(trace)))


def _next(inner: _Formula) -> _Formula:
    return lambda trace, at: at + 1 < len(trace) and inner(trace, at + 1)


def _weak_next(inner: _Formula) -> _Formula:
    return lambda trace, at: at + 1 >= len(trace) or inner(trace, at + 1)


def _until(first: _Formula, second: _Formula) -> _Formula:
    return lambda trace, at: any(
        second(trace, end) and all(first(trace, before) for before in range(at, end))
        for end in range(at, len(trace))
    )


def _weak_until(first: _Formula, second: _Formula) -> _Formula:
    return _either(_until(first, second), _always(first))


_A, _B = _is("a"), _is("b")
_RESPONSE = _always(_implies(_A, _finally(_B)))
_PRECEDENCE = _weak_until(_not(_B), _A)
_ALTERNATE_RESPONSE = _always(_implies(_A, _next(_until(_not(_A), _B))))
_ALTERNATE_PRECEDENCE = _both(_PRECEDENCE, _always(_implies(_B, _weak_next(_weak_until(_not(_B), _A)))))
_CHAIN_RESPONSE = _always(_implies(_A, _next(_B)))
_CHAIN_PRECEDENCE = _both(_always(_implies(_next(_B), _A)), lambda trace, at: not trace or not _B(trace, 0))
_NOT_CHAIN = _always(_implies(_A, _not(_next(_B))))
_NOT_RESPONSE = _always(_implies(_A, _not(_finally(_B))))
_NEVER_BOTH = _not(_both(_finally(_A), _finally(_B)))

_FORMULAS: dict[str, _Formula] = {
    "choice": _either(_finally(_A), _finally(_B)),
    "exclusive_choice": _both(_either(_finally(_A), _finally(_B)), _NEVER_BOTH),
    "responded_existence": _implies(_finally(_A), _finally(_B)),
    "response": _RESPONSE,
    "precedence": _PRECEDENCE,
    "succession": _both(_RESPONSE, _PRECEDENCE),
    "alternate_response": _ALTERNATE_RESPONSE,
    "alternate_precedence": _ALTERNATE_PRECEDENCE,
    "alternate_succession": _both(_ALTERNATE_RESPONSE, _ALTERNATE_PRECEDENCE),
    "chain_response": _CHAIN_RESPONSE,
    "chain_precedence": _CHAIN_PRECEDENCE,
    "chain_succession": _both(_CHAIN_RESPONSE, _CHAIN_PRECEDENCE),
    "co_existence": _both(_implies(_finally(_A), _finally(_B)), _implies(_finally(_B), _finally(_A))),
    "not_co_existence": _NEVER_BOTH,
    "not_response": _NOT_RESPONSE,
    "not_chain_response": _NOT_CHAIN,
}
_UNARY: dict[str, tuple[Any, _Formula]] = {
    "existence": ("a", lambda trace, _: trace.count("a") >= 1),
    "existence(2)": ({"tool": "a", "times": 2}, lambda trace, _: trace.count("a") >= 2),
    "absence": ("a", lambda trace, _: "a" not in trace),
    "absence(2)": ({"tool": "a", "times": 2}, lambda trace, _: trace.count("a") < 2),
    "exactly": ("a", lambda trace, _: trace.count("a") == 1),
    "exactly(2)": ({"tool": "a", "times": 2}, lambda trace, _: trace.count("a") == 2),
    "init": ("a", lambda trace, _: not trace or trace[0] == "a"),
    "last": ("a", lambda trace, _: not trace or trace[-1] == "a"),
}
_ALL: dict[str, tuple[dict[str, Any], _Formula]] = {
    **{name: ({name: ["a", "b"]}, formula) for name, formula in _FORMULAS.items()},
    **{name: ({name.partition("(")[0]: kind}, formula) for name, (kind, formula) in _UNARY.items()},
}
_PUBLISHED = [name for name in RELATIONS if name in _FORMULAS]
"""Templates of DECLARE; the others look at more than the order."""
_ACTIVE = {name: {"ab"[side] for side in template.applies_by} for name, template in RELATIONS.items()}


def _evaluator(*constraints: dict[str, Any], **config: Any) -> ToolConstraints:
    return ToolConstraints(
        ToolConstraintsConfig.model_validate(config),
        ToolConstraintsCriteria.model_validate({"constraints": list(constraints)}),
    )


def _call(letter: str, **fields: Any) -> ToolCall:
    """The call of the tool `letter[0]`; what follows is the value of its argument `id`, `-` for none."""
    arguments: JsonObject = {"id": letter[1:]} if letter[1:] not in ("", "-") else {}
    return ToolCall(name=letter[0], arguments=arguments, arguments_state=ValueState.PRESENT, **fields)


def _run(trace: _Trace, **fields: Any) -> AgentRun:
    return run_with([_call(letter) for letter in trace], **fields)


def _score(evaluator: ToolConstraints, run: AgentRun) -> Score:
    answer = evaluator.evaluate(run, RunFacts())
    assert isinstance(answer, Score)
    return answer


def _applies(name: str, trace: _Trace) -> bool:
    letters = {letter[0] for letter in trace}
    if name in _ACTIVE:
        return bool(letters & _ACTIVE[name])
    return bool(trace) or name.partition("(")[0] not in ("init", "last")


def _holds(name: str, trace: _Trace, same: bool) -> bool:
    """The formula; with `same`, each call of one kind needs, or must not have, one of its own value."""
    formula = _ALL[name][1]
    if not same:
        return formula(trace, 0)
    if "chain" in name:
        # The neighbour in the run has to be of the value: any other is none of the two.
        return all(
            formula([letter if letter[1:] == value else "c" for letter in trace], 0)
            for value in {letter[1:] for letter in trace if letter[1:] != "-"}
        ) and (name.startswith("not") or not _has_demanding_without_value(name, trace))
    values = {letter[1:] for letter in trace if letter[1:] != "-"}
    return all(formula([letter for letter in trace if letter[1:] == value], 0) for value in values) and (
        name.startswith("not") or not _has_demanding_without_value(name, trace)
    )


def _has_demanding_without_value(name: str, trace: _Trace) -> bool:
    return any(letter[0] in _ACTIVE[name] and letter[1:] == "-" for letter in trace)


@pytest.mark.parametrize("name", _ALL)
def test_a_template_says_of_every_short_run_what_its_formula_says(name: str) -> None:
    evaluator = _evaluator(_ALL[name][0])
    for length in range(6):
        for trace in product("abc", repeat=length):
            answer = _score(evaluator, _run(trace))

            assert float(_holds(name, trace, same=False)) == answer.value, trace
            assert int(_applies(name, trace)) == answer.details["applicable"], trace


@pytest.mark.parametrize("name", _PUBLISHED)
def test_calls_belong_together_by_the_value_of_an_argument(name: str) -> None:
    evaluator = _evaluator({name: ["a", "b"], "same": "id"})
    for length in range(5):
        for trace in product(("a1", "a2", "b1", "b2", "a-", "b-"), repeat=length):
            assert float(_holds(name, trace, same=True)) == _score(evaluator, _run(trace)).value, trace


_LONG = st.lists(st.sampled_from(["a", "b", "c"]), max_size=30)


@pytest.mark.parametrize("name", _ALL)
def test_a_template_says_of_long_runs_what_its_formula_says(name: str) -> None:
    @settings(max_examples=30, deadline=None)
    @given(trace=_LONG)
    def check(trace: list[str]) -> None:
        assert float(_holds(name, trace, same=False)) == _score(_evaluator(_ALL[name][0]), _run(trace)).value

    check()


def _extensions(trace: _Trace, letters: Sequence[str], most: int) -> Iterator[list[str]]:
    """Every run in which up to `most` further calls stand anywhere among those of `trace`."""
    for count in range(most + 1):
        for places in combinations(range(len(trace) + count), count):
            for added in product(letters, repeat=count):
                further, known = iter(added), iter(trace)
                yield [next(further) if at in places else next(known) for at in range(len(trace) + count)]


@pytest.mark.parametrize("name", _ALL)
def test_an_incomplete_run_is_settled_exactly_where_no_extension_says_otherwise(name: str) -> None:
    evaluator = _evaluator(_ALL[name][0])
    for length in range(4):
        for trace in product("abc", repeat=length):
            verdicts = {_holds(name, further, same=False) for further in _extensions(trace, "abc", 3)}

            lowest, highest = evaluator.attainable(_run(trace, complete=False))

            assert (float(min(verdicts)), float(max(verdicts))) == (lowest, highest), trace


@pytest.mark.parametrize("name", _PUBLISHED)
def test_what_belongs_together_is_settled_exactly_where_no_extension_says_otherwise(name: str) -> None:
    evaluator = _evaluator({name: ["a", "b"], "same": "id"})
    letters = ("a1", "b1", "a2", "b2", "a-", "b-")
    for length in range(3):
        for trace in product(letters, repeat=length):
            verdicts = {_holds(name, further, same=True) for further in _extensions(trace, letters, 2)}

            lowest, highest = evaluator.attainable(_run(trace, complete=False))

            assert (float(min(verdicts)), float(max(verdicts))) == (lowest, highest), trace


@st.composite
def _grouped(draw: st.DrawFn) -> list[ToolCall]:
    """Calls of which neighbours may have run side by side."""
    sizes = draw(st.lists(st.integers(1, 3), max_size=4))
    return [
        _call(draw(st.sampled_from(["a", "b", "c"])), parallel_group=step if size > 1 else None)
        for step, size in enumerate(sizes)
        for _ in range(size)
    ]


def _orders(calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    """Every order in which the calls may have run."""
    steps = [
        [list(order) for order in permutations(members)] if step is not None else [[call] for call in members]
        for step, group in groupby(calls, key=lambda call: call.parallel_group)
        for members in [list(group)]
    ]
    # Calls without a group are steps of their own.
    flat = []
    for step in steps:
        if len(step[0]) == 1 and len(step) > 1 and step[0][0].parallel_group is None:
            flat += [[choice] for choice in step]
        else:
            flat.append(step)
    for choice in product(*flat):
        yield [call for part in choice for call in part]


@pytest.mark.parametrize("name", [name for name in _PUBLISHED if len(RELATIONS[name].sides) == 1])
@settings(max_examples=60, deadline=None)
@given(calls=_grouped())
def test_calls_side_by_side_hold_where_each_does_in_some_order(name: str, calls: list[ToolCall]) -> None:
    orders = [[call.name for call in order] for order in _orders(calls)]
    some = any(_holds(name, order, same=False) for order in orders)
    every = all(_holds(name, order, same=False) for order in orders)

    loose = _score(_evaluator(_ALL[name][0]), run_with(calls)).value

    if some:
        assert 1.0 == loose
    if every and not name.startswith("not"):
        assert 1.0 == loose


def test_strict_takes_calls_side_by_side_for_neither_before_nor_after_each_other() -> None:
    beside = run_with([_call("b", parallel_group=0), _call("a", parallel_group=0)])

    for name in ("response", "precedence", "chain_response", "alternate_precedence"):
        assert 1.0 == _score(_evaluator({name: ["a", "b"]}), beside).value
        assert 0.0 == _score(_evaluator({name: ["a", "b"]}, strict=True), beside).value
    for strict in (False, True):
        assert 1.0 == _score(_evaluator({"not_response": ["a", "b"]}, strict=strict), beside).value


def test_the_score_is_the_share_of_constraints_that_hold_and_the_explanation_names_the_unmet_call() -> None:
    evaluator = _evaluator(
        {"response": ["refund", "send_email"], "same": "order_id"},
        {"precedence": ["verify", {"tool": "refund", "args": {"amount": {"$range": [100, None]}}}]},
        {"absence": "delete_*"},
        {"response": ["book", "confirm"]},
    )
    run = run_with(
        [
            _tool("refund", order_id=7, amount=250),
            _tool("send_email", order_id=8),
            _tool("refund", order_id=9, amount=20),
            _tool("delete_account"),
        ]
    )

    answer = _score(evaluator, run)

    assert 0.0 == answer.value
    assert (
        "response(refund, send_email): call 1, refund: no send_email after it with the same order_id "
        "(and 1 more)",
        'precedence(verify, refund("amount": {"$range": [100, null]})): call 1, refund: no verify before it',
        "absence(delete_*): Actual: 1, Expected: < 1 (call 4)",
    ) == answer.lines
    assert 3 == answer.details["applicable"]


def _tool(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, arguments_state=ValueState.PRESENT)


def test_a_call_without_the_value_belongs_to_no_other() -> None:
    answer = _score(_evaluator({"response": ["a", "b"], "same": "id"}), _run(["a-", "b1"]))

    assert ("response(a, b): call 1, a: it has no id",) == answer.lines


def test_values_may_stand_at_different_paths() -> None:
    evaluator = _evaluator({"response": ["refund", "mail"], "same": {"order_id": "order.id", "to": "to"}})

    for name, score in (("ann", 1.0), ("bob", 0.0)):
        calls = [_tool("refund", order_id=7, to="ann"), _tool("mail", order={"id": 7}, to=name)]
        assert score == _score(evaluator, run_with(calls)).value


def test_a_constraint_may_speak_of_runs_with_calls_only() -> None:
    evaluator = _evaluator({"existence": "search", "runs": "with_calls"})

    assert ("no constraint applies",) == _score(evaluator, _run("")).lines
    assert 0.0 == _score(evaluator, _run("c")).value
    assert 0.0 == _score(_evaluator({"existence": "search"}), _run("")).value


_RESULTS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"error": ToolError(type="TimeoutError", message="")}, False),
    ({"result": {"status_code": 503}, "result_state": ValueState.PRESENT}, False),
    ({"executed": False}, False),
]


@pytest.mark.parametrize(("fields", "took_effect"), _RESULTS)
def test_calls_can_be_meant_by_whether_they_took_effect(fields: dict[str, Any], took_effect: bool) -> None:
    run = run_with([_call("a", **fields)])

    for status, is_meant in (("any", True), ("succeeded", took_effect), ("failed", not took_effect)):
        score = _score(_evaluator({"existence": {"tool": "a", "status": status}}), run).value
        assert float(is_meant) == score


def test_a_call_that_may_still_turn_out_to_have_failed_settles_nothing() -> None:
    succeeded = _evaluator({"absence": {"tool": "a", "status": "succeeded"}})
    failed = _evaluator({"absence": {"tool": "a", "status": "failed"}})
    (running, refused) = (run_with([_call("a")]), run_with([_call("a", executed=False)]))

    assert (0.0, 1.0) == succeeded.attainable(running) == failed.attainable(refused)
    broken = run_with([_call("a", error=ToolError(type="x", message=""))])
    assert (0.0, 0.0) == failed.attainable(broken)


@pytest.mark.parametrize(
    ("constraint", "known", "decided"),
    [
        ({"absence": {"tool": "a", "args": {"id": "1"}}}, ["a1"], 0.0),
        ({"absence": {"tool": "a", "args": {"id": "1"}}}, ["a2"], None),
        ({"existence": {"tool": "a", "args": {"id": "1"}}}, ["a1"], 1.0),
        ({"existence": {"tool": "a", "args": {"id": "1"}}}, [], None),
        ({"response": ["b", "a"], "same": "id"}, ["b1"], None),
        ({"response": ["a", "b"], "same": "id"}, ["b1"], 0.0),
        ({"precedence": ["b", "a"], "same": "id"}, ["b1"], None),
        ({"not_response": ["b", "a"], "same": "id"}, ["b1"], None),
        ({"not_response": ["b", "a"], "same": "id"}, ["b1", "a1"], 0.0),
        ({"response": ["b", "a"]}, ["b1"], 1.0),
        ({"init": {"tool": "a", "args": {"id": "1"}}}, [], None),
        ({"exclusive_choice": [{"tool": "a", "args": {"id": "1"}}, "b"]}, ["b1"], None),
        ({"absence": "c"}, ["a1"], 1.0),
    ],
)
def test_arguments_that_are_not_known_matter_only_where_they_decide(
    constraint: dict[str, Any], known: list[str], decided: float | None
) -> None:
    run = run_with([*map(_call, known), ToolCall(name="a")])

    answer = _evaluator(constraint).evaluate(run, RunFacts())

    if decided is None:
        assert isinstance(answer, NotEvaluated)
        assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is answer.reason
    else:
        assert isinstance(answer, Score)
        assert decided == answer.value


def _returning(name: str, result: Any, **fields: Any) -> ToolCall:
    return ToolCall(
        name=name,
        arguments_state=ValueState.PRESENT,
        **{"arguments": {}, "result": result, "result_state": ValueState.PRESENT, **fields},
    )


def _at(call: ToolCall, start: float, end: float) -> ToolCall:
    return structs.replace(call, start_unix_nano=int(start * 1e9), end_unix_nano=int(end * 1e9))


_REFUND = _tool("refund", order="A1", amount=250)
_ORDERS = [_returning("get_order", {"id": "A1", "total": 200}), _returning("get_order", {"total": "300"})]


@pytest.mark.parametrize(
    ("constraint", "calls", "reason"),
    [
        (
            {"precedence": ["get_order", "refund"], "where": "refund.args.amount <= get_order.result.total"},
            [_ORDERS[0], _REFUND],
            "no get_order before it where refund.args.amount <= get_order.result.total "
            "(call 1, get_order; 250 <= 200)",
        ),
        (
            {"precedence": ["get_order", "refund"], "where": "refund.args.amount <= get_order.result.total"},
            [*_ORDERS, _REFUND],
            "",
        ),
        (
            {
                "precedence": ["get_order", "refund"],
                "nearest": True,
                "where": [
                    "get_order.result.total >= refund.args.amount",
                    "refund.args.order == first.result.id",
                ],
            },
            [_ORDERS[1], _ORDERS[0], _REFUND],
            "no get_order as the last get_order before it where get_order.result.total >= refund.args.amount "
            'and refund.args.order == first.result.id (call 2, get_order; 200 >= 250; "A1" == "A1")',
        ),
        (
            {"not_response": ["read", "send"], "where": "send.args.body contains read.result"},
            [_returning("read", "s3cret"), _tool("send", body="It is s3cret.")],
            "send after it where send.args.body contains read.result "
            '(call 2, send; "It is s3cret." contains "s3cret")',
        ),
        (
            {"not_response": ["pay", "pay"], "within": "1m"},
            [_at(_tool("pay"), 1, 2), _at(_tool("pay"), 61.5, 62)],
            "pay after it within 1m (call 2, pay)",
        ),
        (
            {"not_response": ["pay", "pay"], "within": "1m"},
            [_at(_tool("pay"), 1, 2), _at(_tool("pay"), 62.5, 63)],
            "",
        ),
        (
            {"not_parallel": ["write_*", "write_*"]},
            [_tool("write_a"), _call("b", parallel_group=0), _call("c", parallel_group=0)],
            "",
        ),
        (
            {"not_parallel": ["*", "*"]},
            [_tool("write_a"), _call("b", parallel_group=0), _call("c", parallel_group=0)],
            "* in parallel to it (call 3, c)",
        ),
    ],
)
def test_two_events_belong_together_by_what_they_hold_and_when_they_were(
    constraint: dict[str, Any], calls: list[ToolCall], reason: str
) -> None:
    answer = _score(_evaluator(constraint), run_with(calls))

    violated = answer.details["violated"]
    assert isinstance(violated, list)
    assert ([reason] if reason else []) == [each["reason"] for each in violated if isinstance(each, dict)]


_PAYMENTS = [
    _tool("pay", to="ann", amount=300),
    _tool("pay", to="bob", amount=0.1),
    _tool("pay", to="ann", amount=200.2),
    _tool("look_up", key="x"),
]


@pytest.mark.parametrize(
    ("constraint", "reason"),
    [
        ({"constant": "args.to"}, '"ann" in call 1, "bob" in call 2, Expected: one value'),
        ({"constant": "args.amount", "per": "args.key"}, ""),
        ({"constant": "args.key"}, ""),
        ({"unique": "args.to", "of": "pay"}, '"ann" in calls 1 and 3, Expected: once'),
        ({"unique": "args.amount"}, ""),
        ({"sum": "args.amount", "of": "pay", "max": 500.3}, ""),
        ({"sum": "args.amount", "of": "pay", "max": 500}, "Actual: 500.3, Expected: <= 500"),
        (
            {"sum": "args.amount", "of": "pay", "per": "args.to", "max": 400},
            'Actual: 500.2, Expected: <= 400 for args.to "ann"',
        ),
        ({"sum": "args.amount", "of": {"tool": "pay", "args": {"to": "bob"}}, "min": 0.1}, ""),
        (
            {"count": "pay", "per": "args.to", "max": 1},
            'Actual: 2, Expected: <= 1 for args.to "ann"',
        ),
        ({"count": "pay", "min": 4}, "Actual: 3, Expected: >= 4"),
        ({"count": {"tool": "pay", "status": "succeeded"}, "min": 3, "max": 3}, ""),
    ],
)
def test_values_of_all_events_are_looked_at_together(constraint: dict[str, Any], reason: str) -> None:
    answer = _score(_evaluator(constraint), run_with(_PAYMENTS))

    violated = answer.details["violated"]
    assert isinstance(violated, list)
    assert ([reason] if reason else []) == [each["reason"] for each in violated if isinstance(each, dict)]


def test_a_sum_needs_a_number_of_each_call() -> None:
    run = run_with([*_PAYMENTS, _tool("pay", to="ann")])

    answer = _evaluator({"sum": "args.amount", "of": "pay", "max": 1}).evaluate(run, RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert "args.amount of pay: expected a number to add up" == answer.text


_DATES = "first.args.day < second.args.day"


@pytest.mark.parametrize(
    ("where", "left", "right", "held"),
    [
        (_DATES, "2026-03-01", "2026-10-01T08:00:00Z", 1.0),
        (_DATES, "2026-03-01T01:00:00+02:00", "2026-03-01", 1.0),
        (_DATES, 9, "10", 1.0),
        (_DATES, "9", "10", 1.0),
        (_DATES, "b", "a", 0.0),
        (_DATES, "a", 1, None),
        (_DATES, True, 2, None),
        (_DATES, None, 2, None),
        ("first.args.day == second.args.day", "12.50", 12.5, 1.0),
        ("first.args.day != second.args.day", "a", "[REDACTED]", None),
        ("first.args.day in second.args.day", "2", [1, 2], 1.0),
        ("first.args.day in second.args.day[*].id", 2, [{"id": 1}, {"id": 2}], 1.0),
        ("first.args.day in second.args.day[*].id", 3, [{"id": 1}, {"id": 2}], 0.0),
        ("first.args.day contains second.args.day", "costs 12.5 EUR", 12.5, 1.0),
        ("first.args.day contains second.args.day", "costs 112.5 EUR", 12.5, None),
        ("first.args.other == second.args.day", 1, 1, 0.0),
    ],
)
def test_values_compare_as_numbers_dates_texts_or_lists(
    where: str, left: Any, right: Any, held: float | None
) -> None:
    run = run_with([_tool("a", day=left), _tool("b", day=right)])

    answer = _evaluator({"response": ["a", "b"], "where": where}).evaluate(run, RunFacts())

    assert held == (answer.value if isinstance(answer, Score) else None)
    assert isinstance(answer, Score) or answer.text


def _said(role: Any, content: str, after: int) -> Message:
    return Message(role=role, content=content, after=after)


def test_messages_and_the_answer_stand_among_the_calls() -> None:
    yes = {"message": {"role": "user", "text": {"$regex": r"(?i)\byes\b"}}}
    asked = {"message": {"role": "assistant"}}
    calls = [_tool("get"), _tool("cancel", order="A1")]
    messages = [
        _said("user", "Cancel A1", 0),
        _said("assistant", "Cancel A1, shall I?", 1),
        _said("user", "Yes.", 1),
    ]
    run = run_with(calls, messages=messages, output="A1 is cancelled", output_state=ValueState.PRESENT)
    named = {"response": ["cancel", {"answer": {"$any": True}}], "where": "answer contains cancel.args.order"}
    confirmed = {"precedence": [asked, "cancel"], "where": "message.text contains cancel.args.order"}

    for constraint, held in (
        ({"chain_precedence": [yes, "cancel"]}, 1.0),
        ({"precedence": [yes, "get"]}, 0.0),
        ({"precedence": [yes, "cancel"], "nearest": True}, 1.0),
        (confirmed, 1.0),
        ({"not_chain_response": [asked, "*"]}, 1.0),
        ({"response": ["cancel", "x"]}, 0.0),
        ({"response": ["cancel", {"answer": {"$regex": "cancelled"}}]}, 1.0),
        (named, 1.0),
        ({"absence": {"message": {"role": "assistant", "text": {"$regex": "guarantee"}}}}, 1.0),
    ):
        assert held == _score(_evaluator(constraint), run).value, constraint

    beside = replace(run, messages=[*messages, _said("assistant", "On it.", 1)])
    answer = _score(_evaluator({"not_chain_response": [asked, "*"]}), beside)
    assert (
        "not_chain_response(assistant message, *): message 4, assistant: * right after it",
    ) == answer.lines


def _outcome(run: AgentRun, *constraints: dict[str, Any]) -> Outcome:
    (result,) = evaluate_run(run, [Evaluation(name="check", evaluator=_evaluator(*constraints))])
    return result.outcome


@pytest.mark.parametrize(
    "least",
    [{"existence": {"message": {"role": "user"}}}, {"count": {"message": {"role": "user"}}, "min": 1}],
)
def test_a_least_number_that_is_met_stays_met_when_messages_are_not_all_known(least: dict[str, Any]) -> None:
    messages = [_said("user", "Yes.", 0), Message(role="user", content="Now.", turn=0, after=None)]
    run = run_with([_tool("get")], messages=messages)

    assert 1.0 == _score(_evaluator(least), run).value
    for open_limit in ({"min": 3}, {"max": 2}):
        answer = _evaluator({"count": {"message": {"role": "user"}}, **open_limit}).evaluate(run, RunFacts())
        assert isinstance(answer, NotEvaluated), open_limit
    assert 0.0 == _score(_evaluator({"count": {"message": {"role": "user"}}, "max": 0}), run).value


def test_an_incomplete_run_fails_once_a_forbidden_call_was_made_and_waits_for_an_answer_to_come() -> None:
    assert Outcome.FAIL is _outcome(_run("a", complete=False), {"absence": "a"})
    assert Outcome.NOT_EVALUATED is _outcome(_run("a", complete=False), {"response": ["a", "b"]})
    assert Outcome.FAIL is _outcome(_run("ab", complete=False), {"not_co_existence": ["a", "b"]})
    assert Outcome.PASS is _outcome(_run("ab", complete=False), {"co_existence": ["a", "b"]})


def test_a_call_that_is_tried_again_is_one_request_of_its_turn() -> None:
    calls = [ToolCall(name="pay", call_id=call_id) for call_id in ("x", "x", "x", "y")]

    def outcome(turns: list[int | None]) -> Outcome:
        return _outcome(run_with(calls, call_turns=turns), {"unique": "turn"})

    assert Outcome.PASS is outcome([1, 1, 2, 3])
    assert Outcome.FAIL is outcome([1, 1, 2, 2])
    assert Outcome.NOT_EVALUATED is outcome([1, None, 2, 3])


@pytest.mark.parametrize(("threshold", "outcome"), [(1.0, "fail"), (0.6, "fail"), (0.5, "not_evaluated")])
def test_what_is_broken_for_certain_is_not_hidden_by_what_is_unknown(threshold: float, outcome: str) -> None:
    evaluator = _evaluator({"absence": "a"}, {"absence": {"tool": "b", "result": {"fraud": True}}})

    (result,) = evaluate_run(
        run_with([ToolCall(name="a"), ToolCall(name="b")]),
        [Evaluation(name="check", evaluator=evaluator, pass_threshold=threshold)],
    )

    assert outcome == result.outcome
    if outcome == "fail":
        assert 0.5 == result.score
        assert "absence(a): Actual: 1" in result.explanation
        assert "not known: result of b: absent" in result.explanation
    else:
        assert (None, "content_not_captured") == (result.score, result.reason)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ({}, "exactly one template"),
        ({"absence": "a", "existence": "b"}, "found existence and absence"),
        ({"absence": "a", "same": "id"}, "same: absence"),
        ({"choice": ["a", "b"], "same": "id"}, "same: choice"),
        ({"response": ["a"]}, "response"),
        ({"response": ["get a", "get_a"]}, "twice"),
        ({"absence": {"tool": "a", "times": 0}}, "greater"),
        ({"init": {"tool": "a", "times": 2}}, "times"),
        ({"response": ["a", "b"], "same": "x[["}, "path"),
        ({"absence": {"tool": "a", "args": {"id": {"$regex": "("}}}}, "regex|missing"),
        ({"absence": "a", "where": "first.args.x == second.args.x"}, "where: absence relates no"),
        ({"response": ["a", "b"], "where": "a.args.x is b.args.x"}, "is no comparison"),
        ({"response": ["get", "book"], "where": "get.args.x == bok.args.x"}, 'did you mean "book"'),
        ({"not_response": ["a", "a"], "where": "a.args.x == a.args.y"}, "is both events"),
        ({"response": ["a", "b"], "where": "a.args.x == a.args.y"}, "compares an event with itself"),
        ({"response": ["a", "b"], "where": "a.args.x[*] < b.args.y"}, "picks a list"),
        ({"response": ["a", {"answer": "x"}], "where": "second.args.x == a.args.x"}, "expected answer"),
        ({"response": [{"answer": "x"}, "a"]}, "nothing follows it"),
        ({"sum": "args.amount"}, "sum: expected min or max with it"),
        ({"count": "a", "min": 3, "max": 2}, "min to be at most max"),
        ({"absence": "a", "max": 2}, "max: absence does not take it; expected sum or count"),
        ({"count": "a", "max": 2, "of": "b"}, "of: count does not take it"),
        ({"constant": "a.args.user"}, "expected a value of one event"),
        ({"constant": "user"}, "is no value of an event"),
        ({"unique": "text", "of": {"message": {"role": "user"}}}, "expected calls"),
        ({"response": ["a", {"answer": "x"}], "within": "5s"}, "within: it compares times"),
        ({"init": {"answer": "x"}}, "expected calls"),
        ({"not_response": ["a", "b"], "nearest": True}, "nearest: expected response"),
    ],
)
def test_constraints_that_make_no_sense_are_refused(constraint: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _evaluator(constraint)


def test_either_spelling_of_a_template_is_read() -> None:
    assert 0.0 == _score(_evaluator({"notCoExistence": ["a", "b"]}), _run("ab")).value


def test_hostile_runs_are_given_up_in_time() -> None:
    many = run_with([_call("a", parallel_group=at % 2) for at in range(10_000)])
    relations: list[dict[str, Any]] = [{name: ["a", "*"]} for name in RELATIONS]

    answer = _evaluator(*relations).evaluate(many, RunFacts())
    half = run_with([_call("ab"[at % 2], parallel_group=at % 3) for at in range(10_000)])
    alone = _evaluator({"alternate_succession": ["a", "b"]}).evaluate(half, RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.OVER_LIMIT is answer.reason
    assert isinstance(alone, Score)
    long = replace(many, tool_calls=[*many.tool_calls, _call("a")])
    assert isinstance(_evaluator({"absence": "b"}).evaluate(long, RunFacts()), NotEvaluated)


@pytest.mark.parametrize(
    "constraint",
    [
        {"not_response": ["*", "*"], "where": "first.args.amount == second.args.amount"},
        {"not_response": ["*", "*"], "where": "first.args.id in second.args.id"},
        {"precedence": ["*", {"tool": "*"}], "nearest": True, "within": "1s"},
        {"unique": "args.amount"},
        {"sum": "args.amount", "per": "args.id", "max": 1},
    ],
)
def test_the_largest_run_is_compared_or_given_up(constraint: dict[str, Any]) -> None:
    run = run_with([_tool("a", id=str(at), amount=at, list=["x"]) for at in range(10_000)])

    answer = _evaluator(constraint).evaluate(run, RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.OVER_LIMIT is answer.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "refund.args.amount <= get_order.result.total",
        "get_order.result.id == refund.args.id",
        "get_order.result.ids contains refund.args.id",
    ],
)
def test_a_comparison_over_a_thousand_calls_takes_less_than_20_milliseconds(where: str) -> None:
    orders: list[JsonObject] = [{"id": str(at), "ids": [str(at)], "total": at % 300} for at in range(1000)]
    calls = [
        _returning("get_order", orders[at], result_text=json_text(orders[at]))  # as telemetry carries it
        if at % 2
        else _tool("refund", id=str(at + 1), amount=at % 700)
        for at in range(1000)
    ]
    evaluator, run = _evaluator({"precedence": ["get_order", "refund"], "where": where}), run_with(calls)
    times = []
    for _ in range(40):  # others use the machine, too
        start = process_time()
        assert isinstance(evaluator.evaluate(run, RunFacts()), Score | NotEvaluated)
        times.append(process_time() - start)

    assert min(times) < 0.02


def test_calls_of_several_agents_are_distinguished_by_their_agent() -> None:
    first = run_with([_tool("approve")], session="s", start_unix_nano=1)
    second = replace(
        run_with([_tool("pay")], session="s", start_unix_nano=2), agent=AgentIdentity(name="executor")
    )
    view = over_conversation(second.in_conversation(Conversation(runs=(first,)))).run
    apart = {"precedence": ["approve", "pay"], "where": "approve.agent != pay.agent"}

    assert 1.0 == _score(_evaluator(apart), view).value
    assert 0.0 == _score(_evaluator(apart), run_with([_tool("approve"), _tool("pay")])).value
    assert 1.0 == _score(_evaluator({"absence": {"tool": "pay", "agent": "weather"}}), view).value
