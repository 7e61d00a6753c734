"""Rules about which tools are called, how often and when: permission, budget, precedence and their kin."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.criteria import Evaluation, evaluator_types
from processors.evaluate import evaluate_run
from processors.model import (
    AgentRun,
    CallCategory,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    RunFacts,
    Score,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.strategies import run_with

_FAILED = ToolError(type="TimeoutError", message="")


def _evaluator(kind: str, criteria: dict[str, Any] | None, **config: Any) -> Evaluator:
    found = evaluator_types()[kind]
    valid = None if found.Criteria is None else found.Criteria.model_validate(criteria)
    return found(found.Config.model_validate(config), valid)


def _run(*names: str, **fields: Any) -> AgentRun:
    return run_with([ToolCall(name=name) for name in names], **fields)


def _score(evaluator: Evaluator, run: AgentRun) -> Score:
    answer = evaluator.evaluate(run, RunFacts())
    assert isinstance(answer, Score)
    return answer


def _outcome(evaluator: Evaluator, run: AgentRun) -> Outcome:
    (result,) = evaluate_run(run, [Evaluation(name="check", evaluator=evaluator)])
    return result.outcome


def test_one_call_of_the_tool_is_enough_wherever_it_stands() -> None:
    evaluator = _evaluator("single-tool-use", {"tool_name": "get weather"})

    assert 1.0 == _score(evaluator, _run("search", "get_weather", "get_weather")).value
    assert 0.0 == _score(evaluator, _run("search")).value
    assert 0.0 == _score(evaluator, _run()).value


def test_failed_calls_of_the_single_tool_may_be_left_out() -> None:
    run = run_with([ToolCall(name="book", error=_FAILED)])

    assert 1.0 == _score(_evaluator("single-tool-use", {"toolName": "book"}), run).value
    assert 0.0 == _score(_evaluator("single-tool-use", {"toolName": "book"}, include_failed=False), run).value


def test_an_incomplete_run_passes_once_the_tool_was_called_and_never_fails() -> None:
    evaluator = _evaluator("single-tool-use", {"tool_name": "book"})

    assert Outcome.PASS is _outcome(evaluator, _run("book", complete=False))
    assert Outcome.NOT_EVALUATED is _outcome(evaluator, _run("search", complete=False))


def test_the_score_is_the_share_of_calls_that_were_not_denied() -> None:
    evaluator = _evaluator("tool-permission", {"deny": ["delete_*", "pay"]})

    answer = _score(evaluator, _run("search", "delete_account", "delete_account", "pay", "prepay"))

    assert pytest.approx(0.4) == answer.value
    assert ("not permitted: delete_account, pay", "3 of 5 calls") == answer.lines


def test_deny_wins_over_allow_and_what_is_not_allowed_is_refused() -> None:
    evaluator = _evaluator("tool-permission", {"allow": ["search", "get_*"], "deny": ["get_secret"]})

    assert 1.0 == _score(evaluator, _run("search", "get_weather")).value
    assert 0.5 == _score(evaluator, _run("search", "get_secret")).value
    assert 0.0 == _score(evaluator, _run("book")).value


def test_an_empty_list_allows_nothing_and_no_call_is_always_permitted() -> None:
    evaluator = _evaluator("tool-permission", {"allow": []})

    assert 1.0 == _score(evaluator, _run()).value
    assert 0.0 == _score(evaluator, _run("search")).value


def test_names_are_spelled_as_everywhere_and_brackets_are_no_wildcards() -> None:
    evaluator = _evaluator("tool-permission", {"deny": ["get weather", "[ab]*z"]})

    assert 0.0 == _score(evaluator, _run("get_weather")).value
    assert 1.0 == _score(evaluator, _run("a-z")).value


def test_a_handoff_is_judged_where_criteria_name_it() -> None:
    run = run_with([ToolCall(name="transfer_to_b", category=CallCategory.HANDOFF)])

    assert 0.0 == _score(_evaluator("tool-permission", {"deny": ["transfer_*"]}), run).value
    assert 1.0 == _score(_evaluator("tool-permission", {"allow": []}), run).value


def test_an_incomplete_run_fails_as_soon_as_a_forbidden_tool_was_called() -> None:
    evaluator = _evaluator("tool-permission", {"deny": ["pay"]})

    assert Outcome.FAIL is _outcome(evaluator, _run("search", "pay", complete=False))
    assert Outcome.NOT_EVALUATED is _outcome(evaluator, _run("search", complete=False))


@pytest.mark.parametrize("others", [[], ["search"], ["search", "search"]])
def test_a_forbidden_call_that_was_only_asked_for_is_not_permitted_whatever_is_beside_it(
    others: list[str],
) -> None:
    asked_for = ToolCall(name="delete_account", executed=False)
    beside = [ToolCall(name=name) for name in others]
    run = run_with(beside, requested_calls=[(len(beside), asked_for)])

    answer = _score(_evaluator("tool-permission", {"deny": ["delete_*"]}), run)

    assert len(others) / (len(others) + 1) == answer.value
    assert ["delete_account"] == answer.details["not_permitted"]


@pytest.mark.parametrize("evaluator", ["single-tool-use", "tool-call-budget", "tool-call-count"])
def test_a_call_that_was_only_asked_for_counts_as_a_failed_one_does(evaluator: str) -> None:
    criteria: dict[str, dict[str, Any]] = {
        "single-tool-use": {"tool_name": "book"},
        "tool-call-budget": {"tools": {"book": {"min": 1}}},
        "tool-call-count": {"tool_calls_count": {"book": ["=", 1]}},
    }
    run = run_with([ToolCall(name="search")], requested_calls=[(0, ToolCall(name="book", executed=False))])

    assert 1.0 == _score(_evaluator(evaluator, criteria[evaluator]), run).value
    assert 0.0 == _score(_evaluator(evaluator, criteria[evaluator], include_failed=False), run).value


@pytest.mark.parametrize(
    ("evaluator", "criteria"),
    [
        ("single-tool-use", {"tool_name": "book"}),
        ("tool-call-budget", {"max_calls": 0}),
        ("tool-call-budget", {"tools": {"book": {"min": 1}}}),
        ("tool-call-count", {"tool_calls_count": {"book": ["=", 0]}}),
    ],
)
def test_where_failed_calls_do_not_count_no_call_of_an_incomplete_run_decides(
    evaluator: str, criteria: dict[str, Any]
) -> None:
    run = _run("book", complete=False)

    assert _outcome(_evaluator(evaluator, criteria), run) is not Outcome.NOT_EVALUATED
    assert _outcome(_evaluator(evaluator, criteria, include_failed=False), run) is Outcome.NOT_EVALUATED


def test_criteria_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="allow"):
        _evaluator("tool-permission", {})


def test_calls_of_tools_that_were_not_offered_lower_the_score() -> None:
    run = _run("search", "get weather", "pay", available_tools={"search": None, "get_weather": {}})

    answer = _score(_evaluator("tool-known", None), run)

    assert pytest.approx(2 / 3) == answer.value
    assert ("unknown tools: pay", "available: search, get_weather") == answer.lines


def test_what_the_models_provider_ran_was_available_there() -> None:
    at_provider = ToolCall(name="web_search", category=CallCategory.SERVER)
    run = run_with([at_provider], available_tools={"weather": None})

    assert 1.0 == _score(_evaluator("tool-known", None), run).value


@pytest.mark.parametrize("tools", [None, {}])
def test_it_does_not_apply_where_nobody_told_which_tools_there_are(tools: JsonObject | None) -> None:
    answer = _evaluator("tool-known", None).evaluate(_run("search", available_tools=tools), RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.NOT_APPLICABLE is answer.reason


def test_tools_that_telemetry_leaves_out_can_be_configured() -> None:
    run = _run("web_search", available_tools={"search": None})

    assert 0.0 == _score(_evaluator("tool-known", None), run).value
    assert 1.0 == _score(_evaluator("tool-known", None, also_known=["web_*"]), run).value


def test_without_calls_nothing_is_unknown() -> None:
    assert 1.0 == _score(_evaluator("tool-known", None), _run(available_tools={"search": None})).value


@pytest.mark.parametrize(("calls", "score"), [(0, 1.0), (3, 1.0), (4, 0.0)])
def test_a_run_may_make_so_many_calls_and_no_more(calls: int, score: float) -> None:
    evaluator = _evaluator("tool-call-budget", {"max_calls": 3})

    assert score == _score(evaluator, _run(*["search"] * calls)).value


def test_limits_of_tools_are_told_one_by_one() -> None:
    evaluator = _evaluator(
        "tool-call-budget", {"tools": {"search_*": {"max": 2}, "verify": {"min": 1}, "book": {"max": 1}}}
    )

    answer = _score(evaluator, _run("search_web", "search_files", "search_web", "book"))

    assert 0.0 == answer.value
    assert ("search_*: 3 calls, at most 2", "verify: 0 calls, at least 1") == answer.lines
    assert {"search_*": 3, "verify": 0, "book": 1} == answer.details["calls_of"]


def test_failed_calls_count_in_a_budget_unless_they_are_left_out() -> None:
    run = run_with([ToolCall(name="a", error=_FAILED), ToolCall(name="a")])

    assert 0.0 == _score(_evaluator("tool-call-budget", {"maxCalls": 1}), run).value
    assert 1.0 == _score(_evaluator("tool-call-budget", {"maxCalls": 1}, includeFailed=False), run).value


def test_a_budget_counts_handoffs_only_where_they_are_included_or_named() -> None:
    run = run_with([ToolCall(name="search"), ToolCall(name="transfer", category=CallCategory.HANDOFF)])

    assert 1.0 == _score(_evaluator("tool-call-budget", {"max_calls": 1}), run).value
    for config, tools in (({"include_categories": ["handoff"]}, {}), ({}, {"transfer": {}})):
        evaluator = _evaluator("tool-call-budget", {"max_calls": 1, "tools": tools}, **config)
        assert 0.0 == _score(evaluator, run).value


def test_a_budget_is_kept_to_in_runs_of_any_length() -> None:
    run = run_with([ToolCall(name="search")] * 20_000)

    assert 0.0 == _score(_evaluator("tool-call-budget", {"max_calls": 100}), run).value
    assert 1.0 == _score(_evaluator("tool-permission", {"deny": ["pay"]}), run).value


@pytest.mark.parametrize(
    ("criteria", "outcome"),
    [
        ({"max_calls": 1}, Outcome.FAIL),
        ({"max_calls": 2}, Outcome.NOT_EVALUATED),
        ({"tools": {"a": {"max": 1}}}, Outcome.FAIL),
        ({"tools": {"a": {"min": 2}}}, Outcome.PASS),
        ({"tools": {"a": {"min": 3}}}, Outcome.NOT_EVALUATED),
        ({"tools": {"a": {"min": 2, "max": 2}}}, Outcome.NOT_EVALUATED),
    ],
)
def test_an_incomplete_run_is_judged_where_more_calls_change_nothing(
    criteria: dict[str, Any], outcome: Outcome
) -> None:
    run = _run("a", "a", complete=False)

    assert outcome is _outcome(_evaluator("tool-call-budget", criteria), run)


@pytest.mark.parametrize("criteria", [{}, {"tools": {"a": {"min": 3, "max": 2}}}, {"max_calls": -1}])
def test_budgets_that_make_no_sense_are_refused(criteria: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected|greater"):
        _evaluator("tool-call-budget", criteria)


def _result(value: JsonValue) -> dict[str, Any]:
    return {"result": value, "result_state": ValueState.PRESENT}


def _transfer(amount: int, **fields: Any) -> ToolCall:
    return ToolCall(
        name="transfer", arguments={"amount": amount}, arguments_state=ValueState.PRESENT, **fields
    )


@pytest.mark.parametrize(
    ("calls", "score"),
    [
        ([], 1.0),
        ([_transfer(5)], 1.0),
        ([_transfer(5), _transfer(6)], 1.0),
        ([_transfer(5, error=_FAILED), _transfer(5)], 1.0),
        ([_transfer(5), _transfer(5)], 0.0),
        ([_transfer(5), ToolCall(name="search"), _transfer(5, error=_FAILED)], 0.0),
        ([_transfer(5, parallel_group=0), _transfer(5, parallel_group=0)], 0.0),
        ([_transfer(5, parallel_group=0), _transfer(5, parallel_group=0, error=_FAILED)], 1.0),
        ([_transfer(5, parallel_group=0, error=_FAILED), _transfer(5, parallel_group=0)], 1.0),
        ([_transfer(5), _transfer(5, executed=False)], 1.0),
        ([_transfer(5, **_result({"status_code": 422})), _transfer(5)], 1.0),
        ([_transfer(5, **_result({"status_code": 503})), _transfer(5)], 1.0),
        ([_transfer(5, **_result({"status_code": 503})), _transfer(5), _transfer(5)], 0.0),
        ([_transfer(5), _transfer(5, **_result({"status_code": 503}))], 0.0),
    ],
)
def test_a_repetition_counts_once_a_call_succeeded(calls: list[ToolCall], score: float) -> None:
    evaluator = _evaluator("duplicate-side-effect", {"tools": ["transfer"]})

    assert score == _score(evaluator, run_with(calls)).value


_UNCLEAR: list[dict[str, Any]] = [
    {"error": _FAILED},
    {"error": ToolError(type="HTTPError", message="503 Service Unavailable")},
    {"error": ToolError(type="RpcError", message="Deadline exceeded")},
    _result({"status_code": 502}),
    _result({"error": "upstream timed out"}),
    _result("Error: request timed out"),
]
_CLEAR: list[dict[str, Any]] = [
    {"error": ToolError(type="ValueError", message="amount must be positive")},
    _result({"status_code": 404}),
    _result({"error": "no such account 50012"}),
    {"executed": False, "error": _FAILED},
]


@pytest.mark.parametrize("fields", _UNCLEAR)
def test_a_repetition_after_a_failure_that_may_have_taken_effect_is_advisory(fields: dict[str, Any]) -> None:
    run = run_with([_transfer(5, **fields), _transfer(5)])

    answer = _score(_evaluator("duplicate-side-effect", {"tools": ["transfer"]}), run)

    assert (1.0, 1) == (answer.value, answer.details["repeated_after_unclear_failure"])
    assert (
        "transfer: 1 further after a time-out or 5xx that may have taken effect (advisory)",
    ) == answer.lines


@pytest.mark.parametrize("fields", _CLEAR)
def test_a_repetition_after_a_failure_that_took_no_effect_is_a_retry(fields: dict[str, Any]) -> None:
    run = run_with([_transfer(5, **fields), _transfer(5)])
    evaluator = _evaluator("duplicate-side-effect", {"tools": ["transfer"]})

    assert ("no side effect was repeated",) == _score(evaluator, run).lines


@pytest.mark.parametrize(("second", "unclear"), [("k1", 0), ("k2", 1)])
def test_equal_idempotency_keys_make_a_repetition_after_an_unclear_failure_a_retry(
    second: str, unclear: int
) -> None:
    calls = [
        ToolCall(
            name="transfer",
            arguments={"amount": 5, "idempotency_key": key},
            arguments_state=ValueState.PRESENT,
            error=error,
        )
        for key, error in (("k1", _FAILED), (second, None))
    ]
    evaluator = _evaluator("duplicate-side-effect", {"tools": ["transfer"]}, ignore_args=["idempotency_*"])

    assert unclear == _score(evaluator, run_with(calls)).details["repeated_after_unclear_failure"]


def test_other_tools_may_repeat_themselves() -> None:
    evaluator = _evaluator("duplicate-side-effect", {"tools": ["send_*"]})

    assert 1.0 == _score(evaluator, run_with([_transfer(5), _transfer(5)])).value


def test_arguments_that_differ_each_time_may_be_ignored() -> None:
    calls = [
        ToolCall(
            name="transfer", arguments={"amount": 5, "request_id": n}, arguments_state=ValueState.PRESENT
        )
        for n in range(2)
    ]

    plain = _evaluator("duplicate-side-effect", {"tools": ["transfer"]})
    ignoring = _evaluator("duplicate-side-effect", {"tools": ["transfer"]}, ignore_args=["*_id"])

    assert 1.0 == _score(plain, run_with(calls)).value
    answer = _score(ignoring, run_with(calls))
    assert 0.0 == answer.value
    assert ("transfer: 1 further with the same arguments after a success",) == answer.lines


def test_unknown_arguments_matter_only_where_they_could_repeat_something() -> None:
    evaluator = _evaluator("duplicate-side-effect", {"tools": ["transfer"]})
    unknown = ToolCall(name="transfer")

    alone = evaluator.evaluate(run_with([unknown]), RunFacts())
    beside = evaluator.evaluate(run_with([_transfer(5), unknown]), RunFacts())
    decided = evaluator.evaluate(run_with([_transfer(5), _transfer(5), unknown]), RunFacts())

    assert isinstance(alone, Score)
    assert 1.0 == alone.value
    assert isinstance(beside, NotEvaluated)
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is beside.reason
    assert isinstance(decided, Score)
    assert 0.0 == decided.value


def test_an_incomplete_run_fails_with_the_first_repetition() -> None:
    evaluator = _evaluator("duplicate-side-effect", {"tools": ["transfer"]})

    assert Outcome.FAIL is _outcome(evaluator, run_with([_transfer(5), _transfer(5)], complete=False))
    assert Outcome.NOT_EVALUATED is _outcome(evaluator, run_with([_transfer(5)], complete=False))


@pytest.mark.parametrize(
    ("names", "score"),
    [
        ("", 1.0),
        ("search", 1.0),
        ("auth", 1.0),
        ("auth fetch fetch", 1.0),
        ("fetch", 0.0),
        ("fetch auth fetch", 0.0),
        ("auth fetch pay", 1.0),
        ("auth pay fetch", 0.5),
        ("pay", 0.0),
    ],
)
def test_a_guard_has_to_come_first_and_one_that_never_ran_is_a_violation(names: str, score: float) -> None:
    evaluator = _evaluator("tool-precedence", {"before": [["auth", "fetch"], ["fetch", "pay"]]})

    assert score == _score(evaluator, _run(*names.split())).value


def test_the_explanation_tells_which_pair_was_violated_and_how() -> None:
    evaluator = _evaluator("tool-precedence", {"before": [["auth", "fetch"], ["check_*", "pay"]]})

    answer = _score(evaluator, _run("fetch", "auth", "pay"))

    assert (
        "auth before fetch: fetch came first",
        "check_* before pay: check_* never ran",
    ) == answer.lines


def test_a_guard_beside_what_it_guards_is_enough_unless_strict() -> None:
    run = run_with([ToolCall(name="fetch", parallel_group=0), ToolCall(name="auth", parallel_group=0)])
    criteria = {"before": [["auth", "fetch"]]}

    assert 1.0 == _score(_evaluator("tool-precedence", criteria), run).value
    assert 0.0 == _score(_evaluator("tool-precedence", criteria, strict=True), run).value


def test_a_guard_may_have_to_succeed() -> None:
    run = run_with([ToolCall(name="auth", error=_FAILED), ToolCall(name="fetch")])
    criteria = {"before": [["auth", "fetch"]]}

    assert 1.0 == _score(_evaluator("tool-precedence", criteria), run).value
    assert 0.0 == _score(_evaluator("tool-precedence", criteria, require_success=True), run).value


@pytest.mark.parametrize(
    "fields",
    [
        {"error": _FAILED},
        {"result": {"status_code": 503}, "result_state": ValueState.PRESENT},
        {"result_text": "Error: no such user", "result_state": ValueState.UNPARSED},
        {"executed": False},
    ],
)
def test_a_guard_succeeds_where_it_took_effect(fields: dict[str, Any]) -> None:
    run = run_with([ToolCall(name="auth", **fields), ToolCall(name="fetch")])
    criteria = {"before": [["auth", "fetch"]]}

    answer = _score(_evaluator("tool-precedence", criteria, require_success=True), run)

    assert (0.0, ("auth before fetch: auth never succeeded",)) == (answer.value, answer.lines)
    assert 1.0 == _score(_evaluator("tool-precedence", criteria), run).value


def test_a_guard_that_came_too_late_or_succeeded_too_late_did_not_come_first() -> None:
    late = run_with([ToolCall(name="auth", error=_FAILED), ToolCall(name="fetch"), ToolCall(name="auth")])
    never = run_with([ToolCall(name="fetch")])
    evaluator = _evaluator("tool-precedence", {"before": [["auth", "fetch"]]}, require_success=True)

    assert ("auth before fetch: fetch came first",) == _score(evaluator, late).lines
    assert ("auth before fetch: auth never ran",) == _score(evaluator, never).lines


def _held_before(
    calls: Sequence[ToolCall], pairs: Sequence[Sequence[str]], *, strict: bool, require_success: bool
) -> tuple[int, int]:
    """The pairs that apply and those that hold, by the first call of each tool."""
    applicable = held = 0
    for first, second in pairs:
        later = next((at for at, call in enumerate(calls) if call.name == second), None)
        if later is None:
            continue
        applicable += 1
        guards = [
            at
            for at, call in enumerate(calls)
            if call.name == first and not (require_success and call.error is not None)
        ]
        if guards:
            group = calls[guards[0]].parallel_group
            beside = group is not None and group == calls[later].parallel_group
            held += (not strict) if beside else guards[0] < later
    return applicable, held


@st.composite
def _steps(draw: st.DrawFn) -> list[ToolCall]:
    """Calls in steps of such that ran side by side."""
    return [
        ToolCall(
            name=draw(st.sampled_from("abcd")),
            parallel_group=step if size > 1 else None,
            error=draw(st.sampled_from((None, None, _FAILED))),
        )
        for step, size in enumerate(draw(st.lists(st.integers(1, 3), max_size=5)))
        for _ in range(size)
    ]


@settings(max_examples=300, deadline=None)
@given(
    calls=_steps(),
    pairs=st.lists(st.sampled_from([*permutations("abc", 2)]), min_size=1, max_size=3, unique=True),
    strict=st.booleans(),
    require_success=st.booleans(),
)
def test_precedence_depends_on_the_first_calls_alone(
    calls: list[ToolCall], pairs: list[tuple[str, str]], strict: bool, require_success: bool
) -> None:
    evaluator = _evaluator(
        "tool-precedence", {"before": pairs}, strict=strict, require_success=require_success
    )
    applicable, held = _held_before(calls, pairs, strict=strict, require_success=require_success)

    answer = _score(evaluator, run_with(calls))

    assert (held / applicable if applicable else 1.0) == answer.value
    assert (applicable, held) == (answer.details["applicable"], answer.details["held"])


@pytest.mark.parametrize("before", [[], [["auth", "auth"]], [["get weather", "get_weather"]], [["a"]]])
def test_pairs_that_make_no_sense_are_refused(before: list[list[str]]) -> None:
    with pytest.raises(ValueError, match="before"):
        _evaluator("tool-precedence", {"before": before})


def test_an_incomplete_run_is_never_judged() -> None:
    evaluator = _evaluator("tool-precedence", {"before": [["auth", "fetch"]]})

    assert Outcome.NOT_EVALUATED is _outcome(evaluator, _run("fetch", complete=False))
    assert Outcome.NOT_EVALUATED is _outcome(evaluator, _run("auth", "fetch", complete=False))
