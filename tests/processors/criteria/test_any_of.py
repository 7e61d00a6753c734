"""Evaluations of several alternatives, of which the best counts."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.annotation import run_from_json
from processors.criteria import Evaluation, read_criteria
from processors.documents import InvalidInput
from processors.evaluate import evaluate_run
from processors.model import AgentRun, EvaluationResult, Outcome
from tests.strategies import run_with

_ORDERS = [["search_trains", "book"], ["search_flights", "hold", "book"]]


def _evaluations(*entries: Any) -> tuple[Evaluation, ...]:
    text = json.dumps({"agents": {"agent": {"evaluations": entries}}})
    (agent,) = read_criteria(text, "criteria.json", {}).agents
    return tuple(agent.evaluations)


def _any_of(*alternatives: Any, **entry: Any) -> Evaluation:
    (evaluation,) = _evaluations({"name": "one-way", **entry, "any_of": alternatives})
    return evaluation


def _run(*names: str, complete: bool = True, **fields: Any) -> AgentRun:
    calls = [{"name": name, "arguments": {}, "result": "ok"} for name in names]
    line = {"agent": {"name": "agent"}, "tool_calls": calls, "complete": complete, **fields}
    return run_from_json(line, "here")


def _result(evaluation: Evaluation, run: AgentRun) -> EvaluationResult:
    (result,) = evaluate_run(run, [evaluation])
    return result


def test_the_best_alternative_counts_and_is_named() -> None:
    evaluation = _any_of(
        {"criteria": {"tool_calls": _ORDERS[0]}},
        {"criteria": {"tool_calls": _ORDERS[1]}, "name": "by-air"},
        evaluator="trajectory-in-order",
    )
    passed = _result(evaluation, _run("search_flights", "hold", "book"))
    failed = _result(evaluation, _run("hold"))
    neither = _result(evaluation, _run("pay"))

    assert (passed.outcome, passed.score, passed.evaluator) == (Outcome.PASS, 1.0, "trajectory-in-order")
    assert passed.explanation.startswith("best of 2: by-air; expected: [search_flights, hold, book]")
    assert passed.details["alternative"] == "by-air"
    assert passed.details["assigned"] == [0, 1, 2]
    assert failed.outcome is Outcome.FAIL
    assert failed.explanation.startswith("best of 2: by-air; ")
    assert neither.explanation.startswith("best of 2: alternative 1; ")


def test_alternatives_may_be_of_several_evaluators() -> None:
    evaluation = _any_of(
        {"evaluator": "tool-call-order", "criteria": {"tool_calls_order": ["refund"]}},
        {"evaluator": "contains", "criteria": {"search_text": "cannot refund"}, "name": "declined"},
    )

    assert _result(evaluation, _run("refund", output="Done.")).outcome is Outcome.PASS
    declined = _result(evaluation, _run("look_up", output="I cannot refund this."))
    assert (declined.outcome, declined.evaluator) == (Outcome.PASS, "any-of")
    assert _result(evaluation, _run("look_up", output="Done.")).outcome is Outcome.FAIL


def test_an_alternative_that_is_not_known_leaves_open_what_no_other_one_decides() -> None:
    evaluation = _any_of(
        {"evaluator": "tool-call-order", "criteria": {"tool_calls_order": ["refund"]}},
        {"evaluator": "contains", "criteria": {"search_text": "cannot refund"}},
    )

    assert _result(evaluation, _run("refund")).outcome is Outcome.PASS
    unknown = _result(evaluation, _run("look_up"))
    assert (unknown.outcome, unknown.reason) == (Outcome.NOT_EVALUATED, "content_not_captured")
    assert unknown.explanation.startswith("alternative 2: ")


def test_values_of_the_input_are_taken_for_each_alternative() -> None:
    evaluation = _any_of(
        {"criteria": {"tool_calls": [{"name": "pay", "args": {"id": {"$input": "id"}}}]}},
        {"criteria": {"tool_calls": ["decline"]}},
        evaluator="trajectory-any-order",
    )
    pay = {"name": "pay", "arguments": {"id": 7}}
    for known, outcome in ((7, Outcome.PASS), (8, Outcome.FAIL)):
        run = run_from_json({"agent": {"name": "agent"}, "tool_calls": [pay], "input": {"id": known}}, "here")
        assert _result(evaluation, run).outcome is outcome
    assert _result(evaluation, _run("decline", input={})).outcome is Outcome.PASS
    assert _result(evaluation, _run("pay", input={})).outcome is Outcome.NOT_EVALUATED


def test_an_incomplete_run_is_open_as_long_as_any_alternative_is() -> None:
    exact = _any_of(
        {"criteria": {"tool_calls": _ORDERS[0]}},
        {"criteria": {"tool_calls": _ORDERS[1]}},
        evaluator="trajectory-exact",
    )
    started = _result(exact, _run("search_flights", complete=False))
    lost = _result(exact, _run("hold", "search_flights", "pay", complete=False))

    assert (started.outcome, lost.outcome) == (Outcome.NOT_EVALUATED, Outcome.FAIL)


_NAMES = st.lists(st.sampled_from("abc"), max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["trajectory-exact", "trajectory-in-order", "trajectory-f1", "trajectory-recall"]),
    st.lists(_NAMES, min_size=2, max_size=4),
    _NAMES,
    _NAMES,
    st.sampled_from([0.5, 1.0]),
)
def test_the_verdict_is_the_best_of_single_evaluations(
    kind: str, expected: list[list[str]], names: list[str], later: list[str], threshold: float
) -> None:
    criteria = [{"tool_calls": calls} for calls in expected]
    common: dict[str, Any] = {"evaluator": kind, "pass_threshold": threshold}
    single = _evaluations(*({"name": str(at), "criteria": one, **common} for at, one in enumerate(criteria)))
    together = _any_of(*({"criteria": one} for one in criteria), **common)
    whole = _run(*names, *later)
    scores = [result.score or 0.0 for result in evaluate_run(whole, single)]
    result = _result(together, whole)

    assert result.score == max(scores)
    early = _result(together, _run(*names, complete=False))
    assert early.outcome in (result.outcome, Outcome.NOT_EVALUATED)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"any_of": [{"evaluator": "contains"}, {}]}, ': missing key "name"'),
        ({"name": "x", "any_of": [{"evaluator": "contains", "criteria": {"search_text": "a"}}, {}]},
         '.any_of[1]: missing key "evaluator"'),
        ({"evaluator": "trajectory-f1", "any_of": [{"criteria": {"tool_calls": ["a"]}}]},
         ".any_of: expected at least 2 entries; found a list"),
        ({"evaluator": "trajectory-f1", "criteria": {"tool_calls": []},
          "any_of": [{"criteria": {"tool_calls": ["a"]}}, {"criteria": {"tool_calls": ["b"]}}]},
         ".criteria: every entry of any_of has its own"),
        ({"evaluator": "trajectory-f1", "anyOf": [{"criteria": {"tool_call": ["a"]}},
                                                 {"criteria": {"tool_calls": ["b"]}}]},
         '.anyOf[0].criteria.tool_call: unknown key; did you mean "tool_calls"?'),
        ({"evaluator": "trajectory-f1", "config": {"args_mach": "exact"},
          "any_of": [{"criteria": {"tool_calls": ["a"]}}, {"criteria": {"tool_calls": ["b"]}}]},
         '.config.args_mach: unknown key; did you mean "args_match"?'),
        ({"name": "x", "scope": "conversation",
          "any_of": [{"evaluator": "contains", "criteria": {"search_text": "a"}},
                     {"evaluator": "trajectory-f1", "criteria": {"tool_calls": ["b"]}}]},
         ".scope: contains looks at more than calls, and cannot grade a conversation"),
        ({"name": "x", "any_of": [{"evaluator": "containz"}, {"evaluator": "tool-repetition"}]},
         '.any_of[0].evaluator: unknown evaluator "containz"; did you mean "contains"?'),
    ],
)  # fmt: skip
def test_mistakes_in_alternatives_are_reported_where_they_stand(entry: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        _evaluations(entry)

    shown = [str(problem).partition("evaluations[0]")[2] for problem in refused.value.problems]
    assert any(text.startswith(message) for text in shown), shown


def test_the_hash_depends_on_each_alternative_and_not_on_their_names() -> None:
    first, second = ({"criteria": {"tool_calls": calls}} for calls in _ORDERS)
    common = {"evaluator": "trajectory-f1"}
    one = _any_of(first, second, **common).criteria_hash

    assert one == _any_of({**first, "name": "a"}, second, **common).criteria_hash
    assert one != _any_of(first, first, **common).criteria_hash


def test_a_conversation_can_have_alternatives() -> None:
    evaluation = _any_of(
        {"criteria": {"tool_calls": ["a"]}},
        {"criteria": {"tool_calls": ["b"]}},
        evaluator="trajectory-any-order",
        scope="conversation",
    )

    assert evaluation.evaluator.attainable(run_with([])) == (0.0, 1.0)
